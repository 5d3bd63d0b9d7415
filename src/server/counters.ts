import { PROTOCOL_NAMES, type Protocol } from '../dns/message/query.ts'
import type { DroppedCounters, Losses, ServerCounters } from '../plugin/server-counters.ts'

/** Counters of the servers themselves: packets that are not queries, and chains that failed. */
export const ServerCount = {
  Ignored: 0,
  Panics: 1,
  /** Queries that a data thread did not hand over, because too many were already in flight. */
  Overloaded: 2,
} as const
export type ServerCount = (typeof ServerCount)[keyof typeof ServerCount]
const SERVER_COUNTS = 3

/** Counters per listen address: queries that did not reach a chain, by the error of their reply. */
export const DroppedCount = {
  FormErr: 0,
  NotImp: 1,
  BadVers: 2,
  Refused: 3,
  /** First index of all queries: see `queriesAt`. */
  Queries: 4,
} as const
const FAMILIES = [1, 2] as const
const DROPPED_COUNTS = DroppedCount.Queries + PROTOCOL_NAMES.length * FAMILIES.length

/** Index of the count of all queries over `protocol` from `family`, 1 or 2, in the counters of an address. */
export function queriesAt(protocol: Protocol, family: number): number {
  return DroppedCount.Queries + protocol * FAMILIES.length + family - 1
}

/** The counters of one thread, in memory that other threads can read. */
export class ServerCounts {
  readonly counts: Float64Array
  /** Keyed by listen address; each array is indexed by `DroppedCount`. */
  readonly dropped = new Map<string, Float64Array>()
  readonly #onAddress: (address: string, counts: Float64Array) => void

  /** `onAddress` is called with each address that gets counters. */
  constructor(
    counts: Float64Array = shared(SERVER_COUNTS),
    onAddress: (address: string, counts: Float64Array) => void = () => {},
  ) {
    this.counts = counts
    this.#onAddress = onAddress
  }

  add(count: ServerCount): void {
    this.counts[count]! += 1
  }

  /**
   * The counters of one listen address, by `DroppedCount`. The Corefile bounds the number of
   * addresses.
   */
  of(address: string): Float64Array {
    const known = this.dropped.get(address)
    if (known !== undefined) return known
    const counts = shared(DROPPED_COUNTS)
    this.dropped.set(address, counts)
    this.#onAddress(address, counts)
    return counts
  }
}

function shared(count: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(count * 8))
}

/**
 * The sums over all threads. One object per process: reloads pass it on, so that counters never
 * decrease.
 */
export class ServerTotals implements ServerCounters {
  readonly #threads: ServerCounts[] = []
  /** Counts of threads that ended. */
  readonly #past = new ServerCounts()
  readonly #losses: (() => Losses)[] = []

  constructor(...threads: readonly ServerCounts[]) {
    this.#threads.push(...threads)
  }

  include(thread: ServerCounts): void {
    this.#threads.push(thread)
  }

  /** Keeps the counts of a thread that ended. */
  end(thread: ServerCounts): void {
    const index = this.#threads.indexOf(thread)
    if (index === -1) return
    this.#threads.splice(index, 1)
    addTo(this.#past.counts, thread.counts)
    for (const [address, counts] of thread.dropped) addTo(this.#past.of(address), counts)
  }

  /** Adds losses that are counted elsewhere. `read` is called at each scrape. */
  includeLosses(read: () => Losses): void {
    this.#losses.push(read)
  }

  get threads(): number {
    return this.#threads.length
  }

  get ignored(): number {
    return this.#total(ServerCount.Ignored)
  }

  get panics(): number {
    return this.#total(ServerCount.Panics)
  }

  get dropped(): ReadonlyMap<string, DroppedCounters> {
    const sums = new Map<string, Float64Array>()
    for (const thread of [this.#past, ...this.#threads]) {
      for (const [address, counts] of thread.dropped) {
        const sum = sums.get(address) ?? new Float64Array(DROPPED_COUNTS)
        addTo(sum, counts)
        sums.set(address, sum)
      }
    }
    return new Map([...sums].map(([address, sum]) => [address, droppedCounters(sum)]))
  }

  get losses(): Losses {
    const total: Record<string, number> = { overloaded: this.#total(ServerCount.Overloaded) }
    for (const read of this.#losses) {
      for (const [name, count] of Object.entries(read())) total[name] = (total[name] ?? 0) + count
    }
    return total
  }

  #total(count: ServerCount): number {
    return this.#threads.reduce(
      (sum, { counts }) => sum + counts[count]!,
      this.#past.counts[count]!,
    )
  }
}

function addTo(sum: Float64Array, counts: Float64Array): void {
  counts.forEach((count, i) => {
    sum[i]! += count
  })
}

function droppedCounters(counts: Float64Array): DroppedCounters {
  return {
    formErr: counts[DroppedCount.FormErr]!,
    notImp: counts[DroppedCount.NotImp]!,
    badVers: counts[DroppedCount.BadVers]!,
    refused: counts[DroppedCount.Refused]!,
    queries: PROTOCOL_NAMES.flatMap((proto, protocol) =>
      FAMILIES.map((family) => {
        return { proto, family, count: counts[queriesAt(protocol as Protocol, family)]! }
      }),
    ),
  }
}
