/** A set of names that finds those below a name. They are lower case, without a final dot. */
export class NameTree {
  readonly #names = new Set<string>()
  /** By name: names one label longer that are in the tree, or have such names below them. */
  readonly #below = new Map<string, Set<string>>()

  add(name: string): void {
    this.#names.add(name)
    for (let at = name, above = nameAbove(at); above !== ''; at = above, above = nameAbove(at)) {
      const known = this.#below.get(above)
      if (known !== undefined) {
        known.add(at)
        return
      }
      this.#below.set(above, new Set([at]))
    }
  }

  remove(name: string): void {
    this.#names.delete(name)
    for (let at = name; !this.#names.has(at) && !this.#below.has(at); ) {
      const above = nameAbove(at)
      const known = this.#below.get(above)
      known?.delete(at)
      if (known?.size !== 0) return
      this.#below.delete(above)
      at = above
    }
  }

  /** True if a name is below `name`; `name` itself does not count. */
  hasBelow(name: string): boolean {
    return this.#below.has(name)
  }

  *below(name: string): Generator<string> {
    for (const one of this.#below.get(name) ?? []) {
      if (this.#names.has(one)) yield one
      yield* this.below(one)
    }
  }
}

/** '' = the root. */
function nameAbove(name: string): string {
  const dot = name.indexOf('.')
  return dot === -1 ? '' : name.slice(dot + 1)
}
