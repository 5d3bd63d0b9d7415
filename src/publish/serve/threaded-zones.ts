import type { Broadcast } from '../../base/broadcast.ts'
import { systemClock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import type { SharedValues } from '../../base/shared-values.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Locator } from '../../geo/locator.ts'
import {
  FollowedSteering,
  type SteeringSnapshotData,
  steeringSnapshotData,
} from '../../steering/snapshot-data.ts'
import { GeoWeightSteerer, STEERER_FACTORY, type SteererFactory } from '../../steering/steerer.ts'
import { SteeringTable } from '../../steering/table.ts'
import { type ArenaHandle, ZoneReader } from '../../zone/image/reader.ts'
import { ZoneImage } from '../../zone/image/writer.ts'
import { ZoneAnswerer } from '../../zone/lookup/answer.ts'
import { StaleAnswerer } from '../../zone/lookup/stale-answerer.ts'
import type { Steerer } from '../../zone/lookup/steerer.ts'
import type { LoadedSnapshot } from './snapshot/load.ts'

/** The objects that write the zones. */
export interface OpenZones {
  readonly image: ZoneImage
  readonly table: SteeringTable
}

interface ThreadedZonesParts {
  readonly log: Logger
  /** Shares a value with the data threads, which call `follow` with it. */
  broadcast<T>(follow: (value: T) => void): Broadcast<T>
  /** Its `STEERER_FACTORY`, if it has one, makes the steerers. */
  readonly shared: SharedValues
}

/** Returns the counters of this thread: see `GeoWeightSteerer`. */
type OwnCounts = () => Float64Array

/** Each thread uses a different seed. */
const newRandom = (): Random => new Random(Math.trunc(systemClock.now() + Math.random() * 2 ** 32))

/**
 * The zones of one publisher in every thread. The control thread writes them. Data threads
 * read the same memory; the control thread sends them only its location:
 *
 *     control   ZoneImage ── buffer, after each compaction ──▶ ArenaHandle   data
 *               SteeringTable ── snapshot, before zones that need it ──▶ FollowedSteering
 */
export class ThreadedZones {
  /** Undefined until the zones are served. */
  answerer: ZoneAnswerer | undefined = undefined
  readonly #log: Logger
  readonly #buffers: Broadcast<SharedArrayBuffer>
  readonly #steeringSnapshots: Broadcast<SteeringSnapshotData>
  readonly #staleness: Broadcast<boolean>
  readonly #followed: FollowedSteering
  readonly #steererOf: SteererFactory
  readonly #counts: OwnCounts | undefined
  #handle: ArenaHandle | undefined
  #served: { readonly reader: ZoneReader; readonly steerer: Steerer } | undefined
  #isStale = false

  /** `counts`: undefined = endpoints are not counted. */
  constructor(parts: ThreadedZonesParts, counts?: OwnCounts) {
    this.#log = parts.log
    this.#counts = counts
    this.#steererOf =
      parts.shared.find(STEERER_FACTORY) ??
      ((snapshots) => new GeoWeightSteerer(snapshots, newRandom(), counts?.()))
    this.#steeringSnapshots = parts.broadcast<SteeringSnapshotData>((steeringSnapshot) =>
      this.#followed.follow(steeringSnapshot),
    )
    this.#buffers = parts.broadcast<SharedArrayBuffer>((buffer) => this.#followBuffer(buffer))
    this.#staleness = parts.broadcast<boolean>((isStale) => this.#noteStale(isStale))
    this.#followed = new FollowedSteering(() => this.#steeringSnapshots.catchUp())
  }

  /**
   * Opens the objects that write the zones; call it once, on the control thread. A `loaded`
   * snapshot is served from now on, anything else after `serve`. `image`: absent = an empty one.
   */
  open(
    locator: Locator | undefined,
    loaded?: LoadedSnapshot,
    image: ZoneImage = loaded?.image ?? new ZoneImage(),
  ): OpenZones {
    const table = new SteeringTable({
      locator,
      random: newRandom(),
      onError: (reason) =>
        this.#log.error(`GEO classes were not rebuilt: ${reason}`, 'geo-classes-failed'),
      onWarning: (reason) =>
        this.#log.warning(`endpoints are not chosen by distance: ${reason}`, 'distance-off'),
      onSnapshot: (steeringSnapshot) =>
        this.#steeringSnapshots.publish(steeringSnapshotData(steeringSnapshot)),
    })
    if (loaded !== undefined) {
      table.restore(loaded.facts.policies)
      table.refresh()
    }
    if (loaded !== undefined) this.serve({ image, table })
    return { image, table }
  }

  /** Makes all threads answer from the zones, unless they already do. */
  serve({ image, table }: OpenZones): void {
    if (this.answerer !== undefined) return
    image.onSwap((buffer) => this.#buffers.publish(buffer))
    this.#buffers.publish(image.handle.buffer)
    this.#serve(image.reader(), table.steerer(newRandom(), this.#counts?.()))
  }

  /** Makes the replies of all threads say that the zones may be old, or ends that. On the control thread. */
  setStale(isStale: boolean): void {
    if (isStale === this.#isStale) return
    this.#staleness.publish(isStale)
    this.#noteStale(isStale)
  }

  #noteStale(isStale: boolean): void {
    if (isStale === this.#isStale) return
    this.#isStale = isStale
    if (this.#served !== undefined) this.#serve(this.#served.reader, this.#served.steerer)
  }

  #serve(reader: ZoneReader, steerer: Steerer): void {
    this.#served = { reader, steerer }
    this.answerer = this.#isStale
      ? new StaleAnswerer(reader, steerer)
      : new ZoneAnswerer(reader, steerer)
  }

  #followBuffer(buffer: SharedArrayBuffer): void {
    if (this.#handle !== undefined) {
      this.#handle.buffer = buffer
      return
    }
    this.#handle = { buffer }
    this.#serve(new ZoneReader(this.#handle), this.#steererOf(this.#followed))
  }
}
