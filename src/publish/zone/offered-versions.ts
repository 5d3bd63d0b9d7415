import type { SetKey, VersionSource, ZoneVersions } from '../../xfr/zone-versions.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'

/** Maximum of noted RRsets per zone between two publishes. Above it, the whole zone is compared. */
const NOTED_MAX = 10_000

/** A zone with the data that identifies its version. */
interface OfferedZone {
  /** Undefined = it has no version. */
  readonly id: ZoneId | undefined
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly serial: number
}

/** Offers every version of the zones to `transfer`, together with the RRsets that changed. */
export class OfferedVersions {
  readonly #image: ZoneImage
  readonly #versions: ZoneVersions
  readonly #source: VersionSource
  /** Serials that were offered. */
  readonly #serials = new Map<ZoneId, number>()
  /** RRsets changed since; undefined = too many, or not known. */
  readonly #noted = new Map<ZoneId, SetKey[] | undefined>()

  /** The arena of the versions offered last. */
  #buffer: SharedArrayBuffer | undefined

  constructor(image: ZoneImage, versions: ZoneVersions, source: VersionSource) {
    this.#image = image
    this.#versions = versions
    this.#source = source
  }

  /** Notes that an RRset was put or removed. */
  note(zone: ZoneId, owner: Uint8Array, type: number): void {
    // The first version has no predecessor to compare with.
    if (!this.#versions.isWatched || !this.#serials.has(zone)) return
    const noted = this.#noted.has(zone) ? this.#noted.get(zone) : []
    noted?.push({ owner, type })
    this.#noted.set(zone, noted !== undefined && noted.length > NOTED_MAX ? undefined : noted)
  }

  /** Notes that anything may have changed in each zone. */
  noteAll(): void {
    for (const zone of this.#serials.keys()) this.#noted.set(zone, undefined)
  }

  /**
   * Offers the zones whose serial is new, and after a compaction all: nothing keeps the memory of the arena before.
   * Call it after each publish.
   */
  offer(zones: readonly OfferedZone[]): void {
    const { buffer } = this.#image.handle
    const hasMoved = buffer !== this.#buffer
    this.#buffer = buffer
    for (const { id, apex, serial } of zones) {
      if (id === undefined || serial === 0) continue
      const isNew = this.#serials.get(id) !== serial
      if (!isNew && !hasMoved) continue
      const changed = isNew && this.#noted.has(id) ? this.#noted.get(id) : []
      if (isNew) this.#noted.delete(id)
      this.#serials.set(id, serial)
      const imageVersion = this.#image.version
      this.#source.put({ zone: apex, serial, buffer, imageVersion }, changed)
    }
  }
}
