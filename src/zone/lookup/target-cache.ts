import { ALIASES_MAX } from '../../dns/message/direct-answer.ts'
import { NAME_ROOM_OCTETS } from '../../dns/message/query.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import type { ZoneReader } from '../image/reader.ts'

/** Entries per step of a chain; a power of two. */
const ENTRIES = 32
const NO_BYTES = new Uint8Array(0)

/**
 * The targets of CNAMEs that were followed last, with their hashes. A published block of an image never
 * changes, so its place identifies a target. Each step of a chain has entries of its own: no step
 * replaces the target of another.
 */
export class TargetCache {
  readonly #names: NameBuffer[] = []
  /** By entry: the place of its name in `#bytes`; 0 = empty. */
  readonly #places = new Uint32Array(ALIASES_MAX * ENTRIES)
  #bytes: Uint8Array = NO_BYTES

  constructor() {
    for (let i = 0; i < ALIASES_MAX * ENTRIES; i++) this.#names.push(new NameBuffer())
  }

  /**
   * Returns the name at `place` of the image for step `step` of a chain; undefined if it is not a
   * name, or too close to the end of the image. It is valid until the next call with this step. @hot
   */
  find(reader: ZoneReader, place: number, step: number): HashedName | undefined {
    if (reader.bytes !== this.#bytes) {
      this.#bytes = reader.bytes
      this.#places.fill(0)
    }
    const entry = step * ENTRIES + ((place >> 2) & (ENTRIES - 1))
    const name = this.#names[entry]!
    if (this.#places[entry] === place) return name
    this.#places[entry] = 0
    if (place + NAME_ROOM_OCTETS > reader.bytes.length) return undefined
    if (!name.setFrom(reader.view, place)) return undefined
    this.#places[entry] = place
    return name
  }
}
