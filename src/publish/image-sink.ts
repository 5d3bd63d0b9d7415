import type { SteeringTable } from '../steering/table.ts'
import type { ZoneId } from '../zone/image/types.ts'
import type { ZoneImage } from '../zone/image/writer.ts'
import type { OwnerSet } from './owner-sets.ts'
import type { RRsetSink } from './record-zone.ts'

/** What the sink writes to. */
export type RRsetStore = Pick<ZoneImage, 'putRRset' | 'removeRRset' | 'declareName'>

/**
 * Puts the RRsets of a zone into a zone image, with encoded steering. The caller publishes the
 * image.
 */
export class ImageSink implements RRsetSink {
  readonly #image: RRsetStore
  readonly #zone: ZoneId
  readonly #table: SteeringTable

  constructor(image: RRsetStore, zone: ZoneId, table: SteeringTable) {
    this.#image = image
    this.#zone = zone
    this.#table = table
  }

  put(owner: Uint8Array, set: OwnerSet): void {
    const { type, ttlSeconds, rdata, candidates, sticky, failover } = set
    const steering = this.#table.compose(candidates, type, sticky, failover)
    this.#image.putRRset(this.#zone, owner, { type, ttlSeconds, rdata, steering })
  }

  remove(owner: Uint8Array, type: number): void {
    this.#image.removeRRset(this.#zone, owner, type)
  }

  declare(owner: Uint8Array, isDeclared: boolean): void {
    this.#image.declareName(this.#zone, owner, isDeclared)
  }
}
