import { assert } from '../../base/assert.ts'

/**
 * Concurrent attempts per address that is healthy. Many records share a gateway, and the gateway must not mistake them
 * for an attack.
 */
const BUSY_MIN = 4
/** Loads are in thousandths, as integers: sums of fractions would drift. */
const LOAD_UNIT = 1000
/** Maximum number of dead entries in the heap before the heap is rebuilt. */
const DEAD_MAX = 64

interface Entry {
  readonly id: string
  readonly address: string
  readonly dueMs: number
  readonly load: number
  state: 'queued' | 'parked' | 'taken' | 'dead'
}

/** What is known of an address while it has entries. */
interface Place {
  /** Entries, those that are taken included. */
  count: number
  /** Sum of their loads. */
  load: number
  busy: number
  /** The attempt that ended last was a success, or none has ended. */
  isHealthy: boolean
  readonly parked: Entry[]
}

/**
 * Queue of probes by due time. The longest overdue probe comes first. The caller passes the time. Each address has four
 * attempts at a time. One that fails has as many as its probes need if none gets an answer, because each host of a dead
 * address must be found down in time.
 *
 *     put ─▶ heap by time ─▶ take ─▶ busy ─▶ finish
 *                             └▶ parked, while the address has no room ─▶ heap
 */
export class Agenda {
  readonly #entries = new Map<string, Entry>()
  /** A binary heap; `heap[0]` has the earliest due time. */
  #heap: Entry[] = []
  readonly #places = new Map<string, Place>()

  /**
   * Sets when `id` is due. The caller must not pass an `id` that is taken. `share`: the part of its interval that an
   * attempt without an answer takes, 0 to 1.
   */
  put(id: string, address: string, dueMs: number, share: number): void {
    const known = this.#entries.get(id)
    assert(known?.state !== 'taken', 'an entry must be finished before it starts again')
    if (known !== undefined) this.#drop(known)
    const load = Math.ceil(share * LOAD_UNIT)
    const entry: Entry = { id, address, dueMs, load, state: 'queued' }
    this.#entries.set(id, entry)
    const place = this.#places.get(address) ?? emptyPlace()
    this.#places.set(address, place)
    place.count++
    place.load += load
    if (this.#heap.length > 2 * this.#entries.size + DEAD_MAX) this.#compact()
    this.#push(entry)
    this.#unpark(place)
  }

  /** Removes an entry that is not taken. */
  remove(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.state === 'taken') return
    this.#drop(entry)
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
      const place = this.#places.get(first.address)!
      if (roomOf(place) > 0) {
        place.busy++
        first.state = 'taken'
        return first.id
      }
      first.state = 'parked'
      place.parked.push(first)
    }
  }

  /** Ends the attempt that `take` began. */
  finish(id: string, isHealthy: boolean): void {
    const entry = this.#entries.get(id)
    assert(entry?.state === 'taken', 'only a started entry can be finished')
    const place = this.#places.get(entry.address)!
    place.busy--
    place.isHealthy = isHealthy
    this.#drop(entry)
    this.#unpark(place)
  }

  #drop(entry: Entry): void {
    entry.state = 'dead'
    this.#entries.delete(entry.id)
    const place = this.#places.get(entry.address)!
    place.count--
    place.load -= entry.load
    if (place.count === 0) this.#places.delete(entry.address)
  }

  /** Moves parked entries to the heap, in the order in which they were due, as many as have room. */
  #unpark(place: Place): void {
    const { parked } = place
    for (let room = roomOf(place); room > 0 && parked.length > 0; ) {
      const next = parked.shift()!
      if (next.state === 'dead') continue
      next.state = 'queued'
      this.#push(next)
      room--
    }
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

function emptyPlace(): Place {
  return { count: 0, load: 0, busy: 0, isHealthy: true, parked: [] }
}

function roomOf({ load, busy, isHealthy }: Place): number {
  const needed = isHealthy ? 0 : Math.ceil(load / LOAD_UNIT)
  return Math.max(BUSY_MIN, needed) - busy
}
