import { HostIndex, namesAbove } from './trust/host-index.ts'

/** The hosts that peers have endpoints of, and those of them that changes of our own records concern. */
export class PeeredHosts {
  readonly #hosts = new Set<string>()
  readonly #index = new HostIndex()
  /** Hosts whose own records changed while peers have hosts below them. */
  readonly #changedAbove = new Set<string>()

  has(host: string): boolean {
    return this.#hosts.has(host)
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#hosts.values()
  }

  set(host: string, isPeered: boolean): void {
    if (isPeered === this.#hosts.has(host)) return
    if (isPeered) {
      this.#hosts.add(host)
      this.#index.add(host)
    } else {
      this.#hosts.delete(host)
      this.#index.remove(host)
    }
  }

  /** Notes a change of our records of a host, for `takeBelow`. */
  noteOwn(host: string): void {
    if (this.#index.hasBelow(host)) this.#changedAbove.add(host)
  }

  /** Returns the hosts that are below one whose own records changed since the last call. */
  takeBelow(): readonly string[] {
    if (this.#changedAbove.size === 0) return []
    const below = [...this.#hosts].filter((host) =>
      [...namesAbove(host)].some((name) => this.#changedAbove.has(name)),
    )
    this.#changedAbove.clear()
    return below
  }
}
