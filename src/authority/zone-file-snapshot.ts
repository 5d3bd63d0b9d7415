import type { Clock } from '../base/clock.ts'
import { findPlaceFault, problemsOfFile } from '../base/persist/state-file.ts'
import { logWriteFault } from '../base/persist/write-schedule.ts'
import { runInSlices } from '../base/slices.ts'
import { statIfAny } from '../base/stat.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ProblemGroup } from '../base/telemetry/problems.ts'
import {
  readFileSnapshot,
  SNAPSHOT_OCTETS_MIN,
  type SnapshotSource,
} from '../zone/zonefile/file-snapshot.ts'
import type { ImageLoad } from '../zone/zonefile/image-load.ts'

interface SnapshotParts {
  readonly clock: Clock
  readonly log: Logger
}

/** The snapshot that keeps the last version of a zone file for the next start. */
export class ZoneFileSnapshot {
  /** Absolute. */
  readonly path: string
  readonly #options: SnapshotParts
  /** Why it cannot be written; '' = it can. */
  #fault = ''

  constructor(path: string, options: SnapshotParts) {
    this.path = path
    this.#options = options
  }

  /** Why the zone cannot be kept now. */
  get problems(): readonly ProblemGroup[] {
    const loss = 'after a restart, the zone is read from its file'
    return problemsOfFile(this.path, 'the snapshot', this.#fault, loss)
  }

  /** Returns the version that is kept, if the zone file has not changed since; undefined = the file must be loaded. */
  async resume(source: SnapshotSource): Promise<ImageLoad | undefined> {
    const { clock, log } = this.#options
    const octets = statIfAny(source.path)?.size ?? 0
    if (octets < SNAPSHOT_OCTETS_MIN) return undefined
    this.note(findPlaceFault(this.path))
    const startMs = clock.monotonic()
    const found = await runInSlices(readFileSnapshot(this.path, source), clock)
    if (found === undefined) {
      log.info(`there is no snapshot ${this.path} yet`, 'snapshot-missing')
      return undefined
    }
    if (found.kind === 'refused') {
      log.warning(`snapshot ${this.path} is not used: ${found.reason}`, 'snapshot-not-used')
      return undefined
    }
    const seconds = ((clock.monotonic() - startMs) / 1000).toFixed(2)
    log.info(
      `snapshot ${this.path} loaded in ${seconds} s: serial ${found.serial}`,
      'snapshot-loaded',
    )
    return found
  }

  /** Notes the result of a write: why it failed, or ''. */
  note(fault: string): void {
    logWriteFault(this.#options.log, `snapshot ${this.path}`, this.#fault, fault)
    this.#fault = fault
  }
}
