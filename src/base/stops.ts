/** Functions to run at the end, last first. One that is added after the end runs at once. */
export class Stops {
  readonly #stops: (() => void)[] = []
  isClosed = false

  add(...stops: readonly (() => void)[]): void {
    if (this.isClosed) for (const stop of stops) stop()
    else this.#stops.push(...stops)
  }

  close(): void {
    this.isClosed = true
    for (const stop of this.#stops.splice(0).reverse()) stop()
  }
}
