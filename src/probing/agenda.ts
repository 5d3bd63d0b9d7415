import { assert } from '../base/assert.ts'

/** Looks at one address at a time: many records share a gateway, which must not take us for an attack. */
export const BUSY_MAX = 4
/** Entries that no longer count and are kept in the heap before it is made anew. */
const DEAD_MAX = 64

interface Entry {
  readonly id: string
  readonly address: string
  readonly dueMs: number
  state: 'queued' | 'parked' | 'taken' | 'dead'
}

/**
 * What is due when: the longest overdue comes first, whatever it is, and no address has more than
 * BUSY_MAX looks at a time. Knows no clock.
 *
 *     put ─▶ heap by time ─▶ take ─▶ busy ─▶ finish
 *                             └▶ parked, while the address has no room ─▶ heap
 */
export class Agenda {
  readonly #entries = new Map<string, Entry>()
  /** A binary heap; `heap[0]` is due first. */
  #heap: Entry[] = []
  readonly #busy = new Map<string, number>()
  readonly #parked = new Map<string, Entry[]>()

  /** Sets when `id` is due; it must not be taken. */
  put(id: string, address: string, dueMs: number): void {
    const known = this.#entries.get(id)
    assert(known?.state !== 'taken', 'what is taken has to be finished first')
    if (known !== undefined) known.state = 'dead'
    const entry: Entry = { id, address, dueMs, state: 'queued' }
    this.#entries.set(id, entry)
    if (this.#heap.length > 2 * this.#entries.size + DEAD_MAX) this.#compact()
    this.#push(entry)
  }

  /** Forgets what is not taken. */
  remove(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.state === 'taken') return
    entry.state = 'dead'
    this.#entries.delete(id)
  }

  /** When the next is due; Infinity = there is none, or all wait for room. */
  nextDueMs(): number {
    this.#dropDead()
    return this.#heap[0]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  /** The longest overdue whose address has room; undefined = none is due. */
  take(nowMs: number): string | undefined {
    for (;;) {
      this.#dropDead()
      const first = this.#heap[0]
      if (first === undefined || first.dueMs > nowMs) return undefined
      this.#pop()
      const busy = this.#busy.get(first.address) ?? 0
      if (busy < BUSY_MAX) {
        this.#busy.set(first.address, busy + 1)
        first.state = 'taken'
        return first.id
      }
      first.state = 'parked'
      const parked = this.#parked.get(first.address)
      if (parked === undefined) this.#parked.set(first.address, [first])
      else parked.push(first)
    }
  }

  /** Ends what `take` began. */
  finish(id: string): void {
    const entry = this.#entries.get(id)
    assert(entry?.state === 'taken', 'only what is taken can be finished')
    const { address } = entry
    entry.state = 'dead'
    this.#entries.delete(id)
    const busy = (this.#busy.get(address) ?? 0) - 1
    if (busy > 0) this.#busy.set(address, busy)
    else this.#busy.delete(address)
    this.#unpark(address)
  }

  /** They were parked in the order in which they were due. */
  #unpark(address: string): void {
    const parked = this.#parked.get(address)
    if (parked === undefined) return
    let next = parked.shift()
    while (next?.state === 'dead') next = parked.shift()
    if (parked.length === 0) this.#parked.delete(address)
    if (next === undefined) return
    next.state = 'queued'
    this.#push(next)
  }

  #dropDead(): void {
    while (this.#heap[0]?.state === 'dead') this.#pop()
  }

  #compact(): void {
    const live = this.#heap.filter((entry) => entry.state !== 'dead')
    // Sorted is a heap.
    this.#heap = live.sort((a, b) => a.dueMs - b.dueMs)
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let at = heap.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.dueMs <= entry.dueMs) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.dueMs < heap[child]!.dueMs) child++
      if (heap[child]!.dueMs >= last.dueMs) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}
