import type { Clock } from '../../base/clock.ts'
import { findPlaceFault, problemsOfFile } from '../../base/persist/state-file.ts'
import { WriteSchedule } from '../../base/persist/write-schedule.ts'
import { runInSlices } from '../../base/slices.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { printName } from '../../dns/name/name.ts'
import { copyCaptured } from '../../zone/image/copy-captured.ts'
import { restoreArena } from '../../zone/image/restore.ts'
import { type CapturedImage, ZoneImage } from '../../zone/image/writer.ts'
import {
  type RefusedSnapshot,
  readInSlices,
  refuse,
  restoreInSlices,
} from '../../zone/snapshot/read.ts'
import { writeInThread } from '../../zone/snapshot/write-in-thread.ts'
import type { InlineSigner, SignedVersion } from './inline-signer.ts'

/** Minimum time between two writes. */
const GAP_MS = 60_000
const RESTORING = { checkSteering: () => false, mayBeSigned: true } as const

interface SignedSnapshotParts {
  /** Absolute. */
  readonly path: string
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** The facts of a snapshot, as JSON. */
interface SnapshotFacts {
  readonly zone: string
  readonly serial: number
  readonly sourceSerial: number
}

/** Keeps the signed version of a zone for the next start, so that it signs only what has changed. */
export class SignedSnapshot {
  readonly #parts: SignedSnapshotParts
  readonly #schedule: WriteSchedule
  #signer: InlineSigner | undefined

  constructor(parts: SignedSnapshotParts) {
    this.#parts = parts
    const { path, clock, timers, log } = parts
    this.#schedule = new WriteSchedule({
      ...{ clock, timers, log },
      subject: `snapshot ${path}`,
      gapMs: GAP_MS,
      write: () => this.#write(),
    })
    this.#schedule.checkPlace(() => findPlaceFault(path))
  }

  /** Why it cannot be written now. */
  get problems(): readonly ProblemGroup[] {
    const loss = 'after a restart, the whole zone is signed again'
    return problemsOfFile(this.#parts.path, 'the snapshot', this.#schedule.fault, loss)
  }

  /** Returns the version that the file keeps; undefined = it keeps none that can be used. */
  async load(): Promise<SignedVersion | undefined> {
    const { path, clock, log } = this.#parts
    const found = await runInSlices(this.#read(), clock)
    if (found === undefined) {
      log.info(`there is no snapshot ${path} yet`, 'snapshot-missing')
    } else if (found.kind === 'refused') {
      log.warning(`snapshot ${path} is not used: ${found.reason}`, 'snapshot-not-used')
    } else return found.version
    return undefined
  }

  /** Writes each version that is published from now on, at intervals. */
  noteVersion(signer: InlineSigner): void {
    this.#signer = signer
    this.#schedule.noteChange()
  }

  /** Writes the last version and stops. */
  async close(): Promise<void> {
    await this.#schedule.flush()
    this.#schedule.stop()
  }

  async #write(): Promise<string | undefined> {
    const { path, zone } = this.#parts
    const { captured, serial, sourceSerial } = this.#signer!
    if (captured === undefined) return undefined
    const facts: SnapshotFacts = { zone: printName(zone), serial, sourceSerial }
    try {
      await writeInThread({ path, image: captured, facts: JSON.stringify(facts) })
      return ''
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  *#read(): Generator<
    void,
    { readonly kind: 'read'; readonly version: SignedVersion } | RefusedSnapshot | undefined
  > {
    const zone = printName(this.#parts.zone)
    let facts: SnapshotFacts | undefined
    const read = yield* readInSlices(this.#parts.path, (text) => {
      facts = scanFacts(text)
      if (facts === undefined) return 'it is damaged: its facts are invalid'
      return facts.zone === zone ? '' : `it is of zone ${facts.zone}`
    })
    if (read === undefined || read.kind === 'refused') return read
    const restored = yield* restoreInSlices(read, RESTORING)
    if ('kind' in restored) return restored
    const image = new ZoneImage({}, restored)
    const isOurs = image.stats.zones === 1 && image.findZone(this.#parts.zone) !== undefined
    if (!isOurs) return refuse('it is damaged: its zone differs from its facts')
    const { serial, sourceSerial } = facts!
    return { kind: 'read', version: { image, serial, sourceSerial } }
  }
}

/** Returns a copy of a version that another instance serves; undefined = it cannot be copied. */
export async function copyVersion(
  captured: CapturedImage,
  { serial, sourceSerial }: Pick<SignedVersion, 'serial' | 'sourceSerial'>,
  clock: Clock,
): Promise<SignedVersion | undefined> {
  const restored = await runInSlices(restoreArena(copyCaptured(captured), RESTORING), clock)
  return restored && { image: new ZoneImage({}, restored), serial, sourceSerial }
}

/** Undefined = the text has another format. */
function scanFacts(text: string): SnapshotFacts | undefined {
  try {
    const { zone, serial, sourceSerial } = JSON.parse(text)
    const isPlain = typeof zone === 'string' && isSerial(serial) && isSerial(sourceSerial)
    return isPlain ? { zone, serial, sourceSerial } : undefined
  } catch {
    return undefined
  }
}

function isSerial(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 32
}
