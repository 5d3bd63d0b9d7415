import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { nameKey } from '../../dns/name/name.ts'
import { isSerialAfter } from '../../dns/serial.ts'
import { diffVersions, type ZoneDifference } from '../../xfr/journal/diff.ts'
import { ZoneJournal } from '../../xfr/journal/journal.ts'
import { VersionView, type ZoneVersion } from '../../xfr/journal/version-view.ts'
import type { SetKey, VersionChange, ZoneVersions } from '../../xfr/zone-versions.ts'

/** Maximum octets of the differences kept for one zone, and of one difference. */
const HISTORY_OCTETS_MAX = 4 * 1024 * 1024
/** Maximum of differences kept for one zone. */
const HISTORY_STEPS_MAX = 10_000

/** The newest version and the journal of one zone. */
interface History {
  /** The version that the journal ends with. */
  version: ZoneVersion
  readonly journal: ZoneJournal
}

/** A version that is not in the journal yet. */
interface Pending {
  version: ZoneVersion
  /** By owner and type; undefined = anything may have changed. */
  changed: Map<string, SetKey> | undefined
}

/** The data for the answer to an IXFR. */
interface HistoryAnswer {
  readonly version: ZoneVersion
  /** Undefined = not known; empty = the client has that version. */
  readonly steps: readonly ZoneDifference[] | undefined
}

/**
 * The zones of a block and their journals. Differences are computed between queries, one zone after
 * the other. Versions that arrive meanwhile are combined.
 */
export class Histories {
  readonly #clock: Clock
  readonly #covers: (zone: Uint8Array) => boolean
  readonly #onVersion: (version: ZoneVersion) => void
  readonly #guarded: Guarded
  readonly #histories = new Map<string, History>()
  readonly #pending = new Map<string, Pending>()
  #isBusy = false
  #isStopped = false

  /** `covers`: whether a zone may be transferred. `onVersion` is called once a version can be transferred. */
  constructor(
    versions: ZoneVersions,
    clock: Clock,
    covers: (zone: Uint8Array) => boolean,
    onVersion: (version: ZoneVersion) => void,
    log: Logger,
  ) {
    this.#clock = clock
    this.#covers = covers
    this.#onVersion = onVersion
    this.#guarded = guarding(log, 'Comparing two versions of a zone')
    versions.subscribe((change) => this.#take(change))
  }

  stop(): void {
    this.#isStopped = true
    this.#pending.clear()
  }

  /** Returns the versions that the journals end with. */
  versions(): ZoneVersion[] {
    return [...this.#histories.values()].map(({ version }) => version)
  }

  /** Returns the differences from `serial` to the newest known version; undefined if the zone is not known. */
  since(zone: Uint8Array, serial: number): HistoryAnswer | undefined {
    const history = this.#histories.get(nameKey(zone))
    if (history === undefined) return undefined
    const { version, journal } = history
    const isCurrent = serial === version.serial || isSerialAfter(serial, version.serial)
    return { version, steps: isCurrent ? [] : journal.since(serial) }
  }

  #take({ zone, version, changed }: VersionChange): void {
    if (this.#isStopped || !this.#covers(zone)) return
    const key = nameKey(zone)
    if (version === undefined) {
      this.#histories.delete(key)
      this.#pending.delete(key)
      return
    }
    if (!this.#histories.has(key)) {
      const journal = new ZoneJournal(HISTORY_OCTETS_MAX, HISTORY_STEPS_MAX)
      this.#histories.set(key, { version, journal })
      // An error while notifying others must not reach the publisher of the version.
      void this.#guarded(() => this.#onVersion(version))
      return
    }
    const waiting = this.#pending.get(key)
    const before = waiting === undefined ? new Map<string, SetKey>() : waiting.changed
    this.#pending.set(key, { version, changed: together(before, changed) })
    if (!this.#isBusy) void this.#work()
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    for (const [key, pending] of this.#pending) {
      this.#pending.delete(key)
      await this.#guarded(() => this.#advance(key, pending))
    }
    this.#isBusy = false
  }

  async #advance(key: string, { version, changed }: Pending): Promise<void> {
    const history = this.#histories.get(key)
    if (history === undefined) return
    let step: ZoneDifference | undefined
    try {
      step = await this.#diff(history.version, version, changed)
    } finally {
      // Also after a failure: clients then get the whole new version.
      this.#settle(key, history, version, step)
    }
  }

  #settle(
    key: string,
    history: History,
    version: ZoneVersion,
    step: ZoneDifference | undefined,
  ): void {
    // The zone may have been removed meanwhile, and another one added.
    if (this.#isStopped || this.#histories.get(key) !== history) return
    const isNewer = isSerialAfter(version.serial, history.version.serial)
    const isSame = version.serial === history.version.serial
    // The same content may have moved to other memory.
    const hasMoved = isSame && step !== undefined && Buffer.compare(step.removed, step.added) === 0
    if (step !== undefined && isNewer) history.journal.push(step)
    else if (!hasMoved) history.journal.clear()
    history.version = version
    if (!isSame) this.#onVersion(version)
  }

  async #diff(
    from: ZoneVersion,
    to: ZoneVersion,
    changed: Map<string, SetKey> | undefined,
  ): Promise<ZoneDifference | undefined> {
    const old = VersionView.open(from)
    const now = VersionView.open(to)
    if (old === undefined || now === undefined) return undefined
    const places = changed === undefined ? undefined : [...changed.values()]
    return runInSlices(diffVersions(old, now, places, HISTORY_OCTETS_MAX), this.#clock)
  }
}

function together(
  before: Map<string, SetKey> | undefined,
  changed: readonly SetKey[] | undefined,
): Map<string, SetKey> | undefined {
  if (before === undefined || changed === undefined) return undefined
  for (const set of changed) before.set(`${set.type} ${nameKey(set.owner)}`, set)
  return before
}
