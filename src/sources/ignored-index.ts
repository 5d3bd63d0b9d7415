import type { ProblemGroup, ProblemText } from '../base/telemetry/problems.ts'
import type { IgnoredPart } from '../records/validate/ignored.ts'

/** The ignored parts of one object. */
export interface IgnoredObject {
  /** `namespace/name` of a record, or another name of the object. */
  readonly key: string
  readonly parts: readonly PlacedPart[]
}

interface PlacedPart extends IgnoredPart {
  /** Lines before it in its document; missing = it was not searched. */
  readonly lineOffset?: number
}

interface Held {
  readonly objects: readonly IgnoredObject[]
  readonly place: (lineOffset: number) => string
}

const KINDS: readonly IgnoredPart['kind'][] = ['ignored-record', 'ignored-part']

/** What nothing reads in the objects of a source: kept while the objects have it. `Holder`: what has these objects. */
export class IgnoredIndex<Holder> {
  readonly #holders = new Map<Holder, Held>()
  readonly #byKind = new Map(KINDS.map((kind) => [kind, new Set<Held>()]))
  readonly #counts = new Map<IgnoredPart['kind'], number>()

  /**
   * Replaces the objects of a holder; empty = it was removed, or nothing in it is ignored. `place`: returns the
   * current place of one of its lines.
   */
  set(holder: Holder, objects: readonly IgnoredObject[], place: Held['place']): void {
    if (objects.length === 0 && this.#holders.size === 0) return
    const before = this.#holders.get(holder)
    if (before !== undefined) {
      this.#count(before.objects, -1)
      for (const held of this.#byKind.values()) held.delete(before)
    }
    this.#holders.delete(holder)
    if (objects.length === 0) return
    const held = { objects, place }
    this.#holders.set(holder, held)
    this.#count(objects, 1)
    for (const { parts } of objects) for (const { kind } of parts) this.#byKind.get(kind)!.add(held)
  }

  /** `of`: name of the source. */
  groups(of: string): ProblemGroup[] {
    return KINDS.map((kind) => {
      return { kind, of, count: this.#counts.get(kind) ?? 0, problems: this.#list(kind) }
    })
  }

  *#list(kind: IgnoredPart['kind']): Generator<ProblemText> {
    for (const { objects, place } of this.#byKind.get(kind)!) {
      for (const { key, parts } of objects) {
        for (const part of parts) {
          if (part.kind !== kind) continue
          const reason = `${key}: ${part.message}`
          yield { place: place(part.lineOffset ?? 0), object: key, reason }
        }
      }
    }
  }

  #count(objects: readonly IgnoredObject[], step: 1 | -1): void {
    for (const { parts } of objects) {
      for (const { kind } of parts) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + step)
    }
  }
}
