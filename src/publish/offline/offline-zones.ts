import { systemClock } from '../../base/clock.ts'
import { RRType } from '../../dns/iana/types.ts'
import { nameKey } from '../../dns/name/name.ts'
import { AddressHealth } from '../../health/address-health.ts'
import { type EndpointDrain, isActive, type RecordDrains } from '../../health/drain/drain.ts'
import { findDrains } from '../../health/drain/drain-column.ts'
import { readDrainFile } from '../../health/drain/drain-file.ts'
import { drainOfRecord } from '../../health/drain/record-drain.ts'
import { UNKNOWN_ROW } from '../../health/health-table.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import type { ManifestReading } from '../../sources/manifests/read-once.ts'
import { ZoneOwnership } from '../../sources/zone-ownership.ts'
import type { RecordZone } from '../build/record-zone.ts'
import type { RRsetSink } from '../build/record-zone-options.ts'
import type { ServedView } from '../build/served-health.ts'
import type { KeptFile } from '../health-options.ts'
import type { PublishOptions } from '../options.ts'
import { aliasOf, ofSource, sharesOf, siteOf, sourceFileOf, zonesOf } from '../same-source.ts'
import type { OpenZones } from '../serve/threaded-zones.ts'
import { sitesOfEndpoints } from '../sites-of-endpoints.ts'
import { ImageSink } from '../zone/image-sink.ts'
import { composeSoa, SOA_TTL_SECONDS } from '../zone/soa.ts'
import { belongs, createRecordZone, mailboxOf, primaryOf } from '../zone/zone-content.ts'
import { AppliedRights } from './applied-rights.ts'
import { OfflineAliases } from './offline-aliases.ts'
import type { OfflineRecords } from './offline-records.ts'

/** Serial of zones that are filled for a command that serves nothing. */
const SERIAL = 1

/** The zones of one `kuadrant` block, for a command that serves nothing. */
export class OfflineZones {
  readonly options: PublishOptions
  readonly #all: () => readonly PublishOptions[]
  readonly #records: OfflineRecords
  /** Undefined = no zone was asked for, or another configuration has them. */
  #rights: AppliedRights | undefined
  #aliases: OfflineAliases | undefined

  /** `all`: the options of all blocks of the Corefile, once their setups ran. */
  constructor(
    options: PublishOptions,
    all: () => readonly PublishOptions[],
    records: OfflineRecords,
  ) {
    this.options = options
    this.#all = all
    this.#records = records
  }

  /** The file of the drains; undefined = nothing is drained. */
  get drainFile(): KeptFile | undefined {
    return sourceFileOf('drainFile', this.options.source, this.#all())
  }

  /**
   * The health that the configuration states, whatever the present one is: all targets are up, and only
   * annotations drain endpoints.
   */
  get configuredHealth(): ServedView {
    return this.#withDrains(new AddressHealth(), [])
  }

  /** Returns the sites of each endpoint of a record. */
  sitesOf(record: StoredRecord): readonly (readonly string[])[] {
    return sitesOfEndpoints(record, siteOf(this.options, this.#all()))
  }

  /** Returns the records of the block, before they are sorted into zones. See `OfflineRecords.read`. */
  read(): Promise<ManifestReading> {
    return this.#records.read(this.options, this.#all())
  }

  /** Returns the records that the zone `apex` of the block serves. */
  async recordsOf(apex: Uint8Array): Promise<StoredRecord[]> {
    const { records } = await this.#applyRights()
    const aliases = await this.#expandAliases()
    return records.filter(this.#isOf(apex)).map((record) => aliases.of(record))
  }

  /** Returns whether the zone `apex` of the block has a record. */
  #isOf(apex: Uint8Array): (record: StoredRecord) => boolean {
    const ownership = this.#ownership()
    const zone = { apex, key: nameKey(apex) }
    return (record) => belongs(record, zone, this.options, ownership)
  }

  #ownership(): ZoneOwnership {
    const ownership = new ZoneOwnership()
    for (const { zones } of ofSource(this.options.source, this.#all())) ownership.claim(zones)
    return ownership
  }

  /** `before`: see OfflineAliases. */
  async #expandAliases(before?: OfflineAliases): Promise<OfflineAliases> {
    const { records } = await this.#applyRights()
    const { source } = this.options
    const all = this.#all()
    const how = aliasOf(source, all)
    this.#aliases ??= new OfflineAliases(records, zonesOf(source, all), how, before)
    return this.#aliases
  }

  /** Returns the records of the source without names of other namespaces. */
  async #applyRights(): Promise<AppliedRights> {
    const { store } = await this.read()
    const shares = sharesOf(this.options.source, this.#all())
    const rules = { ...this.options, ownership: this.#ownership(), shares }
    this.#rights ??= new AppliedRights(store.records(), rules)
    return this.#rights
  }

  /** Builds the RRsets of one zone, without its SOA, into `sink`. Returns the zone. */
  async fill(apex: Uint8Array, sink: RRsetSink, health: ServedView): Promise<RecordZone> {
    const ignored = { onConflict: () => {}, onOut: () => {} }
    const options = { ...this.options, site: siteOf(this.options, this.#all()) }
    const records = createRecordZone(apex, options, { sink, health, ...ignored })
    const own = await this.recordsOf(apex)
    records.apply(own.map((after) => ({ before: undefined, after })))
    return records
  }

  /** Returns these zones with other records. */
  with(records: OfflineRecords): OfflineZones {
    return new OfflineZones(this.options, this.#all, records)
  }

  /**
   * Turns zones that `before` filled into what `fill` would fill. The options must be the same.
   * `zones`: as `before.fill` returned them, by apex.
   */
  async edit(zones: ReadonlyMap<Uint8Array, RecordZone>, before: OfflineZones): Promise<void> {
    const { store } = await this.read()
    const rights = await before.#applyRights()
    const old = await before.#expandAliases()
    const plain = rights.replace(store.records())
    before.#rights = undefined
    before.#aliases = undefined
    this.#rights = rights
    const changes = (await this.#expandAliases(old)).changesSince(old, plain)
    for (const [apex, records] of zones) {
      const isOf = this.#isOf(apex)
      const only = (record: StoredRecord | undefined) =>
        record !== undefined && isOf(record) ? record : undefined
      const own = changes.map(({ before, after }) => ({ before: only(before), after: only(after) }))
      records.apply(own.filter(({ before, after }) => before !== undefined || after !== undefined))
    }
  }

  /**
   * Fills `open` with every zone, and resolves once the GEO classes know all codes. The health is
   * what the manifests report, with the drains that are in force now.
   */
  async fillImage({ image, table }: OpenZones): Promise<ReadonlyMap<string, RecordZone>> {
    const path = this.drainFile?.path
    const lines = path === undefined ? [] : readDrainFile(path).drains
    const drains = lines.map(({ drain }) => drain)
    const health = this.#withDrains((await this.read()).health, drains)
    const zones = new Map<string, RecordZone>()
    table.gather()
    for (const apex of this.options.zones) {
      const key = nameKey(apex)
      if (zones.has(key)) continue
      const id = image.addZone(apex)
      zones.set(key, await this.fill(apex, new ImageSink(image, id, table), health))
      const mname = primaryOf(apex, this.options)
      const soa = composeSoa(
        mname,
        mailboxOf(apex, this.options, () => {}),
        SERIAL,
      )
      image.putRRset(id, apex, { type: RRType.SOA, ttlSeconds: SOA_TTL_SECONDS, rdata: [soa] })
    }
    await table.built()
    image.publish()
    return zones
  }

  /** Adds those of `drains` and of the annotations that are in force now. */
  #withDrains(found: AddressHealth, drains: readonly EndpointDrain[]): ServedView {
    const nowMs = systemClock.now()
    const site = siteOf(this.options, this.#all())
    const drainsOf = (record: StoredRecord): RecordDrains => {
      const own = drainOfRecord(record, site)
      const all = own === undefined ? drains : [...drains, own]
      const active = all.filter((drain) => isActive(drain, nowMs))
      return findDrains(record, active, () => this.sitesOf(record))
    }
    return {
      rowOf: (record) => ({
        ...UNKNOWN_ROW,
        record,
        health: found.healthOf(record.key),
        drains: drainsOf(record),
      }),
    }
  }
}
