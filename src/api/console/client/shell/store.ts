/** A value whose changes others follow. */
export class Store<T> {
  #value: T
  readonly #followers = new Set<() => void>()

  constructor(value: T) {
    this.#value = value
  }

  get value(): T {
    return this.#value
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const follow of [...this.#followers]) follow()
  }

  /** Returns the function that ends it. */
  follow(follower: () => void): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }
}
