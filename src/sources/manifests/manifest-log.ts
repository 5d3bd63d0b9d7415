import type { Clock } from '../../base/clock.ts'
import { plural } from '../../base/plural.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { LISTED_MAX } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import type { RecordChange } from '../../records/record-source.ts'
import { IgnoredLog } from '../ignored-log.ts'
import type { IgnoredParts } from './file-reading.ts'
import type { ManifestFaults } from './manifest-faults.ts'

/** Maximum number of problems per batch that are logged one by one. */
const LOGGED_MAX = 20
/** Most ignored parts per batch of files whose lines are searched: as many as are listed, of three kinds. */
const PLACED_MAX = 3 * LISTED_MAX
/** Least time between two lines about changed files: a program may write them all the time. */
const CHANGES_MS = 1000

interface ManifestLogParts {
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/** What the log says about the files of a directory. */
export class ManifestLog {
  readonly #parts: ManifestLogParts
  readonly #ignored = new IgnoredLog()
  readonly #warned = new Set<string>()
  /** The last logged message about the directory itself. */
  #loggedOfDirectory = ''
  #hadProblems = false
  /** Files that were read again or removed since the last line about that. */
  #files = new Set<string>()
  #counts = { added: 0, changed: 0, removed: 0 }
  #changesMs = Number.NEGATIVE_INFINITY
  #cancelChanges: (() => void) | undefined
  /** How many lines of ignored parts may be searched in this batch of files. */
  #placesLeft = PLACED_MAX

  constructor(parts: ManifestLogParts) {
    this.#parts = parts
  }

  close(): void {
    this.#cancelChanges?.()
  }

  warnOnce(text: string): void {
    if (this.#warned.has(text) || this.#warned.size >= LOGGED_MAX) return
    this.#warned.add(text)
    this.#parts.log.warning(text, 'manifest-problem')
  }

  /** True if the line of one more ignored part may be searched. */
  takesLine(): boolean {
    return this.#placesLeft-- > 0
  }

  noteIgnored({ key, problems, locate }: IgnoredParts): void {
    this.#ignored.note(key, problems, (problem) => locate(problem).print())
  }

  /** Notes a file that was read again, or removed. */
  noteFile(path: string): void {
    this.#files.add(path)
  }

  noteChanges(changes: readonly RecordChange[]): void {
    for (const { before, after } of changes) {
      if (before === undefined) this.#counts.added++
      else if (after !== undefined) this.#counts.changed++
      else {
        this.#counts.removed++
        this.#ignored.forget(before.key)
      }
    }
  }

  /** Logs the changes since the last call, new problems, and that earlier problems are fixed. */
  flush(ofDirectory: string, faults: ManifestFaults): void {
    const { log } = this.#parts
    this.#placesLeft = PLACED_MAX
    this.#ignored.flush(log)
    if (ofDirectory !== this.#loggedOfDirectory && ofDirectory !== '')
      log.error(ofDirectory, 'manifest-directory-failed')
    this.#loggedOfDirectory = ofDirectory
    const { texts, more } = faults.takeNew(LOGGED_MAX)
    for (const text of texts) log.error(text, 'manifest-problem')
    if (more > 0) log.error(`and ${more} more problems`, 'manifest-problem-more')
    // The problem is the line about such a file.
    if (texts.length > 0 && this.#printCounts() === '') this.#files.clear()
    this.#flushChanges()
    const hasProblems = faults.count > 0 || ofDirectory !== ''
    if (this.#hadProblems && !hasProblems)
      log.info('all manifests are valid again', 'manifests-valid')
    this.#hadProblems = hasProblems
  }

  #flushChanges(): void {
    if (this.#files.size === 0 || this.#cancelChanges !== undefined) return
    const { log, clock, timers } = this.#parts
    const waitMs = this.#changesMs + CHANGES_MS - clock.monotonic()
    if (waitMs > 0) {
      this.#cancelChanges = timers.after(waitMs, () => {
        this.#cancelChanges = undefined
        this.#flushChanges()
      })
      return
    }
    const [first = ''] = this.#files
    const others = this.#files.size - 1
    const files = others === 0 ? first : `${first} and ${plural(others, 'more file')}`
    log.info(
      `manifests changed: ${files}, ${this.#printCounts() || 'no record changed'}`,
      'manifests-changed',
    )
    this.#files = new Set()
    this.#counts = { added: 0, changed: 0, removed: 0 }
    this.#changesMs = clock.monotonic()
  }

  /** `1 record added, 2 records changed`; '' = no record changed. */
  #printCounts(): string {
    return Object.entries(this.#counts)
      .filter(([, count]) => count > 0)
      .map(([what, count]) => `${plural(count, 'record')} ${what}`)
      .join(', ')
  }
}
