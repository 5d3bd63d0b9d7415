interface Use<T> {
  readonly item: T
  users: number
}

/** Items that several users share, by key: made for the first user, ended after the last. */
export class RefCounted<T> {
  readonly #uses = new Map<string, Use<T>>()
  readonly #end: (item: T) => void

  constructor(end: (item: T) => void) {
    this.#end = end
  }

  /** Calls `make` if no user holds the item yet. `release` ends the use; only its first call counts. */
  acquire(key: string, make: () => T): { readonly item: T; readonly release: () => void } {
    const use = this.#uses.get(key) ?? { item: make(), users: 0 }
    this.#uses.set(key, use)
    use.users++
    let isReleased = false
    const release = (): void => {
      if (isReleased) return
      isReleased = true
      if (--use.users > 0) return
      this.#uses.delete(key)
      this.#end(use.item)
    }
    return { item: use.item, release }
  }
}
