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

  /** Collects the RRsets that no record has put again. Skips the SOA, since it does not come from a record. */
  collect(): void {
    for (const leftover of this.#image.endReplacing()) {
      if (leftover.type !== RRType.SOA) this.#byKey.set(keyOf(leftover), leftover)
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

  /** Removes all leftovers from the image. */
  remove(): void {
    for (const { zone, owner, type } of this.#byKey.values()) {
      if (type === DECLARED_NAME) this.#image.declareName(zone, owner, false)
      else this.#image.removeRRset(zone, owner, type)
    }
    this.#byKey.clear()
  }
}

function keyOf({ zone, owner, type }: Leftover): string {
  return `${zone} ${type} ${printLatin1(owner)}`
}
