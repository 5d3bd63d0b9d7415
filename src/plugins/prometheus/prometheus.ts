import type { Clock } from '../../base/clock.ts'
import { Rcode, RRType } from '../../dns/iana/index.ts'
import type { CounterSlots, Counts, SlotLabels } from '../../plugin/counter-slots.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import type { PlainLink } from '../../plugin/plain.ts'
import { finishedMs, sentOctets, sentRcode } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Query types that have a label value of their own; every other type is `other`. */
export const TYPES = [
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

/** Index in TYPE_LABELS by query type; types beyond it are `other`. */
const TYPE_INDEX = new Uint8Array(260).fill(TYPE_OTHER)
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
const SECONDS_BOUNDS = Float64Array.from(SECONDS_BUCKETS)
const OCTETS_BOUNDS = Float64Array.from(OCTETS_BUCKETS)

export const PROTOCOLS = ['udp', 'tcp'] as const
export const FAMILIES = ['1', '2'] as const

/** Response codes up to BADCOOKIE, with room to spare; larger ones count as the last. */
const RCODES = 32

/** Counters of a histogram, one behind the other: a bucket each, one for what is above them all, the sum. */
export class Buckets {
  readonly #bounds: Float64Array
  readonly #start: number
  /** Behind its last counter. */
  readonly end: number

  constructor(bounds: Float64Array, start: number) {
    this.#bounds = bounds
    this.#start = start
    this.end = start + bounds.length + 2
  }

  /** @hot */
  observe(counters: Float64Array, value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++
    counters[this.#start + bucket]! += 1
    counters[this.end - 1]! += value
  }

  /** What came since the last call. */
  take(counts: Counts): { buckets: Float64Array; sum: number } {
    const buckets = new Float64Array(this.#bounds.length + 1)
    for (let i = 0; i < buckets.length; i++) buckets[i] = counts.take(this.#start + i)
    return { buckets, sum: counts.take(this.end - 1) }
  }
}

/**
 * Where each counter of a (server, zone, view) is:
 *
 *     0 …           requests, by protocol, family, type, row by row
 *     DNSSEC_OK     requests with DO
 *     …             histograms: seconds; octets of requests by protocol, of responses by protocol
 *     RESPONSES …   responses, by plugin that answered, by rcode
 */
const DNSSEC_OK = PROTOCOLS.length * FAMILIES.length * TYPE_LABELS.length
export const SECONDS = new Buckets(SECONDS_BOUNDS, DNSSEC_OK + 1)
const REQUEST_UDP = new Buckets(OCTETS_BOUNDS, SECONDS.end)
const REQUEST_TCP = new Buckets(OCTETS_BOUNDS, REQUEST_UDP.end)
const RESPONSE_UDP = new Buckets(OCTETS_BOUNDS, REQUEST_TCP.end)
const RESPONSE_TCP = new Buckets(OCTETS_BOUNDS, RESPONSE_UDP.end)
/** By protocol. */
export const REQUEST_OCTETS: readonly Buckets[] = [REQUEST_UDP, REQUEST_TCP]
export const RESPONSE_OCTETS: readonly Buckets[] = [RESPONSE_UDP, RESPONSE_TCP]
const RESPONSES = RESPONSE_TCP.end

/** Counts queries and replies as integers; the metrics page is made from them when somebody asks. */
export class Prometheus implements Handler {
  readonly name = 'prometheus'
  readonly plain: PlainLink
  readonly #next: Handler
  readonly #clock: Clock
  readonly #slots: CounterSlots
  /** Who may have answered: '' = nobody, or nobody of the block. */
  readonly #plugins: readonly string[]

  /** `plugins`: the directives of the block. */
  constructor(next: Handler, clock: Clock, slots: CounterSlots, plugins: readonly string[]) {
    this.#next = next
    this.plain = { kind: 'observe', observe: (tx) => this.#count(tx, Rcode.NOERROR), next }
    this.#clock = clock
    this.#slots = slots
    this.#plugins = ['', ...plugins]
    slots.length = RESPONSES + this.#plugins.length * RCODES
  }

  serve(tx: Transaction): number | Promise<number> {
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#finish(tx, status)
    return status.then((late) => this.#finish(tx, late))
  }

  /** @hot */
  #finish(tx: Transaction, status: number): number {
    if (!tx.server.isHandingOver) this.#count(tx, status)
    return status
  }

  /** @hot */
  #count(tx: Transaction, status: number): void {
    const { query } = tx
    const counters = this.#slots.of(tx)
    const type = query.qtype < TYPE_INDEX.length ? TYPE_INDEX[query.qtype]! : TYPE_OTHER
    const row = query.protocol * FAMILIES.length + query.peerFamily - 1
    counters[row * TYPE_LABELS.length + type]! += 1
    if (query.dnssecOk) counters[DNSSEC_OK]! += 1
    SECONDS.observe(counters, (finishedMs(tx, this.#clock) - tx.startedMs) / 1000)
    REQUEST_OCTETS[query.protocol]!.observe(counters, query.packetOctets)
    if (status === DROP) return
    RESPONSE_OCTETS[query.protocol]!.observe(counters, sentOctets(tx, status))
    const rcode = Math.min(sentRcode(tx, status), RCODES - 1)
    counters[RESPONSES + this.#pluginOf(tx.response.answeredBy) * RCODES + rcode]! += 1
  }

  /** A chain has few links, so that a scan is quickest. */
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

/** What one slot counted since the last time. */
export interface TakenCounts {
  /** For the requests, from counter 0 on, and the histograms. */
  readonly counts: Counts
  readonly dnssecOk: number
  readonly responses: readonly { plugin: string; rcode: number; count: number }[]
}
