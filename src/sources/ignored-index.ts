import type { IgnoredPart } from '../dnsrecord/validate/ignored.ts'
import type { ProblemGroup, ProblemText } from '../telemetry/problems.ts'

/** The ignored parts of one object. */
export interface IgnoredObject {
  /** `namespace/name` of a record, or another name of the object. */
  readonly key: string
  readonly parts: readonly IgnoredPart[]
}

interface Held {
  readonly objects: readonly IgnoredObject[]
  readonly place: () => string
}

const KINDS: readonly IgnoredPart['kind'][] = ['ignored-record', 'failover-list', 'ignored-part']

/** What nothing reads in the objects of a source: kept while the objects have it. `Holder`: what has these objects. */
export class IgnoredIndex<Holder> {
  readonly #holders = new Map<Holder, Held>()
  readonly #counts = new Map<IgnoredPart['kind'], number>()

  /**
   * Replaces the objects of a holder; empty = it is gone, or nothing in it is ignored. `place`: returns where it is
   * now.
   */
  set(holder: Holder, objects: readonly IgnoredObject[], place: () => string): void {
    if (objects.length === 0 && this.#holders.size === 0) return
    this.#count(this.#holders.get(holder)?.objects ?? [], -1)
    this.#count(objects, 1)
    if (objects.length === 0) this.#holders.delete(holder)
    else this.#holders.set(holder, { objects, place })
  }

  /** `of`: name of the source. */
  groups(of: string): ProblemGroup[] {
    return KINDS.map((kind) => {
      return { kind, of, count: this.#counts.get(kind) ?? 0, problems: this.#list(kind) }
    })
  }

  *#list(kind: IgnoredPart['kind']): Generator<ProblemText> {
    for (const { objects, place } of this.#holders.values()) {
      for (const { key, parts } of objects) {
        for (const part of parts) {
          if (part.kind !== kind) continue
          yield { place: place(), object: key, reason: `${key}: ${part.message}` }
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
