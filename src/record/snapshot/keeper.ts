import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SnapshotJob } from '../../zone/snapshot/write.ts'
import type { SnapshotWriter } from '../../zone/snapshot/write-in-thread.ts'

/** Changes seldom come alone. */
const SETTLE_MS = 1000

export interface KeeperOptions {
  /** Absolute. */
  readonly path: string
  /** From the beginning of one write to that of the next, at least. */
  readonly intervalMs: number
  /** What is published just now; undefined while something else is about to be. */
  readonly capture: () => Omit<SnapshotJob, 'path'> | undefined
  readonly write: SnapshotWriter
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Version of the image that the file has already. */
  readonly writtenVersion: number | undefined
}

/** What the keepers of one file share: a reload has two of them for a moment. */
interface Place {
  /** The last one writes. */
  readonly keepers: SnapshotKeeper[]
  writing: Promise<void>
}

const places = new Map<string, Place>()

/**
 * Keeps a snapshot file up with the zones of one block: soon after a change, but no more often than the
 * interval allows, and at an orderly stop. Another thread does the work.
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
  /** Wall clock at which what is in the file was so; 0 = nothing was written. */
  writtenMs = 0
  /** Of the file; 0 = nothing was written. */
  octets = 0

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#writtenVersion = options.writtenVersion
    const place = places.get(options.path) ?? { keepers: [], writing: Promise.resolve() }
    places.set(options.path, place)
    place.keepers.push(this)
    this.#place = place
  }

  /** Why the last write failed, for the ready page; '' = it did not. */
  note(): string {
    return this.#fault
  }

  /** Notes that something else was published. */
  noteChange(): void {
    this.#isChanged = true
    this.#schedule()
  }

  /** Writes what the file does not have yet, without waiting for the interval to pass. */
  async finish(): Promise<void> {
    await this.#place.writing
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#isChanged) await this.#write()
  }

  /** Ends the schedule; resolves once no write is under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    const { keepers } = this.#place
    const wasOwner = this.#isOwner
    keepers.splice(keepers.indexOf(this), 1)
    if (keepers.length === 0) places.delete(this.#options.path)
    // What a reload that failed has written says of other options.
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
