/** Samples one of `every` queries of a thread, not the first ones. */
export class Sampler {
  readonly #every: number
  #left: number

  constructor(every: number) {
    this.#every = every
    this.#left = every
  }

  /** @hot */
  isNext(): boolean {
    this.#left--
    if (this.#left !== 0) return false
    this.#left = this.#every
    return true
  }
}
