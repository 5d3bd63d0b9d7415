import { namesAbove } from './host-index.ts'

/** The names of endpoints of a host. Names are lower case, without a final dot. */
export interface HostNames {
  has(name: string): boolean
  /** True for a name of an endpoint, and for each name above one. */
  hasAtOrBelow(name: string): boolean
}

export const NO_NAMES: HostNames = { has: () => false, hasAtOrBelow: () => false }

/** Counts the names of endpoints over many records, so that a change of one record costs only its own names. */
export class NameCounts implements HostNames {
  readonly #at = new Map<string, number>()
  readonly #atOrBelow = new Map<string, number>()

  add(names: Iterable<string>): void {
    this.#change(names, 1)
  }

  remove(names: Iterable<string>): void {
    this.#change(names, -1)
  }

  has(name: string): boolean {
    return this.#at.has(name)
  }

  hasAtOrBelow(name: string): boolean {
    return this.#atOrBelow.has(name)
  }

  /** The names without those of `some`, which are counted here, too. */
  except(some: NameCounts): HostNames {
    return {
      has: (name) => countOf(this.#at, name) > countOf(some.#at, name),
      hasAtOrBelow: (name) => countOf(this.#atOrBelow, name) > countOf(some.#atOrBelow, name),
    }
  }

  #change(names: Iterable<string>, by: 1 | -1): void {
    for (const name of names) {
      change(this.#at, name, by)
      change(this.#atOrBelow, name, by)
      for (const above of namesAbove(name)) change(this.#atOrBelow, above, by)
    }
  }
}

function countOf(counts: ReadonlyMap<string, number>, name: string): number {
  return counts.get(name) ?? 0
}

function change(counts: Map<string, number>, name: string, by: 1 | -1): void {
  const count = countOf(counts, name) + by
  if (count > 0) counts.set(name, count)
  else counts.delete(name)
}
