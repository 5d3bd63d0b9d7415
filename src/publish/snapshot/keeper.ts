import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SnapshotJob } from '../../zone/snapshot/write.ts'
import type { SnapshotWriter } from '../../zone/snapshot/write-in-thread.ts'

/** Delay after a change, because changes often come in groups. */
const SETTLE_MS = 1000

export interface KeeperOptions {
  /** Absolute path. */
  readonly path: string
  /** Minimum time between the starts of two writes. */
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
interface Place {
  /** Only the last keeper writes. */
  readonly keepers: SnapshotKeeper[]
  writing: Promise<void>
}

const places = new Map<string, Place>()

/**
 * Keeps a snapshot file up to date with the zones of one block. It writes soon after a change, at
 * most once per interval, and at an orderly stop. Another thread does the work.
 */
export class SnapshotKeeper {
  readonly #options: KeeperOptions
  readonly #place: Place
  #writtenVersion: number | undefined
  #isChanged = false
  #isWriting = false
  #fault = ''
  #isClosed = false
  #startedMs = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  /**
   * Wall clock of the content in the file, in milliseconds since the epoch; 0 = nothing was
   * written.
   */
  writtenMs = 0
  /** Size of the file; 0 = nothing was written. */
  octets = 0

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#writtenVersion = options.writtenVersion
    const place = places.get(options.path) ?? { keepers: [], writing: Promise.resolve() }
    places.set(options.path, place)
    place.keepers.push(this)
    this.#place = place
  }

  /** Why the last write failed, for the ready page; '' = it succeeded. */
  note(): string {
    return this.#fault
  }

  /** Notes that new content was published. */
  noteChange(): void {
    this.#isChanged = true
    this.#schedule()
  }

  /** Writes pending changes without waiting for the interval. */
  async finish(): Promise<void> {
    await this.#place.writing
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#isChanged) await this.#write()
  }

  /** Stops the schedule; resolves once no write is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    const { keepers } = this.#place
    const wasOwner = this.#isOwner
    keepers.splice(keepers.indexOf(this), 1)
    if (keepers.length === 0) places.delete(this.#options.path)
    // A failed reload may have written a file for other options.
    else if (wasOwner) keepers.at(-1)!.#writeAgain()
    await this.#place.writing
  }

  #writeAgain(): void {
    this.#writtenVersion = undefined
    this.noteChange()
  }

  get #isOwner(): boolean {
    return this.#place.keepers.at(-1) === this
  }

  #schedule(): void {
    if (this.#isClosed || this.#isWriting || this.#cancelTimer !== undefined) return
    const { clock, timers, intervalMs } = this.#options
    const sinceMs = clock.monotonic() - this.#startedMs
    this.#cancelTimer = timers.after(Math.max(SETTLE_MS, intervalMs - sinceMs), () => {
      this.#cancelTimer = undefined
      this.#write()
    })
  }

  async #write(): Promise<void> {
    if (this.#isClosed || this.#isWriting || !this.#isOwner) return
    this.#isWriting = true
    this.#startedMs = this.#options.clock.monotonic()
    const written = this.#place.writing.then(() => this.#writeNow())
    this.#place.writing = written
    await written
    this.#isWriting = false
    if (this.#isChanged) this.#schedule()
  }

  async #writeNow(): Promise<void> {
    const { path, capture, write, clock, log } = this.#options
    this.#isChanged = false
    const nowMs = clock.now()
    try {
      const captured = capture()
      if (captured === undefined) {
        this.#isChanged = true
        this.#startedMs = Number.NEGATIVE_INFINITY
        return
      }
      const { version } = captured.image
      if (version === this.#writtenVersion) return
      this.octets = await write({ path, ...captured })
      this.writtenMs = nowMs
      this.#writtenVersion = version
    } catch (error) {
      this.#isChanged = true
      const reason = error instanceof Error ? error.message : String(error)
      const fault = `snapshot ${path} can't be written: ${reason}`
      if (this.#fault === '') log.error(fault)
      this.#fault = fault
      return
    }
    if (this.#fault !== '') log.info(`snapshot ${path} is written again`)
    this.#fault = ''
  }
}
