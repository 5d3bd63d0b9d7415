import { InputError } from '../base/errors.ts'
import { Stops } from '../base/stops.ts'
import { systemTimers } from '../base/timers.ts'
import { printName } from '../dns/name/name.ts'
import { isLocalZone } from '../dnsrecord/local-zone.ts'
import type { LocalExporter } from '../peering/local-exporter.ts'
import type { SetupContext } from '../plugin/directive.ts'
import { placeOf } from '../plugins/kuadrant/block-place.ts'
import { NO_HEALTH } from '../plugins/kuadrant/health-options.ts'
import type { KuadrantOptions } from '../plugins/kuadrant/options.ts'
import type { RefCountedSource } from '../sources/ref-counted-source.ts'
import type { RecordSource } from '../sources/source.ts'
import type { VersionSource } from '../xfr/zone-versions.ts'
import { writeInThread } from '../zone/snapshot/write-in-thread.ts'
import {
  type BlockHealth,
  type BlockHealthParts,
  openHealth,
  openSlowStart,
} from './block-health.ts'
import { exporterOf, watchUnexportable } from './exporters.ts'
import {
  commitHistogram,
  measure,
  measureSnapshot,
  measureWatches,
  type SnapshotState,
} from './metrics.ts'
import { OfferedVersions } from './offered-versions.ts'
import { acquire, isRead } from './open-source.ts'
import type { BlockPeers } from './peers.ts'
import { KuadrantBlocks } from './publisher-group.ts'
import { raiseSerials } from './raise-serials.ts'
import { acquireSerialFile, type SerialFile } from './serials/serial-file.ts'
import { SerialIndex } from './serials/serial-index.ts'
import { digestOfShape } from './shape.ts'
import { siteOf } from './site.ts'
import { printFacts } from './snapshot/facts.ts'
import { SnapshotKeeper } from './snapshot/keeper.ts'
import { type LoadedSnapshot, loadSnapshot } from './snapshot/load.ts'
import { faultAt } from './source-fault.ts'
import { nameOf } from './source-place.ts'
import type { OpenZones, ThreadedZones } from './threaded-zones.ts'
import { findLostAddresses } from './zone-content.ts'
import { KuadrantZones } from './zones.ts'

/** Outlives reloads: a zone whose content is unchanged keeps its serial. */
const serials = new SerialIndex()
/** Time until a source that could not be opened is tried again. */
const RETRY_MS = 10_000
/**
 * Delay that lets the server open its sockets and start its threads, which reading records would
 * slow down.
 */
const START_MS = 500

export interface ServiceParts {
  readonly share: ThreadedZones
  /** Where `transfer` finds the zones. */
  readonly versions: VersionSource
  /** Undefined = the block has no peers. */
  readonly peers: BlockPeers | undefined
}

/**
 * A block in service:
 *
 *     no snapshot   read records ─▶ fill zones ─▶ serve ─▶ follow
 *     snapshot      load it ─▶ serve ─▶ read records ─▶ bring zones up to date ─▶ follow
 */
export class KuadrantService {
  readonly #context: SetupContext
  readonly #options: KuadrantOptions
  readonly #share: ThreadedZones
  readonly #blocks: KuadrantBlocks
  readonly #versions: VersionSource
  readonly #stops = new Stops()
  /** Undefined = the block has no peers. */
  readonly #peers: BlockPeers | undefined
  #shared: RefCountedSource | undefined
  #health: BlockHealth | undefined
  #zones: KuadrantZones | undefined
  #keeper: SnapshotKeeper | undefined
  /** The snapshot that the zones came from, until records replace it. */
  #loaded: LoadedSnapshot | undefined
  #takenMs = 0
  /** Why records can't be read while the snapshot is served. */
  #trouble = ''
  #stopFollowing = (): void => {}

  constructor(c: SetupContext, options: KuadrantOptions, parts: ServiceParts) {
    this.#context = c
    this.#options = options
    this.#share = parts.share
    this.#versions = parts.versions
    this.#peers = parts.peers
    this.#blocks = KuadrantBlocks.of(c.corefile)
  }

  /** True if queries are answered from records or from a snapshot. */
  get serves(): boolean {
    return this.#zones !== undefined || this.#servesLoaded
  }

  /** Stops applying changes of records to the zones. */
  stopFollowing(): void {
    this.#stopFollowing()
  }

  /** Handles a NOTIFY for the zone kdrnt from that address. */
  notify(host: string): void {
    this.#peers?.notify(host)
  }

  async start(): Promise<void> {
    const { block, clock, metrics } = this.#context
    const { snapshot, zones } = this.#options
    this.#blocks.enter()
    this.#peers?.start()
    this.#stops.add(() => this.#peers?.close())
    for (const lost of findLostAddresses(this.#options)) this.#context.log.warning(lost.print())
    const loaded = this.#load()
    this.#loaded = loaded
    if (loaded === undefined) await this.#blocks.assignZones()
    const open = this.#share.open(block.locator, loaded)
    this.#stops.add(() => open.table.close())
    // The GEO classes must know the codes of these zones before the zones are served.
    if (loaded !== undefined) await open.table.built()
    const serialFile = this.#keepSerials()
    for (const zone of zones) serials.retain(printName(zone), this.#blocks.placesOf(zone))
    if (snapshot !== undefined) {
      this.#stops.add(measureSnapshot(metrics, snapshot.path, () => this.#snapshotState))
    }
    if (loaded === undefined) {
      await this.#followSoon(open, serialFile)
      return
    }
    const writtenVersion = loaded.image.capture().version
    const parts = { serials, serialFile, place: placeOf(block), nowMs: clock.now() }
    raiseSerials(loaded, this.#options, parts)
    this.#catchUp(open, serialFile, writtenVersion).catch((error) => {
      this.#note(`records are not followed: ${printReason(error)}`)
    })
  }

  /** Returns why the zones are not ready for queries; '' = they are ready. */
  unreadyReason(): string {
    if (this.#servesLoaded) return ''
    const reason = this.#shared?.source.unreadyReason() ?? ''
    if (this.#zones === undefined && reason === '') return 'records are not loaded yet'
    return reason || (this.#peers?.unreadyReason() ?? '')
  }

  /** Returns what the ready page shows about the answers; '' = nothing. */
  note(): string {
    const notes = this.#servesLoaded
      ? [this.#noteLoaded()]
      : [this.#shared?.source.note(), this.#health?.note(), this.#peers?.note()]
    return [...notes, this.#keeper?.note()].filter((note) => note).join('; ')
  }

  #noteLoaded(): string {
    const since = printTime(this.#loaded!)
    const kept = this.#zones?.leftoverCount ?? 0
    if (kept > 0)
      return `${kept} RRsets are as of ${since}: ${this.#shared!.source.unreadyReason()}`
    const reason = this.#trouble || this.#shared?.source.unreadyReason() || 'records are being read'
    return `zones are as of ${since}: ${reason}`
  }

  /** Runs at an orderly stop, while queries are still answered. */
  async finish(): Promise<void> {
    await this.#keeper?.finish()
  }

  async stop(): Promise<void> {
    this.#blocks.leave()
    this.#blocks.stopFollowing()
    this.#stops.close()
    await this.#keeper?.close()
  }

  /** True as long as some served data comes only from the snapshot. */
  get #servesLoaded(): boolean {
    if (this.#zones !== undefined && this.#zones.leftoverCount === 0) this.#loaded = undefined
    return this.#loaded !== undefined
  }

  get #snapshotState(): SnapshotState {
    const isServed = this.#servesLoaded
    const takenMs = this.#keeper?.writtenMs || this.#takenMs
    return { isServed, takenSeconds: takenMs / 1000, octets: this.#keeper?.octets ?? 0 }
  }

  #load(): LoadedSnapshot | undefined {
    const { log } = this.#context
    const { snapshot, source } = this.#options
    // After a reload, the previous instance serves until this one is complete. This must be checked
    // first, because a block without a snapshot opens the source next.
    const isReload = this.#blocks.hadSource(source, isRead)
    if (snapshot === undefined || isReload) return undefined
    const startMs = performance.now()
    const found = loadSnapshot(snapshot.path, this.#shape)
    if (found === undefined) {
      log.info(`there is no snapshot ${snapshot.path} yet`)
      return undefined
    }
    if (found.kind === 'refused') {
      log.warning(`snapshot ${snapshot.path} is not used: ${found.reason}`)
      return undefined
    }
    const seconds = ((performance.now() - startMs) / 1000).toFixed(2)
    const { zones, names } = found.image.stats
    const content = `${zones} zones, ${names} names, as of ${printTime(found)}`
    log.info(`snapshot ${snapshot.path} loaded in ${seconds} s: ${content}`)
    this.#takenMs = found.facts.takenMs
    return found
  }

  get #shape(): string {
    return digestOfShape(this.#options, this.#blocks.options)
  }

  /** Reads the records, however long it takes, while the snapshot is served. */
  async #catchUp(
    open: OpenZones,
    serialFile: SerialFile | undefined,
    writtenVersion: number,
  ): Promise<void> {
    await wait(START_MS)
    while (!this.#stops.isClosed) {
      try {
        await this.#blocks.assignZones()
        break
      } catch (error) {
        this.#note(printReason(error))
        await wait(RETRY_MS)
      }
    }
    if (!this.#stops.isClosed) await this.#follow(open, serialFile, writtenVersion)
  }

  /** Logs an error while the snapshot is served. */
  #note(trouble: string): void {
    if (trouble !== this.#trouble && !this.#stops.isClosed) {
      this.#context.log.error(`${trouble}; the snapshot is served`)
    }
    this.#trouble = trouble
  }

  /** Opens the source and claims the zones of the block, unless that was done before. */
  async claim(): Promise<void> {
    if (this.#shared !== undefined || this.#stops.isClosed) return
    const { source, position, zones } = this.#options
    const { log, clock } = this.#context
    const parts = { log, clock, timers: systemTimers }
    const { shared, release } = await acquire(source, parts).catch(faultAt(position))
    this.#shared = shared
    this.#stops.add(release, shared.ownership.claim(zones))
  }

  #keepSerials(): SerialFile | undefined {
    const { serials: path } = this.#options
    if (path === '') return undefined
    const { clock, log } = this.#context
    const parts = { path, index: serials, log, clock, timers: systemTimers }
    const { file, release } = acquireSerialFile(parts)
    this.#stops.add(release)
    return file
  }

  async #follow(
    open: OpenZones,
    serialFile: SerialFile | undefined,
    writtenVersion: number | undefined,
  ): Promise<void> {
    const { clock, log, metrics, block } = this.#context
    const { ownership: claims } = this.#shared!
    await this.#measureWatches()
    await this.#shared!.source.synced()
    if (this.#stops.isClosed) return
    const source = await this.#records()
    if (this.#stops.isClosed) return
    this.#watchUnexportable()
    const observe = commitHistogram(metrics)
    const onCommit = (seconds: number): void => {
      observe(seconds)
      this.#keeper?.noteChange()
    }
    const versions = new OfferedVersions(open.image, block.zoneVersions, this.#versions)
    const parts = { ...open, serials, serialFile, clock, timers: systemTimers, log, onCommit }
    const more = { versions, place: placeOf(block), exporter: this.#exporter }
    const zones = new KuadrantZones(this.#zoneOptions, { ...parts, ...more })
    this.#stopFollowing = await zones.follow(source, claims)
    if (this.#stops.isClosed) {
      this.#stopFollowing()
      return
    }
    this.#zones = zones
    this.#share.serve(open)
    this.#stops.add(measure(metrics, nameOf(this.#options.source), this.#shared!, zones))
    this.#keepSnapshot(open, zones, writtenVersion)
  }

  /** Runs in the block that has the zone kdrnt. */
  #watchUnexportable(): void {
    const site = siteOf(this.#options, this.#blocks.options)
    if (site === '' || !this.#options.zones.some(isLocalZone)) return
    this.#stops.add(watchUnexportable(this.#shared!, site, this.#options, this.#context))
  }

  /** Returns our own records, or those of all sites, with their known health. */
  async #records(): Promise<RecordSource> {
    const { source: place, health } = this.#options
    const own = openHealth(this.#shared!.source, this.#blocks.probingOf(place), this.#healthParts)
    this.#health = own
    const records = await this.#mergePeers(own.records)
    return openSlowStart(records, health ?? NO_HEALTH, this.#healthParts)
  }

  async #mergePeers(own: RecordSource): Promise<RecordSource> {
    if (this.#peers === undefined) return own
    // The answers served now contain data of peers, which must not disappear and come back. In
    // other cases, the start does not wait for peers.
    if (this.#loaded !== undefined || this.#blocks.replacesServing) {
      await this.#peers.firstAnswers()
    }
    return this.#peers.merge(own, this.#exporter!)
  }

  get #exporter(): LocalExporter | undefined {
    const site = siteOf(this.#options, this.#blocks.options)
    return site === '' ? undefined : exporterOf(this.#shared!, site, this.#context.clock)
  }

  /** Where records of peers are merged, our own records have already been filtered by namespace. */
  get #zoneOptions(): KuadrantOptions {
    if (this.#peers === undefined) return this.#options
    return { ...this.#options, allowedNamespaces: undefined }
  }

  /** Waits for the zones, but not for a slow cluster. */
  async #followSoon(open: OpenZones, serialFile: SerialFile | undefined): Promise<void> {
    const following = (): Promise<void> => this.#follow(open, serialFile, undefined)
    const { source, position } = this.#options
    if (source.kind === 'manifests') return following()
    const { log } = this.#context
    const { source: records } = this.#shared!
    await atMost(records.synced(), this.#blocks.patienceMs)
    const reason = records.unreadyReason()
    if (reason === '') return following()
    // A configuration that answers must not be replaced by one that does not.
    if (this.#blocks.replacesServing) faultAt(position)(new InputError(undefined, reason))
    following().catch((error) => log.error(`records are not followed: ${printReason(error)}`))
    log.warning(`${reason}; until they are, queries get SERVFAIL`)
  }

  get #healthParts(): BlockHealthParts {
    const { log, clock, metrics } = this.#context
    return { name: nameOf(this.#options.source), stops: this.#stops, log, clock, metrics }
  }

  async #measureWatches(): Promise<void> {
    if (this.#options.source.kind !== 'kubernetes') return
    const { KubernetesSource } = await import('../sources/kubernetes/kubernetes-source.ts')
    const { source } = this.#shared!
    if (!(source instanceof KubernetesSource)) return
    const name = nameOf(this.#options.source)
    this.#stops.add(measureWatches(this.#context.metrics, name, source))
  }

  #keepSnapshot(open: OpenZones, zones: KuadrantZones, writtenVersion: number | undefined): void {
    const { clock, log } = this.#context
    const { snapshot } = this.#options
    if (snapshot === undefined) return
    const options = this.#shape
    this.#keeper = new SnapshotKeeper({
      ...snapshot,
      capture: () => {
        if (!open.image.isPublished) return undefined
        const facts = { options, takenMs: clock.now(), policies: open.table.policies }
        return { image: open.image.capture(), facts: printFacts({ ...facts, zones: zones.facts }) }
      },
      write: writeInThread,
      clock,
      timers: systemTimers,
      log,
      writtenVersion,
    })
    this.#keeper.noteChange()
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

function printTime({ facts }: LoadedSnapshot): string {
  return new Date(facts.takenMs).toISOString()
}

function printReason(error: unknown): string {
  if (error instanceof InputError) return error.print()
  return error instanceof Error ? error.message : String(error)
}
