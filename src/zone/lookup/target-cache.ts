import { ALIASES_MAX } from '../../dns/message/direct-answer.ts'
import { NAME_ROOM_OCTETS } from '../../dns/message/query.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import type { ZoneReader } from '../image/reader.ts'

/** Entries of each of the first steps of a chain; a power of two. */
const ENTRIES = 32
/** Few chains have more steps. Each of these has few entries; a power of two. */
const STEPS_FULL = 8
const ENTRIES_LATE = 2
const ENTRIES_ALL = STEPS_FULL * ENTRIES + (ALIASES_MAX - STEPS_FULL) * ENTRIES_LATE
const NO_BYTES = new Uint8Array(0)

/**
 * The targets of CNAMEs that were followed last, with their hashes. A published block of an image never
 * changes, so its place identifies a target. Each step of a chain has entries of its own: no step
 * replaces the target of another.
 */
export class TargetCache {
  readonly #names: NameBuffer[] = []
  /** By entry: the place of its name in `#bytes`; 0 = empty. */
  readonly #places = new Uint32Array(ENTRIES_ALL)
  #bytes: Uint8Array = NO_BYTES

  constructor() {
    for (let i = 0; i < ENTRIES_ALL; i++) this.#names.push(new NameBuffer())
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
    const entry = entryOf(step, place >> 2)
    const name = this.#names[entry]!
    if (this.#places[entry] === place) return name
    this.#places[entry] = 0
    if (place + NAME_ROOM_OCTETS > reader.bytes.length) return undefined
    if (!name.setFrom(reader.view, place)) return undefined
    this.#places[entry] = place
    return name
  }
}

function entryOf(step: number, hash: number): number {
  if (step < STEPS_FULL) return step * ENTRIES + (hash & (ENTRIES - 1))
  const late = (step - STEPS_FULL) * ENTRIES_LATE
  return STEPS_FULL * ENTRIES + late + (hash & (ENTRIES_LATE - 1))
}
