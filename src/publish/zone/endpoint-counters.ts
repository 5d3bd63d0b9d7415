import type { Clock } from '../../base/clock.ts'
import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import { printType } from '../../dns/iana/types.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import type { Candidate } from '../../steering/candidate.ts'
import {
  type CountedOutcome,
  FIRST_COUNTER,
  OTHER_COUNTER,
  OTHER_COUNTERS,
  type OutcomeCounters,
} from '../../steering/outcome-counters.ts'
import { isAddress, isSingleton } from '../../steering/tiers.ts'
import type { OwnerSet } from '../build/owner-set.ts'
import { EndpointAnswers } from './endpoint-answers.ts'
import { EndpointSeries } from './endpoint-series.ts'
import { type EndpointLabels, type EndpointSink, seriesKey } from './endpoint-sink.ts'

/** The counters of a publisher in all threads, by number: see `OutcomeCounters`. */
export interface ThreadCounts {
  /** Returns those of this thread. */
  own(): Float64Array
  /** Returns the growth of a counter in all threads since the last call for it. */
  take(number: number): number
}

/**
 * A counter of an endpoint that is gone gets another endpoint after this time, and not before: data
 * threads have stopped using it, and a scrape has read its last value.
 */
const KEPT_MS = 5 * 60_000
/** Octets of a target list that identifies an endpoint without a set identifier. */
const TARGETS_MAX = 200

interface EndpointCountersOptions {
  /** Largest number of counters. */
  readonly max: number
  readonly source: string
  readonly counts: ThreadCounts
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: MetricsRegistry
  readonly resources: ResourceRegistry
  /** False: not on the metrics page. */
  readonly isExported?: boolean
  /** True: for the traffic of the admin API. */
  readonly hasHistory?: boolean
}

/** The counter of one series. */
interface EndpointCounter {
  readonly number: number
  readonly key: string
  readonly labels: EndpointLabels
  share: number
  weight: number | undefined
  /** From then on it may be given to another endpoint; Infinity = it is in use, or was published last. */
  freeMs: number
}

/** How a set is encoded. */
type Compose = (counters: OutcomeCounters) => Uint32Array | undefined

/**
 * Assigns counters to the endpoints of a publisher, in each tier, and copies the counts to the metrics
 * page and the history. An endpoint keeps its counter as long as it is served there. Endpoints that find no free
 * counter are counted together.
 */
export class EndpointCounters {
  readonly #options: EndpointCountersOptions
  readonly #sinks: readonly EndpointSink[]
  readonly #releases: readonly (() => void)[]
  readonly #byKey = new Map<string, EndpointCounter>()
  /** By set: the counters in use. Sets without any are missing. */
  readonly #bySet = new Map<string, Set<EndpointCounter>>()
  /** Counters that no set uses any more, longest unused first. */
  readonly #unused = new Set<EndpointCounter>()
  /** Those of them that the published image may still use. */
  #released: EndpointCounter[] = []
  readonly #other: EndpointLabels
  #next = FIRST_COUNTER
  #isFull = false
  #isClosed = false

  constructor(options: EndpointCountersOptions) {
    const { source } = options
    this.#options = options
    this.#other = { source, zone: '', owner: 'other', type: '', endpoint: '', tier: '' }
    const leases = openSinks(options)
    this.#sinks = leases.map(({ item }) => item)
    this.#addSeries(seriesKey(this.#other), this.#other)
    const stops = this.#sinks.map((sink) => sink.onCollect(() => this.#collect()))
    this.#releases = [...stops, ...leases.map(({ release }) => release)]
  }

  /**
   * Calls `compose` with the counters for a set, and returns what it returns. Releases those that an
   * earlier call for the same zone, owner and type assigned and this one does not. `compose` gets no
   * counters if the set leaves no choice.
   */
  count(
    zone: string,
    owner: Uint8Array,
    set: OwnerSet,
    compose: (counters: OutcomeCounters | undefined) => Uint32Array | undefined,
  ): Uint32Array | undefined {
    if (this.#isClosed) return compose(OTHER_COUNTERS)
    const key = setKey(zone, owner, set.type)
    const before = this.#bySet.get(key)
    if (!hasChoice(set)) {
      this.#replace(key, before, new Set())
      return compose(undefined)
    }
    if (before === undefined && !this.#hasRoom()) {
      this.#noteFull()
      return compose(OTHER_COUNTERS)
    }
    return this.#compose(key, before, this.#namesIn(zone, owner, set), compose)
  }

  /** The set is not served any more. */
  remove(zone: string, owner: Uint8Array, type: number): void {
    const key = setKey(zone, owner, type)
    this.#replace(key, this.#bySet.get(key), new Set())
  }

  /** All sets so far are published. */
  published(): void {
    const freeMs = this.#options.clock.monotonic() + KEPT_MS
    for (const counter of this.#released) {
      if (this.#unused.has(counter)) counter.freeMs = freeMs
    }
    this.#released = []
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#collect()
    for (const { key, labels } of this.#byKey.values()) this.#removeSeries(key, labels)
    this.#removeSeries(seriesKey(this.#other), this.#other)
    for (const release of this.#releases) release()
  }

  #addSeries(key: string, labels: EndpointLabels): void {
    for (const sink of this.#sinks) sink.add(key, labels)
  }

  #removeSeries(key: string, labels: EndpointLabels): void {
    for (const sink of this.#sinks) sink.remove(key, labels)
  }

  #count(key: string, labels: EndpointLabels, growth: number): void {
    if (growth > 0) for (const sink of this.#sinks) sink.count(key, labels, growth)
  }

  #setShare({ key, labels, weight }: EndpointCounter, share: number): void {
    for (const sink of this.#sinks) sink.setShare(key, labels, { share, weight })
  }

  #compose(
    key: string,
    before: Set<EndpointCounter> | undefined,
    labelsOf: (outcome: CountedOutcome) => EndpointLabels,
    compose: Compose,
  ): Uint32Array | undefined {
    const used = new Set<EndpointCounter>()
    const assign = (outcome: CountedOutcome): number => {
      const counter = this.#acquire(labelsOf(outcome))
      if (counter === undefined) return OTHER_COUNTER
      const { members } = outcome
      counter.weight = members.length === 1 ? members[0]!.weight : undefined
      counter.share = (used.has(counter) ? counter.share : 0) + outcome.share
      used.add(counter)
      return counter.number
    }
    const words = compose({ assign })
    this.#replace(key, before, used)
    return words
  }

  #replace(key: string, before: Set<EndpointCounter> | undefined, now: Set<EndpointCounter>): void {
    if (now.size > 0) this.#bySet.set(key, now)
    else if (before !== undefined) this.#bySet.delete(key)
    for (const counter of now) this.#setShare(counter, counter.share)
    for (const counter of before ?? []) {
      if (now.has(counter)) continue
      this.#setShare(counter, 0)
      this.#unused.add(counter)
      this.#released.push(counter)
    }
  }

  /** Undefined = all counters are in use. */
  #acquire(labels: EndpointLabels): EndpointCounter | undefined {
    const key = seriesKey(labels)
    const known = this.#byKey.get(key)
    if (known !== undefined) {
      this.#unused.delete(known)
      known.freeMs = Number.POSITIVE_INFINITY
      return known
    }
    const number = this.#takeNumber()
    if (number === undefined) {
      this.#noteFull()
      return undefined
    }
    const freeMs = Number.POSITIVE_INFINITY
    const counter = { number, key, labels, share: 0, weight: undefined, freeMs }
    this.#byKey.set(key, counter)
    this.#addSeries(key, labels)
    return counter
  }

  #takeNumber(): number | undefined {
    if (this.#next < FIRST_COUNTER + this.#options.max) return this.#next++
    if (!this.#hasRoom()) return undefined
    const [oldest] = this.#unused
    const { number, key, labels } = oldest!
    this.#unused.delete(oldest!)
    this.#byKey.delete(key)
    this.#removeSeries(key, labels)
    this.#options.counts.take(number)
    return number
  }

  #hasRoom(): boolean {
    const { max, clock } = this.#options
    if (this.#next < FIRST_COUNTER + max) return true
    const [oldest] = this.#unused
    return oldest !== undefined && oldest.freeMs <= clock.monotonic()
  }

  #noteFull(): void {
    if (this.#isFull) return
    this.#isFull = true
    const { log, max } = this.#options
    log.warning(
      `endpoint-metrics: more than ${max} endpoints in tiers; the rest is counted as "other"`,
      'endpoint-metrics-limit',
    )
  }

  /** Returns the function that names the outcomes of a set. */
  #namesIn(
    zone: string,
    owner: Uint8Array,
    { type, endpoints }: OwnerSet,
  ): (outcome: CountedOutcome) => EndpointLabels {
    const { source } = this.#options
    // The candidates of an endpoint share its array of indexes.
    const names = new Map<readonly number[], string>()
    for (const { endpoint, candidates, site = '' } of endpoints) {
      const [first] = candidates
      const name = nameOf(endpoint)
      const unique = site === '' ? name : `${name}@${site}`
      if (first !== undefined) names.set(first.rdataIndexes, unique)
    }
    const at = { source, zone, owner: printName(owner), type: printType(type) }
    const nameOfAll = (members: readonly Candidate[]): string => {
      return members.length === 1 ? (names.get(members[0]!.rdataIndexes) ?? '') : ''
    }
    return ({ tier, members }) => ({ ...at, endpoint: nameOfAll(members), tier })
  }

  #collect(): void {
    const { counts } = this.#options
    for (const { number, key, labels } of this.#byKey.values()) {
      this.#count(key, labels, counts.take(number))
    }
    this.#count(seriesKey(this.#other), this.#other, counts.take(OTHER_COUNTER))
  }
}

function openSinks({
  metrics,
  resources,
  isExported = true,
  hasHistory = false,
}: EndpointCountersOptions): ResourceLease<EndpointSink>[] {
  const leases: ResourceLease<EndpointSink>[] = []
  if (isExported) {
    leases.push(resources.acquire(EndpointSeries, '', () => new EndpointSeries(metrics)))
  }
  if (hasHistory) leases.push(resources.acquire(EndpointAnswers, '', () => new EndpointAnswers()))
  return leases
}

/** True if the endpoints compete, or did before some of them went out of service. */
function hasChoice({ type, endpoints, shift, answers }: OwnerSet): boolean {
  return (
    (answers !== undefined && endpoints.length > answers && isAddress(type)) ||
    shift !== undefined ||
    (isSingleton(type) && endpoints.length > 1) ||
    endpoints.some(({ endpoint: { codes, isDefault, weight, point } }) => {
      return codes.length > 0 || isDefault || weight !== undefined || point !== undefined
    })
  )
}

/** Returns the set identifier, else the targets. */
function nameOf({ setIdentifier, type, rdata }: Endpoint): string {
  if (setIdentifier !== '') return setIdentifier
  const text = rdata.map((target) => printTarget(type, target)).join()
  return text.length <= TARGETS_MAX ? text : `${text.slice(0, TARGETS_MAX)}…`
}

function setKey(zone: string, owner: Uint8Array, type: number): string {
  return `${zone} ${type} ${nameKey(owner)}`
}
