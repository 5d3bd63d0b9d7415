import type { Clock } from '../../base/clock.ts'
import type { ResourceRegistry } from '../../base/resource-registry.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { SnapshotStatus } from '../../base/telemetry/status.ts'
import { systemTimers } from '../../base/timers.ts'
import { hasDrainsSince } from '../../health/drain/drain-file.ts'
import { writeInThread } from '../../zone/snapshot/write-in-thread.ts'
import type { SnapshotOptions } from '../options.ts'
import type { SnapshotState } from '../zone/metrics.ts'
import type { PublishedZones } from '../zone/zones.ts'
import { printFacts } from './snapshot/facts.ts'
import { SnapshotKeeper } from './snapshot/keeper.ts'
import { type LoadedSnapshot, loadSnapshot } from './snapshot/load.ts'
import type { OpenZones } from './threaded-zones.ts'

/** A snapshot may lack drains that began this long before it was taken. */
const DRAIN_LAG_MS = 2000

interface ZoneSnapshotParts {
  readonly resources: ResourceRegistry
  readonly log: Logger
  readonly clock: Clock
}

/**
 * The snapshot of a publisher's zones: loaded at the start, served until records replace it, and
 * kept up to date from then on.
 */
export class ZoneSnapshot {
  readonly #options: SnapshotOptions
  readonly #parts: ZoneSnapshotParts
  #loaded: LoadedSnapshot | undefined
  #takenMs = 0
  /** Version of the image in the file; undefined = unknown. */
  #writtenVersion: number | undefined
  /** Why records can't be read while the snapshot is served. */
  #trouble = ''
  /** Undefined until the records are read. */
  #zones: PublishedZones | undefined
  #keeper: SnapshotKeeper | undefined

  constructor(options: SnapshotOptions, parts: ZoneSnapshotParts) {
    this.#options = options
    this.#parts = parts
  }

  /** Absolute path of the file. */
  get path(): string {
    return this.#options.path
  }

  /**
   * Loads the file. Returns undefined if it is missing, invalid or of zones with another shape, or
   * lacks drains of the file `drains` ('' = none).
   */
  load(shape: string, drains: string): LoadedSnapshot | undefined {
    const { log, clock } = this.#parts
    const { path } = this.#options
    const startMs = performance.now()
    const found = loadSnapshot(path, shape)
    if (found === undefined) {
      log.info(`there is no snapshot ${path} yet`, 'snapshot-missing')
      return undefined
    }
    if (found.kind === 'refused') {
      log.warning(`snapshot ${path} is not used: ${found.reason}`, 'snapshot-not-used')
      return undefined
    }
    const { takenMs } = found.facts
    const nowMs = clock.now()
    // If the clock was set back since, the time of the drain file shows nothing.
    const sinceMs = takenMs > nowMs ? 0 : takenMs - DRAIN_LAG_MS
    if (drains !== '' && hasDrainsSince(drains, sinceMs, nowMs)) {
      log.warning(
        `snapshot ${path} is not used: drains may have begun after it was taken`,
        'snapshot-not-used',
      )
      return undefined
    }
    const seconds = ((performance.now() - startMs) / 1000).toFixed(2)
    const { zones, names } = found.image.stats
    const content = `${zones} zones, ${names} names, as of ${printTime(found)}`
    log.info(`snapshot ${path} loaded in ${seconds} s: ${content}`, 'snapshot-loaded')
    this.#takenMs = found.facts.takenMs
    this.#writtenVersion = found.image.capture().version
    this.#loaded = found
    return found
  }

  /** True as long as some served data comes only from the snapshot. */
  get isServed(): boolean {
    if (this.#zones?.leftoverCount === 0) this.#loaded = undefined
    return this.#loaded !== undefined
  }

  /** For metrics. */
  get state(): SnapshotState {
    const takenMs = this.#keeper?.writtenMs || this.#takenMs
    return {
      isServed: this.isServed,
      takenSeconds: takenMs / 1000,
      octets: this.#keeper?.octets ?? 0,
    }
  }

  /** For the status of the server. */
  report(nowMs: number): SnapshotStatus {
    const { isServed, takenSeconds, octets } = this.state
    const ageSeconds = takenSeconds === 0 ? null : Math.round(nowMs / 1000 - takenSeconds)
    return { file: this.path, isServed, ageSeconds, octets }
  }

  /** SOA serial of a zone of the snapshot that is served; undefined = none. */
  serialOf(zone: string): number | undefined {
    return this.#loaded?.facts.zones.find((facts) => facts.zone === zone)?.serial
  }

  /** Logs why records can't be read while the snapshot is served. */
  reportTrouble(trouble: string): void {
    if (trouble !== this.#trouble)
      this.#parts.log.error(`${trouble}; the snapshot is served`, 'snapshot-served')
    this.#trouble = trouble
  }

  /**
   * Returns what the ready page shows while the snapshot is served. `unreadReason`: why the records
   * of the source are not complete.
   */
  noteServed(unreadReason: string): string {
    const since = printTime(this.#loaded!)
    const kept = this.#zones?.leftoverCount ?? 0
    if (kept > 0) return `${kept} RRsets are as of ${since}: ${unreadReason}`
    return `zones are as of ${since}: ${this.#trouble || unreadReason || 'records are being read'}`
  }

  /** Why the zones can't be stored now. */
  get problems(): readonly ProblemGroup[] {
    return this.#keeper?.problems ?? []
  }

  /** Writes the zones whenever they changed, from now on. */
  keep(zones: PublishedZones, { image, table }: OpenZones, shape: string): void {
    const { resources, log, clock } = this.#parts
    this.#zones = zones
    this.#keeper = new SnapshotKeeper({
      ...this.#options,
      resources,
      capture: () => {
        if (!image.isPublished) return undefined
        const facts = { options: shape, takenMs: clock.now(), policies: table.policies }
        return { image: image.capture(), facts: printFacts({ ...facts, zones: zones.facts }) }
      },
      write: writeInThread,
      clock,
      timers: systemTimers,
      log,
      writtenVersion: this.#writtenVersion,
    })
    this.#keeper.noteChange()
  }

  /** Notes that new content was published. */
  noteChange(): void {
    this.#keeper?.noteChange()
  }

  /** Writes pending changes. */
  async finish(): Promise<void> {
    await this.#keeper?.finish()
  }

  async close(): Promise<void> {
    await this.#keeper?.close()
  }
}

function printTime({ facts }: LoadedSnapshot): string {
  return new Date(facts.takenMs).toISOString()
}
