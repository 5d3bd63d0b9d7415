import { KDRNT } from '../records/local-zone.ts'
import { type PackedRecord, unpackPlace } from '../records/pack.ts'
import { lowerNameKey, scanHost } from '../records/validate/names.ts'

/**
 * The zones that are served from one source, over all server blocks. A record belongs to the
 * longest zone that is a suffix of its root host, in any block.
 */
export class ZoneOwnership {
  readonly #counts = new Map<string, number>()
  readonly #listeners = new Set<(zone: Uint8Array) => void>()
  /** How many times zones were added or removed: listeners get each zone of one time alone. */
  changes = 0
  /** Cache of the last label and its key, because most records have the same label. */
  #lastLabel = ''
  #lastKey = ''

  /** Adds zones; returns the function that removes them. `zones`: lower-case wire names. */
  claim(zones: readonly Uint8Array[]): () => void {
    this.#count(zones, 1)
    return () => this.#count(zones, -1)
  }

  /** Calls `listener` with each zone that was added or removed. */
  onChange(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Returns `lowerNameKey` of the record's zone: the zone of its label, else the longest; '' =
   * none.
   */
  zoneKeyOf(packed: PackedRecord): string {
    const { zoneLabel, rootHostKey } = unpackPlace(packed)
    if (zoneLabel !== '') {
      if (zoneLabel !== this.#lastLabel) {
        const zone = scanHost(zoneLabel)
        this.#lastKey = zone === undefined ? '' : lowerNameKey(zone)
        this.#lastLabel = zoneLabel
      }
      return this.#counts.has(this.#lastKey) ? this.#lastKey : ''
    }
    return this.zoneKeyOfHost(rootHostKey)
  }

  /** Returns the longest zone of a host; '' = none. Both are `lowerNameKey`s. */
  zoneKeyOfHost(host: string): string {
    for (let key = host; ; key = key.slice(1 + key.charCodeAt(0))) {
      // A root host under kdrnt without the label is an ordinary name that no zone serves.
      if (this.#counts.has(key) && key !== KDRNT_KEY) return key
      if (key.charCodeAt(0) === 0) return ''
    }
  }

  #count(zones: readonly Uint8Array[], step: number): void {
    const changed: Uint8Array[] = []
    for (const zone of zones) {
      const key = lowerNameKey(zone)
      const count = (this.#counts.get(key) ?? 0) + step
      if (count > 0) this.#counts.set(key, count)
      else this.#counts.delete(key)
      if (count === 0 || (count === 1 && step === 1)) changed.push(zone)
    }
    this.changes++
    for (const zone of changed) for (const listener of this.#listeners) listener(zone)
  }
}

const KDRNT_KEY = lowerNameKey(scanHost(KDRNT)!)
