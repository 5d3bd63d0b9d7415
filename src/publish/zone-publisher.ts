import { InputError } from '../base/errors.ts'
import { Stops } from '../base/stops.ts'
import { EndpointHistory } from '../base/telemetry/endpoint-history.ts'
import { EventLog } from '../base/telemetry/event-log.ts'
import type { ProblemGroup } from '../base/telemetry/problems.ts'
import { type StatusPart, zoneWithoutRecords } from '../base/telemetry/status.ts'
import { systemTimers } from '../base/timers.ts'
import { printName } from '../dns/name/name.ts'
import type { Locator } from '../geo/locator.ts'
import { ShiftFile } from '../health/shift/shift-file.ts'
import { SlowStartFile } from '../health/slow-start-file.ts'
import { hostOfSiteKey } from '../peering/merged-keys.ts'
import { isLocalZone } from '../records/local-zone.ts'
import { measureSigning } from '../signing/signing-report.ts'
import { isRead } from '../sources/open-source.ts'
import { abilitiesOf, nameOf } from '../sources/source-place.ts'
import type { VersionSource, ZoneVersions } from '../xfr/zone-versions.ts'
import { AnswerEvents } from './build/answer-events.ts'
import { findLameServers } from './build/default-server.ts'
import { EndpointStates } from './build/endpoint-states.ts'
import type { PublishOptions } from './options.ts'
import type { PublisherPeersParts } from './peers/peers.ts'
import type { PublisherGroup } from './publisher-group.ts'
import { RecordPipeline } from './record-pipeline.ts'
import { siteOf, sourceFileOf } from './same-source.ts'
import { inheritZones, SignedImages } from './serve/signed-images.ts'
import type { LoadedSnapshot } from './serve/snapshot/load.ts'
import { raiseSerials } from './serve/snapshot/raise-serials.ts'
import { SnapshotSigner } from './serve/snapshot-signer.ts'
import type { OpenZones, ThreadedZones } from './serve/threaded-zones.ts'
import { ZoneSnapshot } from './serve/zone-snapshot.ts'
import { digestOfShape } from './shape.ts'
import { offerPreviews, showZones } from './shown-zones.ts'
import { faultAt } from './source-fault.ts'
import { EndpointCounters, type ThreadCounts } from './zone/endpoint-counters.ts'
import { commitHistogram, measure, measureSnapshot } from './zone/metrics.ts'
import { OfferedVersions } from './zone/offered-versions.ts'
import { SerialFile } from './zone/serials/serial-file.ts'
import { type ContentSerial, SerialIndex } from './zone/serials/serial-index.ts'
import { faultOf, reportSigning, signingProblems } from './zone/signing/zone-reports.ts'
import { UnmatchedCodes } from './zone/unmatched-codes.ts'
import { findLostAddresses } from './zone/zone-content.ts'
import { reportPeer, statusOfZones } from './zone/zone-status.ts'
import { PublishedZones } from './zone/zones.ts'

/** Time until a source that could not be opened is tried again. */
const RETRY_MS = 10_000
/**
 * Delay that lets the server open its sockets and start its threads, which reading records would
 * slow down.
 */
const START_MS = 500
/** Reading the records of an ordinary start takes less; the snapshot counts as stale after it. */
const STALE_MS = 30_000
export interface ZonePublisherParts extends PublisherPeersParts {
  readonly group: PublisherGroup
  /** Makes all threads answer from the zones. */
  readonly threads: ThreadedZones
  /** Distinguishes the publisher from others with the same zone. Contains no white space. */
  readonly place: string
  readonly locator: Locator | undefined
  /** Undefined = endpoints are not counted. */
  readonly counts: ThreadCounts | undefined
  /** Where `transfer` finds the zones, and our part of it. */
  readonly zoneVersions: ZoneVersions
  readonly versions: VersionSource
}

/** The zones while they are opened and followed. */
interface Opened extends OpenZones {
  /** What the image has of an earlier process or configuration; undefined = it is empty. */
  readonly earlier: readonly ContentSerial[] | undefined
  readonly serials: SerialIndex
  /** Undefined = serials are not kept over a restart. */
  readonly serialFile: SerialFile | undefined
}

/**
 * Publishes zones built from DNSRecords:
 *
 *     no snapshot   read records ─▶ fill zones ─▶ serve ─▶ follow
 *     snapshot      load it ─▶ serve ─▶ read records ─▶ bring zones up to date ─▶ follow
 */
export class ZonePublisher {
  readonly #options: PublishOptions
  readonly #parts: ZonePublisherParts
  readonly #stops = new Stops()
  readonly #records: RecordPipeline
  readonly #snapshot: ZoneSnapshot | undefined
  #zones: PublishedZones | undefined
  /** While only the snapshot is served. */
  #snapshotSigner: SnapshotSigner | undefined
  #unmatched: UnmatchedCodes | undefined
  #stopFollowing = (): void => {}

  constructor(options: PublishOptions, parts: ZonePublisherParts) {
    this.#options = options
    this.#parts = parts
    this.#records = new RecordPipeline(options, { ...parts, stops: this.#stops })
    this.#snapshot = options.snapshot && new ZoneSnapshot(options.snapshot, parts)
  }

  /** True if queries are answered from records or from a snapshot. */
  get serves(): boolean {
    return this.#zones !== undefined || this.#servesSnapshot
  }

  /** Stops applying changes of records to the zones. */
  stopFollowing(): void {
    this.#stopFollowing()
  }

  /** Handles a NOTIFY for the zone kdrnt from that address. */
  notify(host: string): void {
    this.#records.notify(host)
  }

  async start(): Promise<void> {
    const { group, resources, log, metrics, threads, locator } = this.#parts
    group.enter(resources)
    await this.#records.startPeers()
    for (const lost of findLostAddresses(this.#options))
      log.warning(lost.print(), 'peer-cache-lost')
    const loaded = this.#load()
    if (loaded === undefined) await group.assignZones()
    const inherited =
      loaded === undefined ? await inheritZones(resources, this.#options) : undefined
    const zones = threads.open(locator, loaded, inherited?.image)
    if (inherited !== undefined) zones.table.restore(inherited.policies)
    this.#stops.add(() => zones.table.close())
    // The GEO classes must know the codes of these zones before the zones are served.
    if (loaded !== undefined) await zones.table.built()
    const earlier = loaded?.facts.zones ?? inherited?.earlier
    const open = { ...zones, earlier, ...this.#openSerials() }
    const kept = this.#snapshot
    if (kept !== undefined) this.#stops.add(measureSnapshot(metrics, kept.path, () => kept.state))
    if (loaded === undefined) await this.#followSoon(open)
    else this.#replace(loaded, open)
  }

  /** Returns why the zones are not ready for queries; '' = they are ready. */
  unreadyReason(): string {
    if (this.#servesSnapshot) return ''
    const reason = this.#records.unreadReason
    if (this.#zones === undefined && reason === '') return 'records are not loaded yet'
    const unsigned = this.#zones?.zones.find(({ isServed }) => !isServed)
    return reason || (unsigned && faultOf(unsigned)) || this.#records.unheardReason
  }

  /** Returns what the ready page shows about the answers; '' = nothing. */
  note(): string {
    const note = this.#servesSnapshot
      ? this.#snapshot?.noteServed(this.#records.unreadReason)
      : this.#records.note()
    const faults = this.#signedZones.map(faultOf)
    const notes = [note, this.#zones?.note(), ...faults]
    return notes.filter((note) => note).join('; ')
  }

  /** What is wrong with the records, their zones and the peers. */
  problemGroups(): ProblemGroup[] {
    const { place } = this.#parts
    const zones = this.#zones?.zones ?? []
    const owned = this.#records.source
    const placeOf = (key: string): string => owned?.source.printPlace(key) ?? ''
    const conflicts = zones.map(({ text, records }): ProblemGroup => {
      const { count } = records.conflicts
      const problems = records.conflicts.problems(placeOf)
      return { kind: 'conflict', of: `${place} ${text}`, count, problems }
    })
    const codes = this.#unmatched?.problemGroups(place) ?? []
    const signing = signingProblems(this.#signedZones, place)
    return [
      ...this.#records.problemGroups(),
      ...conflicts,
      ...codes,
      signing,
      ...this.#fileProblems,
    ]
  }

  /** What is wrong with the files that this block names. */
  get #fileProblems(): readonly ProblemGroup[] {
    const { resources } = this.#parts
    const { serials, health } = this.#options
    return [
      ...(resources.find(SerialFile, serials)?.problems ?? []),
      ...(resources.find(SlowStartFile, health?.slowStartFile?.path ?? '')?.problems ?? []),
      ...(resources.find(ShiftFile, health?.shiftFile?.path ?? '')?.problems ?? []),
      ...(this.#snapshot?.problems ?? []),
    ]
  }

  /** What the status of the server shows about the zones, their peers and the snapshot. */
  status(): StatusPart {
    const { clock } = this.#parts
    const source = nameOf(this.#options.source)
    const peers = this.#records.peers.map((status) => reportPeer(status, clock.monotonic()))
    const quorum = this.#records.quorumReport()
    const quorums = quorum === undefined ? [] : [quorum]
    const snapshot = this.#snapshot?.report(clock.now())
    const snapshots = snapshot === undefined ? [] : [snapshot]
    const rest = { peers, quorums, shifts: this.#records.shifts, snapshots }
    const zones = this.#zones
    const { downReason } = this.#records.provenance
    const signing = reportSigning(this.#signedZones)
    if (zones !== undefined)
      return { ...statusOfZones(zones, source, downReason), signing, ...rest }
    const waiting = this.#options.zones.map((apex) => {
      const zone = printName(apex)
      const serial = this.#snapshotSigner?.serialOf(zone) ?? this.#snapshot?.serialOf(zone)
      return zoneWithoutRecords(zone, 'kuadrant', source, serial ?? null)
    })
    return { zones: waiting, signing, ...rest }
  }

  get #signedZones(): SnapshotSigner['zones'] | PublishedZones['zones'] {
    return this.#zones?.zones ?? this.#snapshotSigner?.zones ?? []
  }

  /** Runs at an orderly stop, while queries are still answered. */
  async finish(): Promise<void> {
    await this.#snapshot?.finish()
  }

  async stop(): Promise<void> {
    this.#parts.group.leave()
    this.#parts.group.stopFollowing()
    this.#stops.close()
    await this.#snapshot?.close()
  }

  /** Opens the source and claims the zones, unless that was done before. */
  async claim(): Promise<void> {
    if (this.#records.source !== undefined || this.#stops.isClosed) return
    await this.#records.openSource()
  }

  get #servesSnapshot(): boolean {
    return this.#snapshot?.isServed === true
  }

  #load(): LoadedSnapshot | undefined {
    const { group, resources } = this.#parts
    // After a reload, the previous instance serves until this one is complete. This must be checked
    // first, because a publisher without a snapshot opens the source next.
    const isReload = group.hadSource(this.#options.source, (place) => isRead(place, resources))
    return isReload ? undefined : this.#snapshot?.load(this.#shape, this.#localDrains)
  }

  /**
   * The drain file that a snapshot must agree with; '' = none. Manifests can be read at once instead
   * of the snapshot. A cluster may be out of reach, and old answers are better than none.
   */
  get #localDrains(): string {
    const { source } = this.#options
    if (source.kind !== 'manifests') return ''
    return sourceFileOf('drainFile', source, this.#parts.group.options)?.path ?? ''
  }

  get #shape(): string {
    return digestOfShape(this.#options, this.#parts.group.options)
  }

  #openSerials(): Pick<Opened, 'serials' | 'serialFile'> {
    const { serials: path, zones } = this.#options
    const { resources, group, clock, log } = this.#parts
    // Never released: a zone whose content is unchanged keeps its serial as long as the process runs.
    const { item: serials } = resources.acquire(SerialIndex, '', () => new SerialIndex())
    const open = (): SerialFile => {
      return new SerialFile({ path, index: serials, log, clock, timers: systemTimers })
    }
    const serialFile = path === '' ? undefined : resources.acquire(SerialFile, path, open)
    if (serialFile !== undefined) this.#stops.add(serialFile.release)
    for (const zone of zones) serials.retain(printName(zone), group.placesOf(zone))
    return { serials, serialFile: serialFile?.item }
  }

  /** Serves the snapshot, and replaces it by records once they are read. */
  #replace(loaded: LoadedSnapshot, open: Opened): void {
    const { place, clock, log, metrics } = this.#parts
    raiseSerials(loaded, this.#options, { ...open, place, nowMs: clock.now() })
    if (this.#signedCount > 0) {
      const parts = { ...open, place, clock, timers: systemTimers, log, metrics }
      this.#snapshotSigner = new SnapshotSigner(this.#options, loaded.facts.zones, parts)
      this.#stops.add(() => void this.#endSnapshotSigner())
    }
    this.#stops.add(systemTimers.after(STALE_MS, () => this.#noteStale()))
    this.#catchUp(open).catch((error) => {
      this.#report(`records cannot be watched: ${printReason(error)}`)
    })
  }

  /** Returns the facts of the zones, which other writers may change from now on; undefined = it did not sign. */
  async #endSnapshotSigner(): Promise<readonly ContentSerial[] | undefined> {
    const signer = this.#snapshotSigner
    await signer?.close()
    this.#snapshotSigner = undefined
    return signer?.facts
  }

  /** Reads the records, however long it takes, while the snapshot is served. */
  async #catchUp(open: Opened): Promise<void> {
    await wait(START_MS)
    while (!this.#stops.isClosed) {
      try {
        await this.#parts.group.assignZones()
        break
      } catch (error) {
        this.#report(printReason(error))
        await wait(RETRY_MS)
      }
    }
    if (!this.#stops.isClosed) await this.#follow(open)
  }

  #report(trouble: string): void {
    if (this.#stops.isClosed) return
    this.#snapshot?.reportTrouble(trouble)
    this.#noteStale()
  }

  #noteStale(): void {
    if (this.#zones === undefined) this.#parts.threads.setStale(true)
  }

  /** Waits for the zones, but not for a slow cluster. */
  async #followSoon(open: Opened): Promise<void> {
    const { source, position } = this.#options
    const { group, log } = this.#parts
    if (abilitiesOf(source).directory !== undefined) return this.#followSigned(open)
    await atMost(this.#records.source!.source.synced(), group.patienceMs)
    const reason = this.#records.unreadReason
    if (reason === '') return this.#followSigned(open)
    // A configuration that answers must not be replaced by one that does not.
    if (group.replacesServing) faultAt(position)(new InputError(undefined, reason))
    this.#logFailure(this.#follow(open))
    log.warning(`${reason}; queries get SERVFAIL until the records are read`, 'records-unread')
  }

  /** Waits until the zones are signed, but not for many signatures if no other zones are in force. */
  async #followSigned(open: Opened): Promise<void> {
    const { group, log } = this.#parts
    const following = this.#follow(open)
    if (this.#signedCount === 0 || group.replacesServing) return following
    await atMost(following, group.patienceMs)
    if (this.#zones !== undefined || this.#stops.isClosed) return
    this.#logFailure(following)
    log.warning('zones are being signed; queries get SERVFAIL until then', 'zones-unsigned')
  }

  #logFailure(following: Promise<void>): void {
    following.catch((error) => {
      const { log } = this.#parts
      log.error(`records cannot be watched: ${printReason(error)}`, 'records-watch-failed')
    })
  }

  get #signedCount(): number {
    return this.#options.signed?.size ?? 0
  }

  async #follow(open: Opened): Promise<void> {
    const { clock, log, metrics, group, threads, place, zoneVersions } = this.#parts
    await this.#records.synced()
    if (this.#stops.isClosed) return
    const exporter = this.#records.openExporter()
    const isReplacing = this.#servesSnapshot || group.replacesServing
    const { records, health } = await this.#records.open(exporter, isReplacing)
    if (this.#stops.isClosed) return
    const observe = commitHistogram(metrics)
    const onCommit = (seconds: number): void => {
      observe(seconds)
      this.#snapshot?.noteChange()
    }
    const versions = new OfferedVersions(open.image, zoneVersions, this.#parts.versions)
    const hasPeers = this.#options.peering.peers.length > 0
    const events = new AnswerEvents({
      source: nameOf(this.#options.source),
      others: hasPeers
        ? { hostOf: hostOfSiteKey, decisionOf: (key) => this.#records.decisionOf(key) }
        : undefined,
      find: () => this.#parts.resources.find(EventLog, ''),
      states: this.#noteStates(),
    })
    const parts = { versions, exporter, place, clock, timers: systemTimers, log }
    const isComplete = (key: string): boolean => this.#records.isComplete(key)
    const earlier = (await this.#endSnapshotSigner()) ?? open.earlier
    if (this.#stops.isClosed) return
    const more = { ...parts, events, onCommit, isComplete, counters: this.#openCounters() }
    const zones = new PublishedZones(this.#zoneOptions, { ...open, earlier, health, ...more })
    const { source: owned } = this.#records
    this.#stopFollowing = await zones.follow(records, owned!.ownership)
    if (this.#stops.isClosed) {
      this.#stopFollowing()
      return
    }
    this.#refuseUnsigned(zones)
    this.#zones = zones
    threads.setStale(false)
    this.#offerSigned(open, zones)
    this.#reportCodes(open, zones)
    this.#reportLameServers(zones)
    threads.serve(open)
    const { provenance, previewed } = this.#records
    const shown = { ...this.#parts, ...open, zones, provenance }
    this.#stops.add(...showZones(shown))
    const { ownership } = owned!
    const preview = { place, options: this.#zoneOptions, ownership, records, health }
    if (previewed !== undefined)
      this.#stops.add(...offerPreviews(shown, { ...preview, ...previewed }))
    this.#stops.add(measure(metrics, nameOf(this.#options.source), owned!, zones))
    this.#snapshot?.keep(zones, open, this.#shape)
  }

  /** A configuration that answers must not be replaced by one that does not. */
  #refuseUnsigned({ zones }: PublishedZones): void {
    const fault = zones
      .filter(({ isServed }) => !isServed)
      .map(faultOf)
      .join('; ')
    if (fault === '' || this.#servesSnapshot || !this.#parts.group.replacesServing) return
    this.#stopFollowing()
    faultAt(this.#options.position)(new InputError(undefined, fault))
  }

  #offerSigned(open: OpenZones, zones: PublishedZones): void {
    if (this.#signedCount === 0) return
    const { resources, metrics } = this.#parts
    const images = resources.acquire(SignedImages, '', () => new SignedImages())
    this.#stops.add(images.item.add({ ...open, zones }), images.release)
    this.#stops.add(measureSigning(metrics, () => reportSigning(zones.zones)))
  }

  #reportCodes({ table }: OpenZones, zones: PublishedZones): void {
    const { log, locator } = this.#parts
    const hasLocator = locator !== undefined
    this.#unmatched = new UnmatchedCodes({ table, codes: () => zones.codes, log, hasLocator })
    this.#stops.add(this.#unmatched.close)
  }

  #reportLameServers({ zones }: PublishedZones): void {
    const apexes = zones.map(({ apex }) => apex)
    for (const { apex, records } of zones.filter((zone) => !isLocalZone(zone.apex))) {
      for (const lame of findLameServers(apex, records, apexes))
        this.#parts.log.warning(lame, 'nameservers-lame')
    }
  }

  #openCounters(): EndpointCounters | undefined {
    const { counts, clock, log, metrics, resources } = this.#parts
    const { endpointMetrics, endpointHistory, source } = this.#options
    const max = endpointMetrics ?? endpointHistory
    if (counts === undefined || max === undefined) return undefined
    const isExported = endpointMetrics !== undefined
    const hasHistory = endpointHistory !== undefined
    const parts = { counts, clock, log, metrics, resources, isExported, hasHistory }
    const counters = new EndpointCounters({ max, source: nameOf(source), ...parts })
    this.#stops.add(() => counters.close())
    return counters
  }

  #noteStates(): EndpointStates {
    const { place, resources } = this.#parts
    return new EndpointStates({
      place,
      downReasons: this.#records.provenance.downReason,
      find: () => resources.find(EndpointHistory, ''),
    })
  }

  /** Where records of peers are merged, our own records have already been filtered by namespace. */
  get #zoneOptions(): PublishOptions {
    const options = { ...this.#options, site: siteOf(this.#options, this.#parts.group.options) }
    return options.peering.peers.length === 0
      ? options
      : { ...options, allowedNamespaces: undefined }
  }
}

/** Uses a timer that keeps the process alive: no socket is open yet. */
async function atMost(work: Promise<void>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([work, patience])
  clearTimeout(timer)
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => systemTimers.after(milliseconds, resolve))
}

function printReason(error: unknown): string {
  if (error instanceof InputError) return error.print()
  return error instanceof Error ? error.message : String(error)
}
