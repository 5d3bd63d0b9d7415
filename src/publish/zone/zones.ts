import { plural } from '../../base/plural.ts'
import { runInSlices } from '../../base/slices.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Timers } from '../../base/timers.ts'
import { isSubdomain, nameKey } from '../../dns/name/name.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../records/record-source.ts'
import type { ZoneOwnership } from '../../sources/zone-ownership.ts'
import { logOut, noteAllDown } from '../build/all-down.ts'
import type { PublishOptions } from '../options.ts'
import { type CommitParts, Commits } from './commits.ts'
import { Leftovers } from './leftovers.ts'
import { PublishedZone, type PublishedZoneParts } from './published-zone.ts'
import type { ContentSerial } from './serials/serial-index.ts'
import { belongs } from './zone-content.ts'

/** A batch that takes longer than this is published in parts. */
const HOLD_MS = 5000
/** Records whose zones are found at a time. */
const SLICE_RECORDS = 500
/** Changes with up to this many steps are made at once: they take a few milliseconds. */
const STEPS_MAX = 200
/** Maximum of conflicts and changes of health that are logged one by one in a row. */
const LOGGED_MAX = 20
/** Maximum of names and types that the ready page lists. */
const NAMED_MAX = 3
/** Interval of the checks whether the source can be trusted again. */
const TRUST_MS = 1000
/** Interval of the checks whether peers have reported all endpoints. */
const RECHECK_MS = 1000

export interface PublishedZonesParts extends PublishedZoneParts, CommitParts {
  readonly timers: Timers
  /** False: peers may have further endpoints of the record's host. Missing = there are no peers. */
  readonly isComplete?: ((recordKey: string) => boolean) | undefined
}

/**
 * The zones of one publisher, updated from their source: each batch is one publish. RRsets
 * that the image already has are served until the records are loaded. Those that no record has are
 * removed then.
 */
export class PublishedZones {
  readonly #options: PublishOptions
  readonly #parts: PublishedZonesParts
  readonly #leftovers: Leftovers
  readonly #zones: readonly PublishedZone[]
  readonly #commits: Commits
  #ownership: ZoneOwnership | undefined
  /** A zone inside one of ours was added or removed while changes had to wait. */
  #mustMove = false
  /** Lines about the batch in progress. */
  #logged = 0
  readonly #guarded: Guarded
  #source: RecordSource | undefined
  /**
   * Changes that arrived while the zones were being filled, or that waited for the GEO classes. By
   * key: from our version of the record to its current one.
   */
  #waiting: Map<string, RecordChange> | undefined
  /** Start time of the changes that are applied but not published; undefined = none. */
  #changedMs: number | undefined
  #isCommitDue = false
  #isStopped = false

  constructor(options: PublishOptions, parts: PublishedZonesParts) {
    this.#options = options
    this.#parts = parts
    this.#leftovers = new Leftovers(parts.image)
    this.#guarded = guarding(parts.log, 'Applying changed records')
    parts.image.beginReplacing()
    const apexes = new Map(options.zones.map((zone) => [nameKey(zone), zone]))
    this.#zones = [...apexes.values()].map((apex) => this.#createZone(apex))
    this.#commits = new Commits(this.#zones, parts)
  }

  /** For metrics, explanations and the status. */
  get zones(): readonly Pick<
    PublishedZone,
    'apex' | 'key' | 'text' | 'records' | 'serial' | 'isServed' | 'signatures'
  >[] {
    return this.#zones
  }

  /** Returns the record with that key, `namespace/name`. */
  findRecord(key: string): StoredRecord | undefined {
    return this.#source?.find(key)
  }

  /** What the ready page shows; '' = nothing. */
  note(): string {
    const sets = this.#zones
      .filter(({ apex }) => !isLocalZone(apex))
      .flatMap(({ records: { out } }) => [...out.allDown, ...out.exhausted])
    return noteAllDown(sets, NAMED_MAX)
  }

  /** The geo codes of the endpoints that are served. In the gateway-local form they are data for peers. */
  get codes(): ReadonlySet<string> {
    const zones = this.#zones.filter(({ apex }) => !isLocalZone(apex))
    return new Set(zones.flatMap(({ records }) => [...records.tally.codes.keys()]))
  }

  /** For a snapshot. */
  get facts(): ContentSerial[] {
    return this.#zones.flatMap(({ facts }) => facts ?? [])
  }

  /** RRsets that only the image has. They are kept while the source as a whole can't be trusted. */
  get leftoverCount(): number {
    return this.#leftovers.count
  }

  /**
   * Fills the zones and follows the source; returns the function that stops that. Other work runs
   * between slices; changes that arrive meanwhile are applied afterwards. `ownership` already contains
   * our zones.
   */
  async follow(source: RecordSource, ownership: ZoneOwnership): Promise<() => void> {
    const startMs = this.#parts.clock.monotonic()
    this.#ownership = ownership
    this.#source = source
    this.#waiting = new Map()
    const unsubscribe = source.subscribe((changes) => this.#take(changes))
    const stopHealth = this.#parts.health.subscribe((keys) => {
      void this.#guarded(() => this.#takeHealth(keys))
    })
    const stopWatching = ownership.onChange((zone) => this.#moveRecords(zone))
    this.#parts.table.gather()
    await runInSlices(this.#fill([...source.records()]), this.#parts.clock)
    this.#leftovers.collect((one) => this.#zones.some((zone) => zone.isMade(one)))
    this.#dropLeftovers(source)
    await this.#commits.commitFirst(startMs, () => this.#noteLoad())
    const stopDropping = this.#leftovers.count === 0 ? () => {} : this.#dropLater(source)
    this.#resume()
    this.#recheckConflicts()
    const stopChecking = this.#parts.timers.every(RECHECK_MS, () => this.#recheck())
    this.#logContent(startMs)
    this.#logFaults()
    return () => {
      this.#isStopped = true
      unsubscribe()
      stopHealth()
      stopWatching()
      stopDropping()
      stopChecking()
      for (const { signatures } of this.#zones) signatures?.close()
    }
  }

  /** Changes follow, or have not been applied. */
  get #isChanging(): boolean {
    return this.#waiting !== undefined || this.#source?.isChanging === true
  }

  #recheck(): void {
    this.#recheckConflicts()
    if (this.#commits.isDue) this.#commitDue()
    else if (this.#waiting === undefined && this.#changedMs === undefined)
      this.#commits.compactIdle()
    this.#logFaults()
  }

  #logFaults(): void {
    for (const { signatures, isServed } of this.#zones) signatures?.logFault(isServed)
  }

  #recheckConflicts(): void {
    // Conflicts of a batch in progress may end before it is published.
    if (this.#isChanging || this.#changedMs !== undefined) return
    this.#logged = 0
    for (const { records } of this.#zones) records.conflicts.recheck()
  }

  /**
   * Removes the leftovers once all files are readable. A file that can't be read hides its records,
   * so their RRsets are kept until then. So are those of a zone that cannot be signed.
   */
  #dropLeftovers(source: RecordSource): void {
    if (source.unreadyReason() !== '') return
    const held = this.#zones.filter(({ isHeld }) => isHeld).map(({ id }) => id)
    const removed = this.#leftovers.remove(({ zone }) => held.includes(zone))
    for (const one of removed) this.#zones.find(({ id }) => id === one.zone)?.noteRemoved(one)
    this.#parts.versions.noteAll()
  }

  #dropLater(source: RecordSource): () => void {
    const { timers, clock, log } = this.#parts
    const reason =
      source.unreadyReason() === '' ? 'the zone can be signed' : 'all manifests are valid'
    log.warning(
      `${this.#leftovers.count} RRsets of the snapshot are kept until ${reason}`,
      'snapshot-rrsets-kept',
    )
    const stop = timers.every(TRUST_MS, () => {
      if (this.#waiting !== undefined) return
      this.#dropLeftovers(source)
      if (this.#leftovers.count > 0) return
      stop()
      this.#commit(clock.monotonic())
    })
    return stop
  }

  *#fill(records: readonly StoredRecord[]): Generator<void> {
    for (let at = 0; at < records.length; at += SLICE_RECORDS) {
      const slice = records.slice(at, at + SLICE_RECORDS)
      yield* this.#apply(slice.map((after) => ({ before: undefined, after })))
    }
  }

  #take(changes: readonly RecordChange[]): void {
    if (this.#waiting !== undefined) {
      for (const change of changes) mergeChange(this.#waiting, change)
      return
    }
    if (this.#changedMs === undefined) this.#logged = 0
    this.#changedMs ??= this.#parts.clock.monotonic()
    const steps = this.#apply(changes)
    if (changes.length <= SLICE_RECORDS && ends(steps)) this.#commitWhole()
    else void this.#guarded(() => this.#takeRest(steps))
  }

  /** Builds the RRsets of records again whose health changed. */
  #takeHealth(keys: ReadonlySet<string>): void {
    const changes: RecordChange[] = []
    for (const key of keys) {
      const record = this.#source!.find(key)
      if (record !== undefined) changes.push({ before: record, after: record })
    }
    if (changes.length > 0) this.#take(changes)
  }

  /** Publishes again although no record changed. */
  #commitDue(): void {
    this.#changedMs ??= this.#parts.clock.monotonic()
    void this.#guarded(() => this.#commitWhole())
  }

  /** Publishes a batch that arrives in parts as one. */
  #commitWhole(): void {
    const startMs = this.#changedMs
    if (startMs === undefined || this.#waiting !== undefined || this.#isStopped) return
    const isOverdue = this.#parts.clock.monotonic() - startMs >= HOLD_MS
    const isReading = this.#source?.isChanging === true && !isOverdue
    if (!isReading && this.#parts.health.isChanging !== true) {
      this.#changedMs = undefined
      this.#commit(startMs)
      return
    }
    if (this.#isCommitDue) return
    this.#isCommitDue = true
    setImmediate(() => {
      this.#isCommitDue = false
      void this.#guarded(() => this.#commitWhole())
    })
  }

  /** Applies changes in slices, so that queries get their turn. Changes that arrive meanwhile wait. */
  async #takeRest(steps: Generator<void>): Promise<void> {
    this.#waiting = new Map()
    try {
      await runInSlices(this.#untilStopped(steps), this.#parts.clock)
    } finally {
      this.#resume()
    }
  }

  *#apply(changes: readonly RecordChange[]): Generator<void> {
    for (let at = 0; at < changes.length; at += SLICE_RECORDS) {
      const slice = changes.slice(at, at + SLICE_RECORDS)
      for (const zone of this.#zones) yield* zone.records.applyInSteps(this.#changesOf(zone, slice))
      yield
    }
  }

  /** Another instance may write to the image once this one is stopped. */
  *#untilStopped(steps: Generator<void>): Generator<void> {
    while (!this.#isStopped && steps.next().done !== true) yield
  }

  /** Returns the changes of records that the zone has or gets. */
  #changesOf(zone: PublishedZone, changes: readonly RecordChange[]): RecordChange[] {
    const mine: RecordChange[] = []
    for (const change of changes) {
      const isOld = change.before !== undefined && zone.records.has(change.before)
      const isNew =
        change.after !== undefined && belongs(change.after, zone, this.#options, this.#ownership!)
      const before = isOld ? change.before : undefined
      const after = isNew ? change.after : undefined
      if (before !== undefined || after !== undefined) mine.push({ before, after })
    }
    return mine
  }

  /** Another publisher started or stopped serving `changed`, so records below it may now belong to other zones. */
  #moveRecords(changed: Uint8Array): void {
    if (!this.#zones.some(({ apex }) => !isLocalZone(apex) && isSubdomain(changed, apex))) return
    this.#mustMove = true
    if (this.#waiting === undefined) this.#moveAll()
  }

  #moveAll(): void {
    this.#mustMove = false
    this.#take([...this.#source!.records()].map((record) => ({ before: record, after: record })))
  }

  /** New changes wait if the commit waits for the GEO classes: they may have other unknown codes. */
  #commit(startMs: number): void {
    const published = this.#commits.commit(startMs)
    if (published !== undefined) void this.#guarded(() => this.#resumeAfter(published))
  }

  async #resumeAfter(published: Promise<void>): Promise<void> {
    this.#waiting ??= new Map()
    try {
      await published
    } finally {
      this.#resume()
    }
  }

  /** Publishes what is applied, then applies the changes that waited; these may have to wait again. */
  #resume(): void {
    if (this.#isStopped) return
    const waiting = [...(this.#waiting?.values() ?? [])]
    this.#waiting = undefined
    this.#commitWhole()
    if (waiting.length > 0) this.#take(waiting)
    if (this.#mustMove && this.#waiting === undefined) this.#moveAll()
  }

  #createZone(apex: Uint8Array): PublishedZone {
    const { log, isComplete = () => true } = this.#parts
    return new PublishedZone(apex, this.#options, this.#parts, this.#leftovers, {
      onDue: () => this.#commitDue(),
      onConflict: (conflict) => {
        const rest = (): void =>
          log.warning('and more conflicts of records', 'record-conflict-more')
        this.#logSome(() => log.warning(conflict, 'record-conflict'), rest)
      },
      isComplete: (recordKey) => !this.#isChanging && isComplete(recordKey),
      onOut: (down, isOver) => {
        // In the gateway-local form, health is data for peers.
        if (isLocalZone(apex)) return
        const write = (): void => logOut(log, down, isOver)
        this.#logSome(write, () =>
          log.warning('and more changes of health', 'endpoints-changes-more'),
        )
      },
    })
  }

  /** Logs up to LOGGED_MAX lines about one batch of changes, then once that there are more. */
  #logSome(write: () => void, writeRest: () => void): void {
    if (this.#logged < LOGGED_MAX) write()
    else if (this.#logged === LOGGED_MAX) writeRest()
    this.#logged++
  }

  #noteLoad(): void {
    const loaded = this.#zones.map(({ text, records, serial }) => {
      return { zone: text, serial, text: plural(records.recordCount, 'record') }
    })
    this.#parts.events.noteLoad(loaded)
  }

  #logContent(startMs: number): void {
    const seconds = ((this.#parts.clock.monotonic() - startMs) / 1000).toFixed(2)
    for (const { text, records, serial } of this.#zones.filter(({ isServed }) => isServed)) {
      const content = `${plural(records.recordCount, 'record')}, ${plural(records.rrsetCount, 'RRset')}`
      this.#parts.log.info(
        `zone ${text}: ${content}, serial ${serial}, in ${seconds} s`,
        'zone-published',
        { zone: text, serial, records: records.recordCount, rrsets: records.rrsetCount },
      )
    }
  }
}

/** Makes up to STEPS_MAX steps. True if none is left. */
function ends(steps: Generator<void>): boolean {
  for (let i = 0; i < STEPS_MAX; i++) if (steps.next().done === true) return true
  return false
}

/** Merges changes of one record: `before` of the first one, `after` of the last one. */
function mergeChange(changes: Map<string, RecordChange>, change: RecordChange): void {
  const { key } = (change.before ?? change.after)!
  const earlier = changes.get(key) ?? change
  changes.set(key, { before: earlier.before, after: change.after })
}
