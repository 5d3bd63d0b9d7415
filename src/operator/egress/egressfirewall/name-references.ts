/** Which names the objects use: a name without a user is not in use. */
export class NameReferences {
  readonly #namesOf = new Map<string, ReadonlySet<string>>()
  readonly #users = new Map<string, number>()

  /** Number of names in use. */
  get size(): number {
    return this.#users.size
  }

  has(name: string): boolean {
    return this.#users.has(name)
  }

  /** Replaces the names of an object. Returns the names that are in use since, or no longer. */
  set(key: string, names: ReadonlySet<string>): readonly string[] {
    const before = this.#namesOf.get(key) ?? new Set()
    if (names.size > 0) this.#namesOf.set(key, names)
    else this.#namesOf.delete(key)
    const changed: string[] = []
    for (const name of names) if (!before.has(name) && this.#count(name, 1)) changed.push(name)
    for (const name of before) if (!names.has(name) && this.#count(name, -1)) changed.push(name)
    return changed
  }

  /** Returns whether the use of the name began or ended. */
  #count(name: string, change: 1 | -1): boolean {
    const count = (this.#users.get(name) ?? 0) + change
    if (count > 0) this.#users.set(name, count)
    else this.#users.delete(name)
    return change === 1 ? count === 1 : count === 0
  }
}
