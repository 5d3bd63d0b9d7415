interface Due<K> {
  readonly key: K
  readonly dueMs: number
}

/** Keys by due time: a binary heap in which each key can be found, moved and removed. */
export class DueHeap<K> {
  readonly #heap: Due<K>[] = []
  readonly #places = new Map<K, number>()

  get size(): number {
    return this.#heap.length
  }

  keys(): Iterable<K> {
    return this.#places.keys()
  }

  /** Adds the key, or changes its due time. */
  put(key: K, dueMs: number): void {
    const due = { key, dueMs }
    const place = this.#places.get(key)
    if (place !== undefined && this.#heap[place]!.dueMs === dueMs) return
    this.#settle(due, place ?? this.#heap.push(due) - 1)
  }

  /** Returns false if the key is not there. */
  remove(key: K): boolean {
    const place = this.#places.get(key)
    if (place === undefined) return false
    this.#places.delete(key)
    const last = this.#heap.pop()!
    if (place < this.#heap.length) this.#settle(last, place)
    return true
  }

  /** The earliest due time; Infinity = the heap is empty. */
  get firstMs(): number {
    return this.#heap[0]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  /** The key with the earliest due time. */
  first(): K | undefined {
    return this.#heap[0]?.key
  }

  /** Removes and returns the key with the earliest due time, if that is not after `nowMs`. */
  take(nowMs: number): K | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.dueMs > nowMs) return undefined
    this.remove(first.key)
    return first.key
  }

  /** Puts an entry where it belongs, from a place whose entry has been removed. */
  #settle(due: Due<K>, from: number): void {
    const heap = this.#heap
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.dueMs <= due.dueMs) break
      this.#set(at, heap[parent]!)
      at = parent
    }
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.dueMs < heap[child]!.dueMs) child++
      if (heap[child]!.dueMs >= due.dueMs) break
      this.#set(at, heap[child]!)
      at = child
    }
    this.#set(at, due)
  }

  #set(at: number, due: Due<K>): void {
    this.#heap[at] = due
    this.#places.set(due.key, at)
  }
}
