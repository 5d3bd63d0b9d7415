import type { Transaction } from './transaction.ts'

/**
 * Integer counters of one slot, as many as `length`. Whoever copies them to the metrics page takes
 * what came since it last did, so that the page goes on counting where a reload replaces the handler.
 */
export class Counts {
  /** Add to these, and never take away. */
  readonly now: Float64Array
  readonly #taken: Float64Array

  constructor(length: number) {
    this.now = new Float64Array(length)
    this.#taken = new Float64Array(length)
  }

  /** What came to counter `index` since the last `take` of it. */
  take(index: number): number {
    const count = this.now[index]! - this.#taken[index]!
    this.#taken[index] = this.now[index]!
    return count
  }
}

/** Labels that every per-query metric has. */
export interface SlotLabels {
  readonly server: string
  readonly zone: string
  readonly view: string
}

/**
 * Counters of one handler, kept apart by (server, zone, view): a block with several keys or addresses
 * has one handler for all of them. Finding a slot compares a few interned strings; the first query of
 * each combination makes its slot, and the Corefile bounds how many there are.
 */
export class CounterSlots<T> {
  readonly #make: () => T
  readonly #servers: string[] = []
  readonly #zones: string[] = []
  readonly #views: string[] = []
  readonly #slots: T[] = []

  constructor(make: () => T) {
    this.#make = make
  }

  /** The counters that `tx` belongs to. */
  of(tx: Transaction): T {
    const server = tx.server.address
    for (let i = 0; i < this.#slots.length; i++) {
      if (this.#zones[i] !== tx.zone || this.#views[i] !== tx.view) continue
      if (this.#servers[i] === server) return this.#slots[i]!
    }
    return this.#add(server, tx.zone, tx.view)
  }

  #add(server: string, zone: string, view: string): T {
    const slot = this.#make()
    this.#servers.push(server)
    this.#zones.push(zone)
    this.#views.push(view)
    this.#slots.push(slot)
    return slot
  }

  /** Visits every slot with its labels. Not for the hot path. */
  forEach(visit: (slot: T, labels: SlotLabels) => void): void {
    for (const [i, slot] of this.#slots.entries()) {
      const labels = { server: this.#servers[i]!, zone: this.#zones[i]!, view: this.#views[i]! }
      visit(slot, labels)
    }
  }
}
