import { addToSerial, isSerialAfter, nextSerial } from '../soa.ts'

/** A content of a zone, and the serial that it was served with. */
export interface ContentSerial {
  /** Presentation form, lower case. */
  readonly zone: string
  /** Equal for equal content. No white space. */
  readonly digest: string
  /** 1..2^32-1. */
  readonly serial: number
}

/** The serial of a content of one version of a zone. */
export interface SerialEntry extends ContentSerial {
  /** The version of the zone: its server block. No white space. */
  readonly place: string
}

interface Content {
  readonly digest: string
  readonly serial: number
}

interface Zone {
  /** The content with the latest serial of the zone, over all places. */
  top: Content
  readonly places: Map<string, Content>
}

/** Place of the latest serial if no block has it any more. */
const NO_PLACE = '-'

/** Serials of this process's zones, so that a reload of the same content keeps its serial. */
export class SerialIndex {
  readonly #zones = new Map<string, Zone>()

  /**
   * Returns the serial of a content. Unchanged content keeps its serial; other content gets a
   * serial after all that the zone was served with. A new zone gets the Unix time. `nowMs`: wall
   * clock.
   */
  serialFor(content: Omit<SerialEntry, 'serial'>, nowMs: number): number {
    const { zone: text, place, digest } = content
    const zone = this.#zones.get(text)
    if (zone === undefined) {
      const top = { digest, serial: addToSerial(Math.floor(nowMs / 1000), 0) }
      this.#zones.set(text, { top, places: new Map([[place, top]]) })
      return top.serial
    }
    const known = zone.places.get(place)
    if (known?.digest === digest) return known.serial
    // A block that is new or renamed changes nothing if its content is the content that was served
    // last.
    const isMoved = known === undefined && zone.top.digest === digest
    if (!isMoved) zone.top = { digest, serial: nextSerial(zone.top.serial) }
    zone.places.set(place, zone.top)
    return zone.top.serial
  }

  /**
   * Forgets the content of all places of a zone except these. A place that returns after others
   * served the zone must not have its old serial.
   */
  retain(zone: string, places: ReadonlySet<string>): void {
    const known = this.#zones.get(zone)?.places
    for (const place of [...(known?.keys() ?? [])]) if (!places.has(place)) known?.delete(place)
  }

  /** Entries of one zone; always includes its latest serial. */
  entriesOf(zone: string): SerialEntry[] {
    const known = this.#zones.get(zone)
    if (known === undefined) return []
    const { top, places } = known
    const entries = [...places].map(([place, content]) => ({ zone, place, ...content }))
    if (entries.some(({ serial }) => serial === top.serial)) return entries
    return [...entries, { zone, place: NO_PLACE, ...top }]
  }

  /** Loads the serials of an earlier process. Serials of this process take precedence. */
  restore(entries: readonly SerialEntry[]): void {
    for (const { zone: text, place, digest, serial } of entries) {
      const content = { digest, serial }
      const zone = this.#zones.get(text) ?? { top: content, places: new Map<string, Content>() }
      this.#zones.set(text, zone)
      if (isSerialAfter(serial, zone.top.serial)) zone.top = content
      if (place !== NO_PLACE && !zone.places.has(place)) zone.places.set(place, content)
    }
  }
}
