import type { Transaction } from './transaction.ts'

/** Labels that every per-query metric has. */
export interface SlotLabels {
  readonly server: string
  readonly zone: string
  readonly view: string
}

/**
 * The counters of one slot. Whoever copies them to the metrics page takes what came since it last did,
 * so that the page goes on counting where a reload replaces the handler.
 */
export class Counts {
  readonly #now: Float64Array
  readonly #taken: Float64Array

  constructor(now: Float64Array) {
    this.#now = now
    this.#taken = new Float64Array(now.length)
  }

  /** What came to counter `index` since the last `take` of it. */
  take(index: number): number {
    // Another thread may be adding: it is read once.
    const now = this.#now[index]!
    const count = now - this.#taken[index]!
    this.#taken[index] = now
    return count
  }
}

/** Makes the counters of a new slot, all zero. A data thread makes them where the control thread reads. */
export type MakeCounters = (length: number, labels: SlotLabels) => Float64Array

/**
 * Counters of one handler, kept apart by (server, zone, view): a block with several keys or addresses
 * has one handler for all of them. Finding a slot compares a few interned strings; the first query of
 * each combination makes its slot, and the Corefile bounds how many there are.
 *
 * Every thread adds to slots of its own, without locks: 64-bit words, each written by one thread. The
 * control thread reads those of all.
 */
export class CounterSlots {
  /** Counters of a slot: set before the first query. */
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

  /** The counters that `tx` belongs to: add to them, and never take away. */
  of(tx: Transaction): Float64Array {
    return this.at(tx.server.address, tx.zone, tx.view)
  }

  /** The same, of a place. */
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

  /** Counts in the slot of another thread from now on. */
  include(labels: SlotLabels, counters: Float64Array): void {
    this.#all.push({ labels, counts: new Counts(counters) })
  }

  /** Visits every slot with its labels; several may have the same. Not for the hot path. */
  forEach(visit: (counts: Counts, labels: SlotLabels) => void): void {
    for (const { counts, labels } of this.#all) visit(counts, labels)
  }
}
