import type { Broadcast } from '../base/broadcast.ts'
import { EventLog } from '../base/telemetry/event-log.ts'
import { type ZoneStatus, zoneWithoutRecords } from '../base/telemetry/status.ts'
import { nameKey } from '../dns/name/name.ts'
import { placeOf } from '../plugin/block-place.ts'
import type { DirectivePart } from '../plugin/description.ts'
import type { SetupContext } from '../plugin/directive.ts'
import { ZONE_SIGNING, type ZoneSigning } from '../signing/registry.ts'
import { type VersionSource, ZONE_VERSIONS } from '../xfr/zone-versions.ts'
import { imageVersionOf, ZoneReader } from '../zone/image/reader.ts'
import { FileZoneTable, type ServedZone } from './file-zones.ts'
import type { InlineZones } from './inline/inline-zones.ts'
import type { OwnedZone } from './owned-zone.ts'
import type { SignatureWatch } from './signature-watch.ts'
import { answererOf } from './version-memory.ts'

/** A zone in the form that is sent to other threads. */
interface PublishedZone {
  /** The image of the version in force; undefined = no version is in force. */
  readonly buffer: SharedArrayBuffer | undefined
  readonly isElsewhere: boolean
}

/** By name key: zones that are new or changed; undefined = the zone is no longer served. */
type ZoneChanges = ReadonlyMap<string, PublishedZone | undefined>

/** What was published last of a zone. */
interface Published extends PublishedZone {
  readonly zone: Uint8Array
  /** Version of the image; undefined = no version is in force. */
  readonly imageVersion: number | undefined
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
  readonly #broadcast: Broadcast<ZoneChanges>
  /** All zones, for threads that start later. */
  readonly #whole = new Map<string, PublishedZone>()
  /** By text of the zone. */
  readonly #published = new Map<string, Published>()
  readonly #versions: VersionSource

  /** See `FileZoneOptions`. False if the directive `minimal` would remove the records again. */
  readonly nsInAuthority: boolean

  /** Undefined before the start, and in data threads. */
  #watch: SignatureWatch | undefined
  /** Signs zones; undefined before the start, in data threads, and if `dnssec` signs no zone. */
  #inline: InlineZones | undefined
  readonly #signing: ZoneSigning | undefined
  #isStopped = false
  readonly #directive: string
  readonly #events: () => EventLog | undefined
  #owned: readonly OwnedZone[] = []

  /** `directive`: its name, for the status and events. */
  constructor(c: SetupContext, directive: string) {
    this.#directive = directive
    this.#events = () => c.resources.find(EventLog, '')
    this.part = {
      status: () => ({
        zones: this.#owned.map((zone) => statusOf(zone, directive)),
        signing: this.#inline?.reports ?? [],
      }),
      problems: () => {
        const group = this.#watch?.problemGroup(`${directive} ${placeOf(c.block)}`)
        const unsigned = this.#inline?.problems ?? []
        return group === undefined ? unsigned : [group, ...unsigned]
      },
      start: async () => {
        await this.#startWatch(c)
        await this.#startSigning(c)
      },
      stop: async () => {
        this.#isStopped = true
        this.#watch?.stop()
        await this.#inline?.stop()
      },
    }
    this.#signing = c.block.shared.find(ZONE_SIGNING)
    this.nsInAuthority = !c.block.directives.includes('minimal')
    this.#versions = c.block.shared.acquire(ZONE_VERSIONS).source()
    this.#broadcast = c.broadcast<ZoneChanges>((changes) => this.#follow(changes))
  }

  async #startWatch(c: SetupContext): Promise<void> {
    const { SignatureWatch } = await import('./signature-watch.ts')
    if (this.#isStopped) return
    this.#watch = new SignatureWatch(c)
    this.#watch.start(c.timers)
    this.#watch.follow(this.#owned)
  }

  async #startSigning(c: SetupContext): Promise<void> {
    if (this.#signing === undefined) return
    const { InlineZones } = await import('./inline/inline-zones.ts')
    if (this.#isStopped) return
    this.#inline = new InlineZones({
      ...{ c, directive: this.#directive, nsInAuthority: this.nsInAuthority },
      signingOf: (zone) => this.#signing?.of(zone),
      publish: (zones) => this.#put(zones),
    })
  }

  /** Whether `dnssec` signs the zone: its owner must have it without signatures. */
  signs(zone: Uint8Array): boolean {
    return this.#signing?.of(zone) !== undefined
  }

  /**
   * Puts zones in force everywhere, once they are signed if `dnssec` signs them. Called on the control thread whenever
   * zones or versions may have changed. Only zones that have changed are sent to other threads.
   */
  publish(zones: readonly OwnedZone[]): void {
    if (this.#inline === undefined) this.#put(zones)
    else this.#inline.publish(zones)
  }

  /** Resolves once all zones are in force that can be soon: the signatures of a large zone take minutes. */
  async settled(): Promise<void> {
    await this.#inline?.settled()
  }

  #put(zones: readonly OwnedZone[]): void {
    this.#owned = zones
    for (const { zone } of zones) this.#signing?.of(zone)?.claim()
    const changed: OwnedZone[] = []
    const loaded: OwnedZone[] = []
    for (const zone of zones) this.#note(zone, changed, loaded)
    const gone = this.#published.size === zones.length ? [] : this.#forgetAllBut(zones)
    this.#noteVersions(loaded)
    this.#watch?.follow(zones)
    if (changed.length === 0 && gone.length === 0) return
    this.table.change(changed, gone)
    const changes = new Map<string, PublishedZone | undefined>()
    for (const zone of gone) changes.set(nameKey(zone), undefined)
    for (const { zone, shared, isElsewhere = false } of changed) {
      changes.set(nameKey(zone), { buffer: shared?.buffer, isElsewhere })
    }
    for (const [key, zone] of changes) {
      if (zone === undefined) this.#whole.delete(key)
      else this.#whole.set(key, zone)
    }
    this.#broadcast.publish(this.#whole, changes)
  }

  /** Adds the zone to `changed` if other threads don't have it like this, and to `loaded` if its version is new. */
  #note(zone: OwnedZone, changed: OwnedZone[], loaded: OwnedZone[]): void {
    const { zone: apex, zoneText, shared, isElsewhere = false, serial } = zone
    const buffer = shared?.buffer
    const imageVersion = buffer === undefined ? undefined : imageVersionOf(buffer)
    const known = this.#published.get(zoneText)
    const isSent = known?.buffer === buffer && known?.isElsewhere === isElsewhere
    const isOffered = known?.buffer === buffer && known?.imageVersion === imageVersion
    if (isSent && isOffered) return
    this.#published.set(zoneText, { zone: apex, buffer, isElsewhere, imageVersion })
    if (!isSent) changed.push(zone)
    if (isOffered) return
    if (buffer === undefined || imageVersion === undefined) this.#versions.remove(apex)
    else {
      loaded.push(zone)
      this.#versions.put({ zone: apex, serial, buffer, imageVersion }, zone.changed)
    }
  }

  /** Forgets all other zones; returns their apexes. */
  #forgetAllBut(zones: readonly OwnedZone[]): readonly Uint8Array[] {
    const texts = new Set(zones.map(({ zoneText }) => zoneText))
    const gone = [...this.#published].filter(([zoneText]) => !texts.has(zoneText))
    for (const [zoneText, { zone }] of gone) {
      this.#published.delete(zoneText)
      this.#versions.remove(zone)
    }
    return gone.map(([, { zone }]) => zone)
  }

  #noteVersions(loaded: readonly OwnedZone[]): void {
    const events = this.#events()
    const actor = { kind: 'load', name: this.#directive } as const
    for (const { zoneText: zone, serial } of loaded.slice(0, LOGGED_MAX)) {
      events?.add({ actor, zone, serial, text: 'a new version is served' })
    }
    const more = loaded.length - LOGGED_MAX
    if (more > 0) events?.add({ actor, text: `new versions of ${more} more zones are served` })
  }

  #follow(changes: ZoneChanges): void {
    const put: ServedZone[] = []
    const gone: Uint8Array[] = []
    for (const [key, published] of changes) {
      const zone = Buffer.from(key, 'latin1')
      this.#signing?.of(zone)?.claim()
      if (published === undefined) gone.push(zone)
      else put.push({ zone, ...this.#serve(published) })
    }
    this.table.change(put, gone)
  }

  #serve({ buffer, isElsewhere }: PublishedZone): Omit<ServedZone, 'zone'> {
    if (buffer === undefined) return { answerer: undefined, isElsewhere }
    return { answerer: answererOf(new ZoneReader({ buffer }), this.nsInAuthority) }
  }
}

function statusOf(
  { zoneText, serial, path = '', shared }: OwnedZone,
  directive: string,
): ZoneStatus {
  return zoneWithoutRecords(zoneText, directive, path, shared === undefined ? null : serial)
}
