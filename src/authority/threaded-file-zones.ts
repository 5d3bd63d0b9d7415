import type { Broadcast } from '../base/broadcast.ts'
import { EventLog } from '../base/telemetry/event-log.ts'
import { type ZoneStatus, zoneWithoutRecords } from '../base/telemetry/status.ts'
import { placeOf } from '../plugin/block-place.ts'
import type { DirectivePart } from '../plugin/description.ts'
import type { SetupContext } from '../plugin/directive.ts'
import { type SetKey, type VersionSource, ZONE_VERSIONS } from '../xfr/zone-versions.ts'
import { ZoneReader } from '../zone/image/reader.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { SignatureReport } from '../zone/zonefile/check-signatures.ts'
import { answererOf, type VersionMemory } from './file-zone.ts'
import { FileZoneTable, type ServedZone } from './file-zones.ts'
import { SignatureWatch } from './signature-watch.ts'

/** A zone in the form that is sent to other threads. */
interface PublishedZone {
  readonly zone: Uint8Array
  readonly shared: VersionMemory | undefined
  readonly isElsewhere: boolean | undefined
}

/** A zone in the form of its owner, on the control thread. */
export interface OwnedZone extends ServedZone {
  readonly zoneText: string
  /** The data of the version in force for other threads; undefined = no version is in force. */
  readonly shared: VersionMemory | undefined
  /** File or primary that it comes from; undefined = not known. */
  readonly path?: string
  /** Serial of the SOA in force. */
  readonly serial: number
  /** Changes since the version published before; undefined = anything may have changed. */
  readonly changed?: readonly SetKey[] | undefined
  /** What its owner found in the version in force, and logged; undefined = the owner did not check it. */
  readonly signatures?: SignatureReport | undefined
}

interface LoadedVersion {
  readonly zone: string
  readonly serial: number
}

/** Zones of one batch that get an event each. */
const LOGGED_MAX = 20

/**
 * The zones of one directive in every thread: the control thread loads them, and the others read
 * the same images.
 */
export class ThreadedFileZones {
  readonly table = new FileZoneTable()
  /** Belongs to the description of the directive. */
  readonly part: DirectivePart
  readonly #broadcast: Broadcast<readonly PublishedZone[]>
  /** The versions published last, in order, as text. */
  #published = ''
  readonly #versions: VersionSource
  /** By text of the zone: the content of `#versions`, as text. */
  readonly #offered = new Map<string, { zone: Uint8Array; text: string }>()
  /** In other threads: the answerer of each version. */
  #answerers: ReadonlyMap<number, ZoneAnswerer> = new Map()

  /** See `FileZoneOptions`. False if the directive `minimal` would remove the records again. */
  readonly nsInAuthority: boolean

  readonly #watch: SignatureWatch
  readonly #directive: string
  readonly #events: () => EventLog | undefined
  #owned: readonly OwnedZone[] = []

  /** `directive`: its name, for the status and events. */
  constructor(c: SetupContext, directive: string) {
    this.#directive = directive
    this.#events = () => c.resources.find(EventLog, '')
    const watch = new SignatureWatch(c)
    this.#watch = watch
    this.part = {
      status: () => ({ zones: this.#owned.map((zone) => statusOf(zone, directive)) }),
      problems: () => [watch.problemGroup(`${directive} ${placeOf(c.block)}`)],
      start: () => watch.start(c.timers),
      stop: () => watch.stop(),
    }
    this.nsInAuthority = !c.block.directives.includes('minimal')
    this.#versions = c.block.shared.acquire(ZONE_VERSIONS).source()
    this.#broadcast = c.broadcast<readonly PublishedZone[]>((zones) => this.#follow(zones))
  }

  /**
   * Puts zones in force everywhere. Called on the control thread whenever zones or versions may
   * have changed.
   */
  publish(zones: readonly OwnedZone[]): void {
    this.#owned = zones
    this.#offer(zones)
    this.#watch.follow(zones)
    const printVersion = ({ zoneText, shared, isElsewhere }: OwnedZone): string =>
      `${zoneText} ${shared?.version} ${isElsewhere === true}`
    const published = zones.map(printVersion).join()
    if (published === this.#published) return
    this.#published = published
    this.table.replace(zones)
    this.#broadcast.publish(
      zones.map(({ zone, shared, isElsewhere }) => ({ zone, shared, isElsewhere })),
    )
  }

  /** Offers the versions to other directives of the block. */
  #offer(zones: readonly OwnedZone[]): void {
    const gone = new Map(this.#offered)
    const loaded: LoadedVersion[] = []
    for (const { zone, zoneText, shared, serial, changed } of zones) {
      if (shared === undefined) continue
      gone.delete(zoneText)
      const { buffer } = shared
      const imageVersion = new ZoneReader({ buffer }).version
      const text = `${shared.version} ${imageVersion}`
      if (this.#offered.get(zoneText)?.text === text) continue
      this.#offered.set(zoneText, { zone, text })
      loaded.push({ zone: zoneText, serial })
      this.#versions.put({ zone, serial, buffer, imageVersion }, changed)
    }
    for (const [zoneText, { zone }] of gone) {
      this.#offered.delete(zoneText)
      this.#versions.remove(zone)
    }
    this.#noteVersions(loaded)
  }

  #noteVersions(loaded: readonly LoadedVersion[]): void {
    const events = this.#events()
    const actor = { kind: 'load', name: this.#directive } as const
    for (const version of loaded.slice(0, LOGGED_MAX)) {
      events?.add({ actor, ...version, text: 'a new version is served' })
    }
    const more = loaded.length - LOGGED_MAX
    if (more > 0) events?.add({ actor, text: `new versions of ${more} more zones are served` })
  }

  #follow(zones: readonly PublishedZone[]): void {
    const answerers = new Map<number, ZoneAnswerer>()
    const served = zones.map(({ zone, shared, isElsewhere }) => {
      if (shared === undefined) return { zone, answerer: undefined, isElsewhere }
      const { version, buffer } = shared
      const answerer =
        this.#answerers.get(version) ?? answererOf(new ZoneReader({ buffer }), this.nsInAuthority)
      answerers.set(version, answerer)
      return { zone, answerer }
    })
    this.#answerers = answerers
    this.table.replace(served)
  }
}

function statusOf(
  { zoneText, serial, path = '', shared }: OwnedZone,
  directive: string,
): ZoneStatus {
  return zoneWithoutRecords(zoneText, directive, path, shared === undefined ? null : serial)
}
