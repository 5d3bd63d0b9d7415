import { systemClock } from '../base/clock.ts'
import { runInSlices } from '../base/slices.ts'
import type { Timers } from '../base/timers.ts'
import { guarding } from '../telemetry/guard.ts'
import type { Logger } from '../telemetry/log.ts'
import type { FollowedSource } from './source.ts'
import { ZoneOwnership } from './zone-ownership.ts'

/** Milliseconds without a change of zones before records outside of all zones are logged. */
const CLAIMS_SETTLE_MS = 1000
/** Maximum number of records named in one warning. */
const NAMED_MAX = 5

/** Dependencies of a shared source. */
export interface RefCountedSourceParts {
  readonly log: Logger
  readonly timers: Timers
}

/**
 * One source of records with all its users. Several server blocks with the same directory or
 * cluster read it once, and so do the old and the new instance at a reload.
 */
export class RefCountedSource<S extends FollowedSource = FollowedSource> {
  readonly source: S
  readonly ownership: ZoneOwnership = new ZoneOwnership()
  readonly #parts: RefCountedSourceParts
  readonly #unowned = new Set<string>()
  /** Unowned records that are not logged yet. */
  #fresh = new Set<string>()
  #cancelLog: (() => void) | undefined
  #cancelWarning: (() => void) | undefined
  #isClosed = false

  constructor(source: S, parts: RefCountedSourceParts) {
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

  async start(): Promise<void> {
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
    const guarded = guarding(log, 'Looking for records of no zone')
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
    const named = fresh.slice(0, NAMED_MAX).join(', ')
    const more = fresh.length > NAMED_MAX ? ` and ${fresh.length - NAMED_MAX} more` : ''
    log.warning(`no zone is served for DNSRecords ${named}${more}: they are ignored`)
  }
}

interface Use {
  readonly shared: RefCountedSource
  readonly started: Promise<void>
  users: number
}

const uses = new Map<string, Use>()

/**
 * Returns the source with that key, started. `open` creates it if this process does not have it.
 * Rejects with the error of its start. The returned function releases the source; the last release
 * closes it.
 */
export async function acquireSource<S extends FollowedSource>(
  key: string,
  open: () => RefCountedSource<S>,
): Promise<{ readonly shared: RefCountedSource<S>; readonly release: () => void }> {
  let use = uses.get(key)
  if (use === undefined) {
    const shared = open()
    use = { shared, started: shared.start(), users: 0 }
    uses.set(key, use)
  }
  const own = use
  own.users++
  const release = once(() => releaseUse(key, own))
  try {
    await own.started
  } catch (error) {
    release()
    throw error
  }
  // The key determines the type of the source.
  return { shared: own.shared as RefCountedSource<S>, release }
}

/** Returns the source with that key in this process; undefined = none. */
export function findSource(key: string): RefCountedSource | undefined {
  return uses.get(key)?.shared
}

/** Returns the sources in this process whose keys have this prefix. */
export function sourcesWithPrefix(prefix: string): RefCountedSource[] {
  return [...uses].filter(([key]) => key.startsWith(prefix)).map(([, { shared }]) => shared)
}

function releaseUse(key: string, use: Use): void {
  if (--use.users > 0) return
  if (uses.get(key) === use) uses.delete(key)
  use.shared.close()
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}
