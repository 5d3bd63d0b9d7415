/** Sets of values by key. */
export class SetsByKey {
  readonly #sets = new Map<string, Set<string>>()

  of(key: string): Iterable<string> {
    return this.#sets.get(key) ?? []
  }

  has(key: string): boolean {
    return this.#sets.has(key)
  }

  add(key: string, value: string): void {
    const known = this.#sets.get(key)
    if (known === undefined) this.#sets.set(key, new Set([value]))
    else known.add(value)
  }

  delete(key: string, value: string): void {
    const known = this.#sets.get(key)
    known?.delete(value)
    if (known?.size === 0) this.#sets.delete(key)
  }
}
