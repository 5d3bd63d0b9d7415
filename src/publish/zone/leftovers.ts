import { printLatin1 } from '../../base/latin1.ts'
import { RRType } from '../../dns/iana/types.ts'
import { DECLARED_NAME, type Leftover } from '../../zone/image/replacement.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'

/**
 * RRsets, and names of empty answers, that a snapshot had and no record has. The record was deleted,
 * or its file can't be read at the moment.
 */
export class Leftovers {
  readonly #image: ZoneImage
  readonly #byKey = new Map<string, Leftover>()

  constructor(image: ZoneImage) {
    this.#image = image
  }

  get count(): number {
    return this.#byKey.size
  }

  /**
   * Collects the RRsets that no record has put again. Skips the SOA, and those that `isMade` names: they do not come
   * from records.
   */
  collect(isMade: (leftover: Leftover) => boolean): void {
    for (const leftover of this.#image.endReplacing()) {
      const isOfRecords = leftover.type !== RRType.SOA && !isMade(leftover)
      if (isOfRecords) this.#byKey.set(keyOf(leftover), leftover)
    }
  }

  /** Notes that a record has put or removed this since. */
  settle(leftover: Leftover): void {
    if (this.#byKey.size > 0) this.#byKey.delete(keyOf(leftover))
  }

  countOf(zone: ZoneId): number {
    let count = 0
    for (const leftover of this.#byKey.values()) if (leftover.zone === zone) count++
    return count
  }

  /** Removes the leftovers from the image, except those that `isKept` names; returns the others. */
  remove(isKept: (leftover: Leftover) => boolean): Leftover[] {
    const removed = [...this.#byKey.values()].filter((leftover) => !isKept(leftover))
    for (const leftover of removed) {
      const { zone, owner, type } = leftover
      if (type === DECLARED_NAME) this.#image.declareName(zone, owner, false)
      else this.#image.removeRRset(zone, owner, type)
      this.#byKey.delete(keyOf(leftover))
    }
    return removed
  }
}

function keyOf({ zone, owner, type }: Leftover): string {
  return `${zone} ${type} ${printLatin1(owner)}`
}
