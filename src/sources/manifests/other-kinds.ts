import { plural } from '../../base/plural.ts'

const LISTED_MAX = 10
/** Longer kinds are cut. */
const KIND_CHARACTERS_MAX = 63

/** Counts the objects of a directory that are of other kinds, which other programs read. */
export class OtherKinds {
  readonly #counts = new Map<string, number>()
  count = 0

  add(kind: string): void {
    this.count++
    const isListed = this.#counts.has(kind) || this.#counts.size < LISTED_MAX
    const name = isListed ? kind.slice(0, KIND_CHARACTERS_MAX) : 'others'
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  /** `ignored 3 objects of other kinds: 2 Deployment, 1 Service`. */
  print(): string {
    const counts = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
    const list = counts.map(([kind, count]) => `${count} ${kind}`).join(', ')
    return `ignored ${plural(this.count, 'object')} of other kinds: ${list}`
  }
}
