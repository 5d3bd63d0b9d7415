/** Counts queries in flight. `wait` resolves when none is left, or after a time limit. */
export class Drain {
  readonly #limitMs: number
  #inFlight = 0
  #whenEmpty: (() => void) | undefined = undefined

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  enter(): void {
    this.#inFlight++
  }

  leave(): void {
    this.#inFlight--
    if (this.#inFlight === 0) this.#whenEmpty?.()
  }

  wait(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#limitMs)
      this.#whenEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
