import type { Clock } from '../../../base/clock.ts'
import { findPlaceFault, problemsOfFile } from '../../../base/persist/state-file.ts'
import { WriteSchedule } from '../../../base/persist/write-schedule.ts'
import type { ResourceLease, ResourceRegistry } from '../../../base/resource-registry.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../../base/telemetry/problems.ts'
import type { Timers } from '../../../base/timers.ts'
import type { SnapshotJob } from '../../../zone/snapshot/write.ts'
import type { SnapshotWriter } from '../../../zone/snapshot/write-in-thread.ts'

interface KeeperOptions {
  /** Absolute path. */
  readonly path: string
  readonly resources: ResourceRegistry
  /** Minimum time between two writes. */
  readonly intervalMs: number
  /** Returns the published content; undefined = a new version is about to be published. */
  readonly capture: () => Omit<SnapshotJob, 'path'> | undefined
  readonly write: SnapshotWriter
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Version of the image that is already in the file. */
  readonly writtenVersion: number | undefined
}

/** State that the keepers of one file share. During a reload a file has two keepers. */
class Place {
  /** Only the last keeper writes. */
  readonly keepers: SnapshotKeeper[] = []
  writing: Promise<unknown> = Promise.resolve()
}

/**
 * Keeps a snapshot file up to date with the zones of one block. It writes soon after a change, at
 * most once per interval, and at an orderly stop. Another thread does the work.
 */
export class SnapshotKeeper {
  readonly #options: KeeperOptions
  readonly #schedule: WriteSchedule
  readonly #lease: ResourceLease<Place>
  #writtenVersion: number | undefined
  #isClosed = false
  /**
   * Wall clock of the content in the file, in milliseconds since the epoch; 0 = nothing was
   * written.
   */
  writtenMs = 0
  /** Size of the file; 0 = nothing was written. */
  octets = 0

  constructor(options: KeeperOptions) {
    const { path, intervalMs, clock, timers, log, writtenVersion } = options
    this.#options = options
    this.#writtenVersion = writtenVersion
    const write = (): Promise<string | undefined> => this.#write()
    const parts = { subject: `snapshot ${path}`, gapMs: intervalMs, write }
    this.#schedule = new WriteSchedule({ ...parts, clock, timers, log })
    this.#schedule.checkPlace(() => findPlaceFault(path))
    this.#lease = options.resources.acquire(Place, path, () => new Place())
    this.#place.keepers.push(this)
  }

  /** Why the zones can't be stored now. */
  get problems(): readonly ProblemGroup[] {
    const loss = 'after a restart, no zone is served until its records are read'
    return problemsOfFile(this.#options.path, 'the snapshot', this.#schedule.fault, loss)
  }

  /** Notes that new content was published. */
  noteChange(): void {
    this.#schedule.noteChange()
  }

  /** Writes pending changes without waiting for the interval. */
  async finish(): Promise<void> {
    await this.#place.writing
    await this.#schedule.flush()
  }

  /** Stops the schedule; resolves once no write is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#schedule.stop()
    const { keepers } = this.#place
    const wasOwner = this.#isOwner
    keepers.splice(keepers.indexOf(this), 1)
    this.#lease.release()
    // A failed reload may have written a file for other options.
    if (wasOwner && keepers.length > 0) keepers.at(-1)!.#writeAgain()
    await this.#place.writing
  }

  #writeAgain(): void {
    this.#writtenVersion = undefined
    this.noteChange()
  }

  get #place(): Place {
    return this.#lease.item
  }

  get #isOwner(): boolean {
    return this.#place.keepers.at(-1) === this
  }

  #write(): Promise<string | undefined> {
    const written = this.#place.writing.then(() => this.#writeNow())
    this.#place.writing = written
    return written
  }

  /** Returns the result for the schedule. */
  async #writeNow(): Promise<string | undefined> {
    const { path, capture, write, clock } = this.#options
    if (this.#isClosed || !this.#isOwner) return undefined
    const nowMs = clock.now()
    try {
      const captured = capture()
      if (captured === undefined) return undefined
      const { version } = captured.image
      if (version === this.#writtenVersion) return ''
      this.octets = await write({ path, ...captured })
      this.writtenMs = nowMs
      this.#writtenVersion = version
      return ''
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }
}
