import { systemClock } from '../base/clock.ts'
import type { ResourceLease, ResourceRegistry } from '../base/resource-registry.ts'
import { runInSlices } from '../base/slices.ts'
import { guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ProblemGroup, ProblemText } from '../base/telemetry/problems.ts'
import type { Timers } from '../base/timers.ts'
import { printRecordObject } from '../records/object-record-key.ts'
import type { FollowedSource } from './source.ts'
import { ZoneOwnership } from './zone-ownership.ts'

/** Milliseconds without a change of zones before records outside of all zones are logged. */
const CLAIMS_SETTLE_MS = 1000
/** Maximum number of records named in one warning. */
const NAMED_MAX = 5

let nextId = 0

interface OwnedSourceParts {
  readonly log: Logger
  readonly timers: Timers
}

/**
 * A source of records with the zones that own them. Several server blocks with the same directory
 * or cluster read it once, and so do the old and the new instance at a reload.
 */
export class OwnedSource {
  /** Different from that of every other source of the process, also of one with the same place. */
  readonly id = nextId++
  readonly source: FollowedSource
  readonly ownership: ZoneOwnership = new ZoneOwnership()
  readonly #parts: OwnedSourceParts
  readonly #unowned = new Set<string>()
  /** Unowned records that are not logged yet. */
  #fresh = new Set<string>()
  #cancelLog: (() => void) | undefined
  #cancelWarning: (() => void) | undefined
  #isClosed = false
  #started: Promise<void> | undefined

  constructor(source: FollowedSource, parts: OwnedSourceParts) {
    this.#parts = parts
    this.source = source
    this.ownership.onChange(() => this.#scheduleWarning())
  }

  /**
   * Number of records outside of all zones; counted again shortly after zones are added or removed.
   */
  get unownedCount(): number {
    return this.#unowned.size
  }

  /** What is wrong with the records. `of`: name of the source. */
  problemGroups(of: string): ProblemGroup[] {
    const problems = this.#listUnowned()
    const unowned = {
      kind: 'ignored-record',
      of: `${of} zones`,
      count: this.unownedCount,
      problems,
    } as const
    return [...this.source.problemGroups(of), unowned]
  }

  *#listUnowned(): Generator<ProblemText> {
    for (const key of this.#unowned) {
      const reason = `no zone is served for ${printRecordObject(key)}: it is ignored`
      yield { place: this.source.printPlace(key), object: key, reason }
    }
  }

  /** Starts the source, at the first call. Rejects with the error of that start. */
  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  async #start(): Promise<void> {
    await this.source.start()
    this.source.subscribe((changes) => {
      const keys = changes.map(({ before, after }) => after?.key ?? before?.key ?? '')
      this.#check(keys)
    })
    void this.source.synced().then(() => this.#scheduleWarning())
  }

  close(): void {
    this.#isClosed = true
    this.#cancelWarning?.()
    this.#cancelLog?.()
    this.source.close()
  }

  #scheduleWarning(): void {
    this.#cancelWarning?.()
    if (this.#isClosed) return
    const { log, timers } = this.#parts
    const guarded = guarding(log, 'Searching records without a zone')
    this.#cancelWarning = timers.after(CLAIMS_SETTLE_MS, () => void guarded(() => this.#recount()))
  }

  async #recount(): Promise<void> {
    this.#unowned.clear()
    this.#fresh = new Set()
    await runInSlices(this.#checkAll(), systemClock)
    this.#log()
  }

  *#checkAll(): Generator<void, void> {
    for (const { key } of this.source.records()) {
      if (this.#isClosed) return
      this.#checkRecord(key)
      yield
    }
  }

  #check(keys: readonly string[]): void {
    for (const key of keys) this.#checkRecord(key)
    this.#log()
  }

  #checkRecord(key: string): void {
    const record = this.source.find(key)
    const isOwned = record === undefined || this.ownership.zoneKeyOf(record.packed) !== ''
    if (isOwned) {
      this.#unowned.delete(key)
      this.#fresh.delete(key)
    } else if (!this.#unowned.has(key)) {
      this.#unowned.add(key)
      this.#fresh.add(key)
    }
  }

  /** Logs one line for a batch that arrives in parts. */
  #log(): void {
    if (this.#fresh.size === 0 || this.#isClosed || this.#cancelLog !== undefined) return
    const { log, timers } = this.#parts
    if (this.source.isChanging === true) {
      this.#cancelLog = timers.after(CLAIMS_SETTLE_MS, () => {
        this.#cancelLog = undefined
        this.#log()
      })
      return
    }
    const fresh = [...this.#fresh]
    this.#fresh = new Set()
    const named = fresh.slice(0, NAMED_MAX).map(printRecordObject).join(', ')
    const more = fresh.length > NAMED_MAX ? ` and ${fresh.length - NAMED_MAX} more` : ''
    log.warning(`no zone is served for ${named}${more}: ignored`, 'records-without-zone')
  }
}

/**
 * Returns the source with that key, started. `open` creates it if this process does not have it.
 * Rejects with the error of its start.
 */
export async function acquireSource(
  resources: ResourceRegistry,
  key: string,
  open: () => OwnedSource,
): Promise<ResourceLease<OwnedSource>> {
  const lease = resources.acquire(OwnedSource, key, open)
  try {
    await lease.item.start()
  } catch (error) {
    lease.release()
    throw error
  }
  return lease
}
