import type { Clock } from '../../base/clock.ts'
import { RRType } from '../../dns/iana/index.ts'
import { CounterSlots, Counts, type SlotLabels } from '../../plugin/counter-slots.ts'
import { DROP, type Handler } from '../../plugin/handler.ts'
import { sentOctets, sentRcode } from '../../plugin/status.ts'
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

/** Buckets of a histogram, one more for what is above them all, and the sum. */
export class BucketCounts {
  readonly #bounds: Float64Array
  readonly counts: Counts
  readonly #sum: number

  constructor(bounds: Float64Array) {
    this.#bounds = bounds
    this.#sum = bounds.length + 1
    this.counts = new Counts(bounds.length + 2)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++
    this.counts.now[bucket]! += 1
    this.counts.now[this.#sum]! += value
  }

  /** What came since the last call. */
  take(): { counts: Float64Array; sum: number } {
    const counts = new Float64Array(this.#sum).map((_, i) => this.counts.take(i))
    return { counts, sum: this.counts.take(this.#sum) }
  }
}

/** Everything counted for one (server, zone, view). */
export class QueryCounts {
  /** By protocol, family, type, row by row. */
  readonly requests = new Counts(PROTOCOLS.length * FAMILIES.length * TYPE_LABELS.length)
  readonly dnssecOk = new Counts(1)
  readonly seconds = new BucketCounts(SECONDS_BOUNDS)
  /** By protocol. */
  readonly requestOctets = PROTOCOLS.map(() => new BucketCounts(OCTETS_BOUNDS))
  readonly responseOctets = PROTOCOLS.map(() => new BucketCounts(OCTETS_BOUNDS))
  /** Names of plugins that answered, in order of appearance; parallel to `responses`. */
  readonly plugins: string[] = []
  /** By rcode. */
  readonly responses: Counts[] = []

  /** Counters by rcode of the plugin that answered. A chain has few, so that a scan is quickest. */
  responsesOf(plugin: string): Counts {
    for (let i = 0; i < this.plugins.length; i++) {
      if (this.plugins[i] === plugin) return this.responses[i]!
    }
    const counts = new Counts(RCODES)
    this.plugins.push(plugin)
    this.responses.push(counts)
    return counts
  }
}

/** Counts queries and replies as integers; the metrics page is made from them when somebody asks. */
export class Prometheus implements Handler {
  readonly name = 'prometheus'
  readonly #next: Handler
  readonly #clock: Clock
  readonly #slots = new CounterSlots(() => new QueryCounts())

  constructor(next: Handler, clock: Clock) {
    this.#next = next
    this.#clock = clock
  }

  serve(tx: Transaction): number | Promise<number> {
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#finish(tx, status)
    return status.then((late) => this.#finish(tx, late))
  }

  #finish(tx: Transaction, status: number): number {
    const { query } = tx
    const counts = this.#slots.of(tx)
    const type = query.qtype < TYPE_INDEX.length ? TYPE_INDEX[query.qtype]! : TYPE_OTHER
    const row = query.protocol * FAMILIES.length + query.peerFamily - 1
    counts.requests.now[row * TYPE_LABELS.length + type]! += 1
    if (query.dnssecOk) counts.dnssecOk.now[0]! += 1
    counts.seconds.observe((this.#clock.monotonic() - tx.startedMs) / 1000)
    counts.requestOctets[query.protocol]!.observe(query.packetOctets)
    if (status === DROP) return status
    counts.responseOctets[query.protocol]!.observe(sentOctets(tx, status))
    const rcode = Math.min(sentRcode(tx, status), RCODES - 1)
    counts.responsesOf(tx.response.answeredBy).now[rcode]! += 1
    return status
  }

  /** Visits the counts of every (server, zone, view) seen. Not for the hot path. */
  forEach(visit: (counts: QueryCounts, labels: SlotLabels) => void): void {
    this.#slots.forEach(visit)
  }
}
