const TRANSFERS_MAX = 8
/** Maximum of concurrent transfers from one primary, so that a hanging primary leaves room for the others. */
const TRANSFERS_PER_HOST_MAX = 4

interface Waiting {
  /** Address of the primary, which may change while the transfer waits. */
  readonly hostOf: () => string
  readonly start: () => void
}

/** Limits the concurrent transfers of one directive. Those that have waited longest start first. */
export class TransferSlots {
  readonly #waiting = new Set<Waiting>()
  #running = 0
  /** Number of transfers, by address of the primary. */
  readonly #runningFrom = new Map<string, number>()

  /** Runs `transfer` as soon as there is room. `transfer` must not reject. */
  async run(hostOf: () => string, transfer: () => Promise<void>): Promise<void> {
    const host = await new Promise<string>((resolve) => {
      this.#waiting.add({ hostOf, start: () => resolve(hostOf()) })
      this.#fill()
    })
    await transfer()
    this.#count(host, -1)
    this.#fill()
  }

  #fill(): void {
    for (const waiting of this.#waiting) {
      if (this.#running >= TRANSFERS_MAX) return
      const host = waiting.hostOf()
      if ((this.#runningFrom.get(host) ?? 0) >= TRANSFERS_PER_HOST_MAX) continue
      this.#waiting.delete(waiting)
      this.#count(host, 1)
      waiting.start()
    }
  }

  #count(host: string, change: 1 | -1): void {
    this.#running += change
    const fromHost = (this.#runningFrom.get(host) ?? 0) + change
    if (fromHost === 0) this.#runningFrom.delete(host)
    else this.#runningFrom.set(host, fromHost)
  }
}
