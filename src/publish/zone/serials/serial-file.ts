import type { Clock } from '../../../base/clock.ts'
import { StateFile } from '../../../base/persist/state-file.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../../base/telemetry/problems.ts'
import type { Timers } from '../../../base/timers.ts'
import type { SerialEntry, SerialIndex } from './serial-index.ts'
import { printSerials, RESERVED, RESERVED_COMMITS, SERIALS } from './serial-text.ts'

interface SerialFileOptions {
  /** Absolute path. */
  readonly path: string
  readonly index: SerialIndex
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Stores serials over a restart. A serial is reserved on the disk before it is served:
 *
 *     the first commit            the file reserves the next RESERVED_COMMITS serials of each zone
 *     more commits                no write, until the reservation is used up
 *     soon, at most every 10 s    the file has the exact serials, and reserves none
 *
 * After a crash, serials continue above all reserved ones.
 *
 * While a new process replaces an old one, both write the file. A reservation is valid only as long
 * as it is the version on the disk. A process that finds another version continues above the
 * serials that the other process reserved, and makes a reservation of its own.
 */
export class SerialFile {
  readonly #index: SerialIndex
  readonly #file: StateFile<readonly SerialEntry[]>
  readonly #zones = new Set<string>()
  /** Number of commits that need no write. */
  #reserved = 0

  /** Loads the file of an earlier process. An invalid file is logged and ignored. */
  constructor(options: SerialFileOptions) {
    this.#index = options.index
    this.#file = new StateFile({
      ...options,
      kind: SERIALS,
      print: () => this.#print(),
      merge: (entries) => this.#merge(entries),
    })
    this.#merge(this.#file.open() ?? [])
  }

  get problems(): readonly ProblemGroup[] {
    return this.#file.problems
  }

  /** Loads what another process wrote since. The caller calls this before it chooses a serial. */
  catchUp(): void {
    if (this.#file.catchUp()) this.#reserved = 0
  }

  /** True if the file has serials of this zone, or will have them. */
  knows(zone: string): boolean {
    return this.#zones.has(zone)
  }

  /**
   * Notes that a commit changed serials of these zones, by one each. Returns once they will survive
   * a crash.
   */
  save(zones: readonly string[]): void {
    for (const zone of zones) this.#zones.add(zone)
    if (this.#reserved > 0) this.#reserved--
    else if (this.#file.writeNow(RESERVED)) this.#reserved = RESERVED_COMMITS
    this.#file.noteChange()
  }

  /** Writes the exact serials and stops. */
  close(): void {
    this.#file.close()
  }

  #merge(entries: readonly SerialEntry[]): void {
    for (const { zone } of entries) this.#zones.add(zone)
    this.#index.restore(entries)
  }

  #print(): Iterable<string> {
    this.#reserved = 0
    return printSerials([...this.#zones].sort().flatMap((zone) => this.#index.entriesOf(zone)))
  }
}
