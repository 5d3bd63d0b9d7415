import type { Clock } from '../../base/clock.ts'
import { RRType } from '../../dns/iana/index.ts'
import { PROTOCOL_NAMES } from '../../dns/message/query.ts'
import type { CounterSlots, Counts, SlotLabels } from '../../plugin/counter-slots.ts'
import { DROP, type Handler, Link, Trait } from '../../plugin/handler.ts'
import { finishedMs, sentOctets, sentRcode } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Query types that have a label value of their own; every other type is `other`. */
const TYPES = [
  'A',
  'AAAA',
  'CNAME',
  'DNSKEY',
  'DS',
  'MX',
  'NSEC',
  'NSEC3',
  'NS',
  'PTR',
  'RRSIG',
  'SOA',
  'SRV',
  'TXT',
  'HTTPS',
  'SVCB',
  'IXFR',
  'AXFR',
  'ANY',
] as const
const TYPE_OTHER = TYPES.length
export const TYPE_LABELS: readonly string[] = [...TYPES, 'other']

/** Index in TYPE_LABELS by query type. */
const TYPE_INDEX = new Uint8Array(new ArrayBuffer(65_536)).fill(TYPE_OTHER)
TYPES.forEach((name, i) => {
  TYPE_INDEX[RRType[name]] = i
})

/** Upper bounds: 0.25 ms doubled fifteen times, up to 8.192 s. */
export const SECONDS_BUCKETS: readonly number[] = Array.from({ length: 16 }, (_, i) => {
  return 0.00025 * 2 ** i
})
export const OCTETS_BUCKETS: readonly number[] = [
  0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3,
]

/** Bucket by octets. Larger sizes are in the last bucket: there is no bound above 64 000. */
const OCTETS_BUCKET_MAX = 65_535
const OCTETS_BUCKET = new Uint8Array(new ArrayBuffer(OCTETS_BUCKET_MAX + 1))
OCTETS_BUCKET.fill(OCTETS_BUCKETS.length)
for (let bucket = OCTETS_BUCKETS.length - 1; bucket >= 0; bucket--) {
  OCTETS_BUCKET.fill(bucket, 0, OCTETS_BUCKETS[bucket]! + 1)
}

export const FAMILIES = ['1', '2'] as const

/** Number of response codes: up to BADCOOKIE, and some more. Larger ones count as the last. */
const RCODES = 32

/**
 * Counters of a histogram, one after the other: one per bucket, one for values above all buckets,
 * the sum.
 */
class Buckets {
  readonly start: number
  readonly #count: number

  constructor(bounds: readonly number[], start: number) {
    this.start = start
    this.#count = bounds.length + 1
  }

  /** Index of the sum. */
  get sum(): number {
    return this.start + this.#count
  }

  /** Index after its last counter. */
  get end(): number {
    return this.sum + 1
  }

  /** Returns the growth since the last call. */
  take(counts: Counts): { buckets: Float64Array; sum: number } {
    const buckets = new Float64Array(this.#count)
    for (let i = 0; i < buckets.length; i++) buckets[i] = counts.take(this.start + i)
    return { buckets, sum: counts.take(this.sum) }
  }
}

/**
 * Index of each counter of a (server, zone, view):
 *
 *     0 …           requests, by protocol, family, type, row by row
 *     DNSSEC_OK     requests with DO
 *     …             histograms: seconds; octets of requests by protocol, of responses by protocol
 *     RESPONSES …   responses, by plugin that answered, by rcode
 */
const DNSSEC_OK = PROTOCOL_NAMES.length * FAMILIES.length * TYPE_LABELS.length
export const SECONDS = new Buckets(SECONDS_BUCKETS, DNSSEC_OK + 1)
/** By protocol. */
export const REQUEST_OCTETS: readonly Buckets[] = octetsByProtocol(SECONDS.end)
export const RESPONSE_OCTETS: readonly Buckets[] = octetsByProtocol(REQUEST_OCTETS.at(-1)!.end)
const RESPONSES = RESPONSE_OCTETS.at(-1)!.end

// As numbers, for the hot path.
const TYPE_COUNT = TYPE_LABELS.length
const SECONDS_BOUNDS = Float64Array.from(SECONDS_BUCKETS)
const SECONDS_START = SECONDS.start
const SECONDS_SUM = SECONDS.sum
const REQUEST_START = REQUEST_OCTETS[0]!.start
const RESPONSE_START = RESPONSE_OCTETS[0]!.start
/** Counters of one histogram of octets: those of the next protocol follow. */
const OCTETS_COUNTERS = OCTETS_BUCKETS.length + 2

/** Histograms of octets, one per protocol, whose counters begin at `start`. */
function octetsByProtocol(start: number): Buckets[] {
  return PROTOCOL_NAMES.map((_, protocol) => {
    return new Buckets(OCTETS_BUCKETS, start + protocol * (OCTETS_BUCKETS.length + 2))
  })
}

/** Counts queries and replies as integers. The metrics page is made from them at each scrape. */
export class Prometheus extends Link {
  readonly name = 'prometheus'
  readonly #clock: Clock
  readonly #slots: CounterSlots
  /** The plugins that may have answered: '' = none, or none of the block. */
  readonly #plugins: readonly string[]

  /** `plugins`: the directives of the block. */
  constructor(next: Handler, clock: Clock, slots: CounterSlots, plugins: readonly string[]) {
    super(next, 0, Trait.Every)
    this.#clock = clock
    this.#slots = slots
    this.#plugins = ['', ...plugins]
    slots.length = RESPONSES + this.#plugins.length * RCODES
  }

  /** @hot */
  override after(tx: Transaction, status: number): number {
    if (!tx.server.isHandingOver) this.#count(tx, status)
    return status
  }

  /** @hot */
  #count(tx: Transaction, status: number): void {
    const { query } = tx
    const counters = this.#slots.of(tx)
    const tcp = query.protocol
    countRequest(counters, tcp * FAMILIES.length + query.peerFamily - 1, query.qtype)
    if (query.dnssecOk) counters[DNSSEC_OK]! += 1
    countSeconds(counters, finishedMs(tx, this.#clock) - tx.startedMs)
    countOctets(counters, REQUEST_START + tcp * OCTETS_COUNTERS, query.packetOctets)
    if (status === DROP) return
    countOctets(counters, RESPONSE_START + tcp * OCTETS_COUNTERS, sentOctets(tx, status))
    const rcode = Math.min(sentRcode(tx, status), RCODES - 1)
    counters[this.#responseOf(tx.response.answeredBy) + rcode]! += 1
  }

  /** Index of the response counters of a plugin, by rcode. */
  #responseOf(plugin: string): number {
    return RESPONSES + this.#pluginOf(plugin) * RCODES
  }

  /** Index of a plugin. A chain has few links, so a scan is fastest. */
  #pluginOf(name: string): number {
    for (let i = 1; i < this.#plugins.length; i++) if (this.#plugins[i] === name) return i
    return 0
  }

  /** Visits the counts of every (server, zone, view) seen. Not for the hot path. */
  takeCounts(visit: (taken: TakenCounts, labels: SlotLabels) => void): void {
    this.#slots.forEach((counts, labels) => {
      const responses: TakenCounts['responses'][number][] = []
      for (const [i, plugin] of this.#plugins.entries()) {
        for (let rcode = 0; rcode < RCODES; rcode++) {
          const count = counts.take(RESPONSES + i * RCODES + rcode)
          if (count > 0) responses.push({ plugin, rcode, count })
        }
      }
      visit({ counts, dnssecOk: counts.take(DNSSEC_OK), responses }, labels)
    })
  }
}

/** `row`: protocol and family. @hot */
function countRequest(counters: Float64Array, row: number, qtype: number): void {
  counters[row * TYPE_COUNT + TYPE_INDEX[qtype]!]! += 1
}

/** `start`: first counter of a histogram of octets. @hot */
function countOctets(counters: Float64Array, start: number, octets: number): void {
  counters[start + OCTETS_BUCKET[Math.min(octets, OCTETS_BUCKET_MAX)]!]! += 1
  counters[start + OCTETS_COUNTERS - 1]! += octets
}

/** @hot */
function countSeconds(counters: Float64Array, milliseconds: number): void {
  const seconds = milliseconds / 1000
  let bucket = 0
  while (bucket < SECONDS_BOUNDS.length && seconds > SECONDS_BOUNDS[bucket]!) bucket++
  counters[SECONDS_START + bucket]! += 1
  counters[SECONDS_SUM]! += seconds
}

/** The counts of one slot since the last call. */
export interface TakenCounts {
  /** For the requests, from counter 0 on, and the histograms. */
  readonly counts: Counts
  readonly dnssecOk: number
  readonly responses: readonly { plugin: string; rcode: number; count: number }[]
}
