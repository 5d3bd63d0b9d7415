import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { unpackRecord, unpackSettings } from '../../records/pack.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../records/record-source.ts'
import {
  type EndpointDrain,
  isActive,
  isSameDrain,
  isSameDrains,
  NO_DRAINS,
  printDrain,
  type RecordDrains,
} from './drain.ts'
import { DRAIN_CHECK_MS, type DrainFeed, type DrainsChange } from './drain-schedule.ts'
import { drainOfRecord } from './record-drain.ts'

export interface DrainColumnOptions {
  /** The records that are served. */
  readonly source: RecordSource
  /** Drains of the drain file; undefined = none. */
  readonly file: DrainFeed | undefined
  /** Other drains that do not come from the records. */
  readonly feeds?: readonly DrainFeed[]
  /** Our own site; '' = none. */
  readonly site: string
  /** Returns the sites that reported each endpoint of a record, in the record's order. */
  readonly sitesOf: (record: StoredRecord) => readonly (readonly string[])[]
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Called with the keys of records whose drains changed, with at most `PART_RECORDS` at a time. */
  readonly onChange: (keys: ReadonlySet<string>) => void
}

/** Records that are announced at a time. Their RRsets are built at once, which takes some milliseconds. */
const PART_RECORDS = 64

/** The drains of a record in one of its versions. */
interface Marked {
  readonly record: StoredRecord
  readonly drains: RecordDrains
}

/** Yields the records whose drains changed; undefined = a record with the same drains. */
type Change = Generator<StoredRecord | undefined, void>

/**
 * The drained endpoints of records: by a file, by other feeds, and by annotations of the records. If drains begin or
 * end, only the records with selected endpoints change: they are found without unpacking the other records.
 */
export class DrainColumn {
  /** Resolves once `recordKeys` has the records that are drained at the start. */
  readonly ready: Promise<void>
  readonly #options: DrainColumnOptions
  readonly #feeds: readonly DrainFeed[]
  /** Records with drained endpoints, by key. */
  readonly #marked = new Map<string, Marked>()
  /** Drains by annotations that are in force, by key of the record. */
  readonly #annotated = new Map<string, EndpointDrain>()
  /** Drains of the file for which the log says that they select endpoints of other sites. */
  readonly #foreign = new WeakSet<EndpointDrain>()
  /** Records whose annotations name the end of a drain, by key. */
  readonly #ending = new Map<string, StoredRecord>()
  #stopChecking: (() => void) | undefined
  /** Changes to apply, the oldest first. */
  readonly #changes: Change[] = []
  #isApplying = false
  #isClosed = false
  /** True while further parts of a change follow. */
  isChanging = false
  readonly #stops: readonly (() => void)[]
  readonly #guarded: Guarded

  constructor(options: DrainColumnOptions) {
    const { source, file, feeds = [], log } = options
    this.#options = options
    this.#feeds = file === undefined ? feeds : [file, ...feeds]
    this.#guarded = guarding(log, 'Applying drains')
    this.#stops = [
      source.subscribe((changes) => this.#follow(changes)),
      ...this.#feeds.map((feed) => {
        return feed.subscribe((change) => {
          void this.#guarded(() => this.#apply(this.#select(change)))
        })
      }),
    ]
    this.ready = this.#apply(this.#selectPossible())
  }

  /** Lists the drains for the ready page, at most `max`; '' = none. */
  note(max: number): string {
    const drains = [...this.#fedDrains, ...this.#annotated.values()]
    const more = drains.length > max ? ` and ${drains.length - max} more` : ''
    const texts = drains.slice(0, max).map(printDrain)
    return texts.length === 0 ? '' : `drained: ${texts.join(', ')}${more}`
  }

  /** What is wrong with the sources of drains. Blocks may share these. */
  problemGroups(): ProblemGroup[] {
    return this.#feeds.flatMap(({ problems }) => {
      return problems.map((one) => oneProblem('drain', `${one.object} ${one.place}`, one))
    })
  }

  /** The drains in force that are not in the drain file. */
  get unfiled(): readonly EndpointDrain[] {
    const { feeds = [] } = this.#options
    return [...feeds.flatMap(({ drains }) => drains), ...this.#annotated.values()]
  }

  /** Keys of the records with drained endpoints. */
  get recordKeys(): Iterable<string> {
    return this.#marked.keys()
  }

  drainsOf(record: StoredRecord): RecordDrains {
    if (!this.#mayBeDrained(record)) return NO_DRAINS
    const known = this.#marked.get(record.key)
    return known?.record === record ? known.drains : this.#find(record)
  }

  close(): void {
    this.#isClosed = true
    for (const stop of this.#stops) stop()
    this.#stopChecking?.()
  }

  #follow(changes: readonly RecordChange[]): void {
    for (const { before, after } of changes) {
      const { key } = (after ?? before)!
      if (after !== undefined && (this.#mayBeDrained(after) || this.#marked.has(key))) {
        this.#mark(after)
        continue
      }
      this.#marked.delete(key)
      this.#noteAnnotation(key, undefined)
      this.#ending.delete(key)
    }
    this.#keepChecking()
  }

  get #fedDrains(): readonly EndpointDrain[] {
    return this.#feeds.flatMap(({ drains }) => drains)
  }

  /** Fast: false = the record has no drained endpoint. */
  #mayBeDrained({ packed }: StoredRecord): boolean {
    return (
      this.#feeds.some(({ drains }) => drains.length > 0) ||
      unpackSettings(packed)?.drain !== undefined
    )
  }

  /** Returns false if the drains of the record are as before. */
  #mark(record: StoredRecord): boolean {
    const { key } = record
    const annotation = drainOfRecord(record, this.#options.site)
    if (annotation?.untilMs === undefined) this.#ending.delete(key)
    else this.#ending.set(key, record)
    this.#noteAnnotation(
      key,
      annotation !== undefined && this.#isActive(annotation) ? annotation : undefined,
    )
    const was = this.#marked.get(record.key)
    const drains = this.#find(record)
    if (was?.record === record && isSameDrains(was.drains, drains)) return false
    this.#noteForeign(record, drains)
    if (drains !== NO_DRAINS) this.#marked.set(record.key, { record, drains })
    else if (!this.#marked.delete(record.key)) return false
    return true
  }

  /** Applies changes one after the other, in slices: a drain may select every record. */
  async #apply(change: Change): Promise<void> {
    this.#changes.push(change)
    if (this.#isApplying) return
    this.#isApplying = true
    try {
      await runInSlices(this.#applyChanges(), this.#options.clock)
    } finally {
      this.#isApplying = false
      this.isChanging = false
    }
  }

  *#applyChanges(): Generator<void, void> {
    for (;;) {
      const change = this.#changes.shift()
      if (change === undefined) {
        // Here, so that no change comes between this check of the list and the end.
        this.#isApplying = false
        return
      }
      let keys = new Set<string>()
      for (const record of change) {
        if (this.#isClosed) return
        if (record !== undefined && this.#mark(record)) keys.add(record.key)
        if (keys.size === PART_RECORDS) {
          this.isChanging = true
          this.#notify(keys)
          keys = new Set()
        }
        yield
      }
      this.isChanging = false
      this.#notify(keys)
    }
  }

  #notify(keys: ReadonlySet<string>): void {
    if (keys.size > 0) this.#options.onChange(keys)
  }

  /** Finds the records that may be drained at the start. */
  *#selectPossible(): Change {
    const { source } = this.#options
    for (const record of [...source.records()]) {
      const isCurrent = source.find(record.key) === record
      yield isCurrent && this.#mayBeDrained(record) ? record : undefined
    }
    this.#keepChecking()
  }

  /** Finds the records that drains of files and feeds select, or selected. */
  *#select({ begun, ended }: DrainsChange): Change {
    const { source } = this.#options
    for (const { record, drains } of ended.length > 0 ? [...this.#marked.values()] : []) {
      // A record that changed since then has the current drains.
      const isCurrent = this.#marked.get(record.key)?.record === record
      yield isCurrent && hasAny(drains, ended) ? record : undefined
    }
    for (const record of begun.length > 0 ? [...source.records()] : []) {
      const isSelected = begun.some(({ selector }) => selector.mayMatch(record))
      yield isSelected && source.find(record.key) === record ? record : undefined
    }
  }

  #isActive(drain: EndpointDrain): boolean {
    return isActive(drain, this.#options.clock.now())
  }

  /** Notes which drain the annotations of a record ask for now; undefined = none. */
  #noteAnnotation(key: string, drain: EndpointDrain | undefined): void {
    const { log } = this.#options
    const known = this.#annotated.get(key)
    if (known === drain || (known && drain && isSameDrain(known, drain))) return
    if (drain !== undefined) log.info(`drain begins: ${printDrain(drain)}`, 'drain-begins')
    else if (known !== undefined) log.info(`drain ends: ${printDrain(known)}`, 'drain-ends')
    if (drain === undefined) this.#annotated.delete(key)
    else this.#annotated.set(key, drain)
  }

  /** Logs once that a drain of the file selects endpoints of another site, which does not learn of it. */
  #noteForeign({ origin }: StoredRecord, { endpoints }: RecordDrains): void {
    const { file, site, log } = this.#options
    if (origin === undefined || origin.site === site) return
    for (const drain of endpoints.flatMap((targets) => [...targets.values()])) {
      if (this.#foreign.has(drain) || !file?.drains.includes(drain)) continue
      this.#foreign.add(drain)
      log.warning(
        `drain ${drain.selector.text} selects endpoints of site ${origin.site}: they are drained at this server only`,
        'drain-of-other-site',
      )
    }
  }

  /** Ends drains by annotations whose time has come, for as long as there are any that end. */
  #keepChecking(): void {
    if (this.#ending.size === 0) {
      this.#stopChecking?.()
      this.#stopChecking = undefined
      return
    }
    const check = (): void => void this.#guarded(() => this.#check())
    this.#stopChecking ??= this.#options.timers.every(DRAIN_CHECK_MS, check)
  }

  async #check(): Promise<void> {
    if (!this.#isApplying) await this.#apply(this.#selectEnded())
  }

  /** Finds the records whose drains by annotations have ended, or are in force again. */
  *#selectEnded(): Change {
    for (const [key, record] of [...this.#ending]) {
      const drain = drainOfRecord(record, this.#options.site)!
      const isNoted = this.#isActive(drain) === this.#annotated.has(key)
      yield isNoted || this.#ending.get(key) !== record ? undefined : record
    }
  }

  /** Returns the drains that a record would have if those of `begun` began and others ended. */
  drainsWith(
    record: StoredRecord,
    begun: readonly EndpointDrain[],
    isEnded: (drain: EndpointDrain) => boolean,
  ): RecordDrains {
    const { sitesOf } = this.#options
    const drains = this.#drainsFor(record).filter((drain) => !isEnded(drain))
    return findDrains(record, [...drains, ...begun], () => sitesOf(record))
  }

  #find(record: StoredRecord): RecordDrains {
    const { sitesOf } = this.#options
    return findDrains(record, this.#drainsFor(record), () => sitesOf(record))
  }

  /** Returns the drains in force that may select endpoints of a record. */
  #drainsFor(record: StoredRecord): readonly EndpointDrain[] {
    const { site } = this.#options
    // The same object as long as the annotation is the same: equal drains are the same object.
    const known = this.#annotated.get(record.key)
    const own = drainOfRecord(record, site)
    const annotation = known && own && isSameDrain(known, own) ? known : own
    const isDrained = annotation !== undefined && this.#isActive(annotation)
    return isDrained ? [...this.#fedDrains, annotation] : this.#fedDrains
  }
}

function hasAny({ endpoints }: RecordDrains, drains: readonly EndpointDrain[]): boolean {
  return endpoints.some((targets) => {
    for (const drain of targets.values()) if (drains.includes(drain)) return true
    return false
  })
}

/** Returns the targets of a record that the drains select. The first drain of a target counts. */
export function findDrains(
  record: StoredRecord,
  drains: readonly EndpointDrain[],
  sitesOf: () => readonly (readonly string[])[],
): RecordDrains {
  const possible = drains.filter(({ selector }) => selector.mayMatch(record))
  if (possible.length === 0) return NO_DRAINS
  const content = unpackRecord(record.packed)
  const { origin } = record
  const sites = origin === undefined ? sitesOf() : content.endpoints.map(() => [origin.site])
  const at = { record, content, sites }
  let isEmpty = true
  const endpoints = content.endpoints.map((_, i) => {
    const targets = new Map<number, EndpointDrain>()
    for (const drain of possible) {
      for (const index of drain.selector.targetsOf(at, i)) {
        if (!targets.has(index)) targets.set(index, drain)
      }
    }
    if (targets.size > 0) isEmpty = false
    return targets
  })
  return isEmpty ? NO_DRAINS : { endpoints }
}
