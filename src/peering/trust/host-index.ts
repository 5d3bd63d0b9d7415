/** Counts the hosts below each name. Names are lower case, without a final dot. */
export class HostIndex {
  readonly #below = new Map<string, number>()

  add(host: string): void {
    for (const name of namesAbove(host)) this.#below.set(name, (this.#below.get(name) ?? 0) + 1)
  }

  remove(host: string): void {
    for (const name of namesAbove(host)) {
      const count = (this.#below.get(name) ?? 0) - 1
      if (count > 0) this.#below.set(name, count)
      else this.#below.delete(name)
    }
  }

  /** True if a host is below `name`; `name` itself does not count. */
  hasBelow(name: string): boolean {
    return this.#below.has(name)
  }
}

/** Yields the names above a name, from its parent to the top-level domain. */
export function* namesAbove(name: string): Generator<string> {
  for (let at = name.indexOf('.'); at !== -1; at = name.indexOf('.', at + 1)) {
    yield name.slice(at + 1)
  }
}
