import type { SetKey, VersionSource, ZoneVersions } from '../../plugin/zone-versions.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'

/** RRsets noted of one zone between two publishes; beyond it, all of the zone is looked through. */
const NOTED_MAX = 10_000

/** A zone, as far as its versions go. */
export interface OfferedZone {
  readonly id: ZoneId
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly serial: number
}

/** Lets `transfer` have every version of the zones, and know what changed in it. */
export class OfferedVersions {
  readonly #image: ZoneImage
  readonly #versions: ZoneVersions
  readonly #source: VersionSource
  /** Serials that were offered. */
  readonly #serials = new Map<ZoneId, number>()
  /** RRsets changed since; undefined = too many, or not known. */
  readonly #noted = new Map<ZoneId, SetKey[] | undefined>()

  constructor(image: ZoneImage, versions: ZoneVersions, source: VersionSource) {
    this.#image = image
    this.#versions = versions
    this.#source = source
  }

  /** An RRset was put or removed. */
  note(zone: ZoneId, owner: Uint8Array, type: number): void {
    // Nobody asks what changed from nothing to the first version.
    if (!this.#versions.isWatched || !this.#serials.has(zone)) return
    const noted = this.#noted.has(zone) ? this.#noted.get(zone) : []
    noted?.push({ owner, type })
    this.#noted.set(zone, noted !== undefined && noted.length > NOTED_MAX ? undefined : noted)
  }

  /** Something was changed in any zone. */
  noteAll(): void {
    for (const zone of this.#serials.keys()) this.#noted.set(zone, undefined)
  }

  /** To be called after each publish: offers the zones whose serial is new. */
  offer(zones: readonly OfferedZone[]): void {
    const { buffer } = this.#image.handle
    for (const { id, apex, serial } of zones) {
      if (this.#serials.get(id) === serial) continue
      const changed = this.#noted.has(id) ? this.#noted.get(id) : []
      this.#noted.delete(id)
      this.#serials.set(id, serial)
      const imageVersion = this.#image.version
      this.#source.put({ zone: apex, serial, buffer, imageVersion }, changed)
    }
  }
}
