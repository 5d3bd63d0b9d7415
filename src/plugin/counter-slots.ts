import type { Transaction } from './transaction.ts'

/** Labels that every per-query metric has. */
export interface SlotLabels {
  readonly server: string
  readonly zone: string
  readonly view: string
}

/**
 * The counters of one slot. The reader copies the growth since its last read to the metrics page,
 * so that the page continues to count when a reload replaces the handler.
 */
export class Counts {
  readonly #now: Float64Array
  readonly #taken: Float64Array

  constructor(now: Float64Array) {
    this.#now = now
    this.#taken = new Float64Array(now.length)
  }

  /** Returns the growth of counter `index` since the last `take` of it. */
  take(index: number): number {
    // Another thread may be adding, so read the value once.
    const now = this.#now[index]!
    const count = now - this.#taken[index]!
    this.#taken[index] = now
    return count
  }
}

/**
 * Makes the counters of a new slot, all zero. In a data thread, they are in memory that the control
 * thread reads.
 */
type MakeCounters = (length: number, labels: SlotLabels) => Float64Array

/**
 * Counters of one handler, separate for each (server, zone, view): a block with several keys or
 * addresses has one handler for all of them. Finding a slot compares a few interned strings. The
 * first query of each combination makes its slot; the Corefile bounds their number.
 *
 * Every thread adds to its own slots, without locks: each 64-bit number is written by one thread.
 * The control thread reads those of all threads.
 */
export class CounterSlots {
  /** Counters per slot; set it before the first query. */
  length = 0
  readonly #make: MakeCounters
  readonly #servers: string[] = []
  readonly #zones: string[] = []
  readonly #views: string[] = []
  readonly #own: Float64Array[] = []
  readonly #all: { readonly labels: SlotLabels; readonly counts: Counts }[] = []

  constructor(make: MakeCounters = (length) => new Float64Array(length)) {
    this.#make = make
  }

  /** The counters that `tx` belongs to. Callers only increase them. */
  of(tx: Transaction): Float64Array {
    return this.at(tx.server.address, tx.zone, tx.view)
  }

  /** As `of`, for given labels. */
  at(server: string, zone: string, view: string): Float64Array {
    for (let i = 0; i < this.#own.length; i++) {
      if (this.#zones[i] !== zone || this.#views[i] !== view) continue
      if (this.#servers[i] === server) return this.#own[i]!
    }
    return this.#add(server, zone, view)
  }

  #add(server: string, zone: string, view: string): Float64Array {
    const labels = { server, zone, view }
    const counters = this.#make(this.length, labels)
    this.#servers.push(server)
    this.#zones.push(zone)
    this.#views.push(view)
    this.#own.push(counters)
    this.include(labels, counters)
    return counters
  }

  /** Includes counters that another thread increases. */
  include(labels: SlotLabels, counters: Float64Array): void {
    this.#all.push({ labels, counts: new Counts(counters) })
  }

  /** Visits every slot with its labels. Several slots may have the same labels. Not for the hot path. */
  forEach(visit: (counts: Counts, labels: SlotLabels) => void): void {
    for (const { counts, labels } of this.#all) visit(counts, labels)
  }
}
