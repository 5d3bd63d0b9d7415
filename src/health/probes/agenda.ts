import { assert } from '../../base/assert.ts'

/**
 * Maximum number of concurrent probe attempts per address. Many records share a gateway, and the
 * gateway must not mistake them for an attack.
 */
const BUSY_MAX = 4
/** Maximum number of dead entries in the heap before the heap is rebuilt. */
const DEAD_MAX = 64

interface Entry {
  readonly id: string
  readonly address: string
  readonly dueMs: number
  state: 'queued' | 'parked' | 'taken' | 'dead'
}

/**
 * Queue of probes by due time. The longest overdue probe comes first. Each address has at most
 * BUSY_MAX attempts at a time. The caller passes the time.
 *
 *     put ─▶ heap by time ─▶ take ─▶ busy ─▶ finish
 *                             └▶ parked, while the address has no room ─▶ heap
 */
export class Agenda {
  readonly #entries = new Map<string, Entry>()
  /** A binary heap; `heap[0]` has the earliest due time. */
  #heap: Entry[] = []
  readonly #busy = new Map<string, number>()
  readonly #parked = new Map<string, Entry[]>()

  /** Sets when `id` is due. The caller must not pass an `id` that is taken. */
  put(id: string, address: string, dueMs: number): void {
    const known = this.#entries.get(id)
    assert(known?.state !== 'taken', 'an entry must be finished before it starts again')
    if (known !== undefined) known.state = 'dead'
    const entry: Entry = { id, address, dueMs, state: 'queued' }
    this.#entries.set(id, entry)
    if (this.#heap.length > 2 * this.#entries.size + DEAD_MAX) this.#compact()
    this.#push(entry)
  }

  /** Removes an entry that is not taken. */
  remove(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.state === 'taken') return
    entry.state = 'dead'
    this.#entries.delete(id)
  }

  /** Due time of the next entry; Infinity = the heap is empty, or all entries wait for room. */
  nextDueMs(): number {
    this.#dropDead()
    return this.#heap[0]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  /** Returns the longest overdue entry whose address has room; undefined = no entry is due. */
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

  /** Ends the attempt that `take` began. */
  finish(id: string): void {
    const entry = this.#entries.get(id)
    assert(entry?.state === 'taken', 'only a started entry can be finished')
    const { address } = entry
    entry.state = 'dead'
    this.#entries.delete(id)
    const busy = (this.#busy.get(address) ?? 0) - 1
    if (busy > 0) this.#busy.set(address, busy)
    else this.#busy.delete(address)
    this.#unpark(address)
  }

  /** Moves parked entries to the heap, in the order in which they were due. */
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
    // A sorted array is a valid heap.
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
