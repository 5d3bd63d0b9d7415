import { runWhole } from '../../base/slices.ts'
import type { EventActor } from '../../base/telemetry/event-log.ts'
import { RRType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import type { HealthRow } from '../../health/health-table.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { firstOwnerKey, unpackPlace, unpackSettings } from '../../records/pack.ts'
import { comparePacked, type PackedDifference } from '../../records/packed-difference.ts'
import { isSameOrigin, type RecordChange, type StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { buildOwnerSets } from './build-owner-sets.ts'
import { ContentDigest } from './content-digest.ts'
import { DeadNames } from './dead-names.ts'
import { DecodedRecord, isDerived, NOTHING_DOWN, type OwnerGroup } from './decoded-record.ts'
import { defaultsAt } from './default-server.ts'
import { EndpointTally } from './endpoint-tally.ts'
import { OutSets } from './out-sets.ts'
import { OwnerConflicts } from './owner-conflicts.ts'
import { HOLDERS_MAX, OwnerHolders } from './owner-holders.ts'
import {
  type BuildReport,
  type ChangedOwner,
  type Contribution,
  DEFAULT_KEY,
  isServed,
  type OwnerSet,
} from './owner-set.ts'
import { plan } from './plan.ts'
import type { Conflict } from './record-conflicts.ts'
import type { RecordZoneOptions } from './record-zone-options.ts'
import { isPlain, ServedHealths } from './served-health.ts'

type Decoded = Map<StoredRecord, DecodedRecord>

/** Record key of endpoints that the Corefile has. */
export const CONFIGURED_KEY = 'the Corefile'
const CONFIGURED_ACTOR: EventActor = { kind: 'reload', name: 'the Corefile' }
/** Maximum number of changed records whose old and new sets are in memory at a time. */
const BATCH_MAX = 32
const DONE: Iterable<void> = []
/** Maximum number of decoded records in memory while names die or recover. */
const DECODED_MAX = 2 * HOLDERS_MAX

/**
 * One zone built from records and their health. It indexes the records of each owner, and turns
 * changed records into changed RRsets of their owners. Only these owners are processed, so the cost
 * of a change depends on the record, not on the zone.
 */
export class RecordZone {
  readonly #options: RecordZoneOptions
  readonly #holders: OwnerHolders
  readonly #dead: DeadNames
  readonly #healths: ServedHealths
  readonly #fixedByOwner = new Map<string, Contribution[]>()
  readonly #conflicts: OwnerConflicts
  readonly #out: OutSets
  readonly #digest = new ContentDigest()
  readonly #apexKey: string
  readonly #ownKeys: ReadonlySet<string>
  /** Of the endpoints in all RRsets. */
  readonly tally = new EndpointTally()
  #recordCount = 0
  #rrsetCount = 0

  constructor(options: RecordZoneOptions) {
    this.#options = options
    this.#holders = new OwnerHolders(options.site ?? '')
    this.#healths = new ServedHealths(options.health)
    this.#dead = new DeadNames({
      apex: options.apex,
      holders: this.#holders,
      isImpaired: ({ key }) => this.#healths.has(key),
      isConfigured: (name) => {
        const fixed = this.#fixedByOwner.get(name) ?? []
        return fixed.some(({ endpoint }) => endpoint.type !== RRType.NS)
      },
    })
    const { onConflict, isComplete = () => true } = options
    this.#conflicts = new OwnerConflicts({ onConflict, isComplete })
    this.#out = new OutSets({ onOut: options.onOut })
    this.#apexKey = lowerNameKey(options.apex)
    const owners = new Map([[this.#apexKey, options.apex]])
    for (const endpoint of options.fixed) {
      const key = lowerNameKey(endpoint.owner)
      owners.set(key, endpoint.owner)
      const contribution = this.#configured(CONFIGURED_KEY, endpoint)
      this.#fixedByOwner.set(key, [...(this.#fixedByOwner.get(key) ?? []), contribution])
    }
    for (const { owner } of options.defaultAddresses ?? []) owners.set(lowerNameKey(owner), owner)
    this.#ownKeys = new Set(owners.keys())
    for (const [key, owner] of owners) this.#replan({ key, owner, actor: CONFIGURED_ACTOR }, [])
  }

  /** Number of records in the zone. */
  get recordCount(): number {
    return this.#recordCount
  }

  get rrsetCount(): number {
    return this.#rrsetCount
  }

  get conflicts(): Pick<OwnerConflicts, 'count' | 'all' | 'problems' | 'recheck'> {
    return this.#conflicts
  }

  /** What is out of service. */
  get out(): Pick<OutSets, 'allDown' | 'exhausted' | 'drainedCount'> {
    return this.#out
  }

  /** Keys of the records with targets that are down, drained, in slow start or shifted. */
  *impairedKeys(): Generator<string> {
    const keys = this.#dead.cnameKeys()
    yield* keys
    for (const key of this.#healths.impairedKeys()) if (!keys.has(key)) yield key
  }

  /** The endpoints of a record of this zone, by owner. Zones in the gateway-local form have none. */
  endpointsOf(record: StoredRecord): OwnerGroup[] {
    if (this.#options.isLocalForm) return []
    const { groups } = this.#decode(record, new Map())
    return groups.map((group) => {
      return { ...group, contributions: this.#dead.resolve(group.contributions) }
    })
  }

  /** Digest of the content without the SOA; equal for equal content, regardless of the history. */
  get digest(): string {
    return this.#digest.print()
  }

  /**
   * Builds the RRsets of one owner once more, from the same data, and reports what becomes of each
   * endpoint. `owner`: lower-case wire form.
   */
  explain(owner: Uint8Array, report?: BuildReport): OwnerSet[] {
    const key = lowerNameKey(owner)
    return this.#sets(key, owner, this.#resolved(key, owner, new Map(), []), [], report)
  }

  /** The records, and `nameKey` of each of their names. Both may be added and removed while they are read. */
  get holders(): Pick<OwnerHolders, 'keys' | 'of' | 'records'> {
    return this.#holders
  }

  /** The RRsets of owners, also those without rdata. `only`: `nameKey` of each; undefined = of all. */
  *setsOf(only?: Iterable<string>): Generator<readonly [key: string, sets: readonly OwnerSet[]]> {
    // Most owners that follow each other are of the same records.
    const decoded: Decoded = new Map()
    for (const key of only ?? new Set([...this.#ownKeys, ...this.#holders.keys()])) {
      if (decoded.size > DECODED_MAX) decoded.clear()
      const owner = Uint8Array.from(Buffer.from(key, 'latin1'))
      yield [key, this.#sets(key, owner, this.#resolved(key, owner, decoded, []), [])]
    }
  }

  /** True if the zone contains this object. */
  has(record: StoredRecord): boolean {
    const key = this.#isDerived(record)
      ? this.#decode(record, new Map()).groups[0]?.key
      : firstOwnerKey(record.packed)
    return key !== undefined && this.#holders.of(key).includes(record)
  }

  /** As `applyInSteps`, at once. */
  apply(changes: readonly RecordChange[]): void {
    runWhole(this.applyInSteps(changes))
  }

  /**
   * Applies changes to records of this zone, and their current health. `before` and `after` are set
   * only if they belong to it. At each `yield` the caller may do other work, but must not apply other changes to this
   * zone.
   */
  *applyInSteps(changes: readonly RecordChange[]): Generator<void> {
    const effective = changes.filter((change) => this.#healths.isEffective(change))
    for (let at = 0; at < effective.length; at += BATCH_MAX) {
      yield* this.#applyBatch(effective.slice(at, at + BATCH_MAX))
    }
  }

  *#applyBatch(changes: readonly RecordChange[]): Generator<void> {
    // A record whose health alone changed is in both maps: as it is served, and as it will be.
    const served: Decoded = new Map()
    const next: Decoded = new Map()
    const others: RecordChange[] = []
    for (const change of changes) {
      const steps = this.#addAlone(change, next)
      if (steps === undefined) others.push(change)
      else if (steps !== DONE) yield* steps
      yield
    }
    const differences = new Map(
      others.map((change) => [change, this.#compare(change, served, next)]),
    )
    const owners = yield* this.#findOwners(others, served, next)
    const current = new Map<string, OwnerSet[]>()
    for (const [key, { owner }] of owners) {
      current.set(key, this.#sets(key, owner, this.#resolved(key, owner, served, []), []))
      yield
    }
    for (const [change, difference] of differences) this.#index(change, served, next, difference)
    for (const { before, after } of others) {
      // The health may have changed since the record was decoded; then this record follows again.
      this.#healths.note((after ?? before)!.key, after && next.get(after)!.state)
    }
    for (const [record, decoded] of next) served.set(record, decoded)
    yield* this.#settle(owners, served, this.#replanAll(owners, current, served))
  }

  *#replanAll(
    owners: ReadonlyMap<string, ChangedOwner>,
    current: ReadonlyMap<string, readonly OwnerSet[]>,
    decoded: Decoded,
  ): Generator<void> {
    for (const changed of owners.values()) {
      this.#replan(changed, current.get(changed.key)!, decoded)
      yield
    }
  }

  /** Returns the owners whose endpoints the changes may change. */
  *#findOwners(
    changes: readonly RecordChange[],
    served: Decoded,
    next: Decoded,
  ): Generator<void, Map<string, ChangedOwner>> {
    const owners = new Map<string, ChangedOwner>()
    for (const change of changes) {
      const { before, after } = change
      const actor = this.#healths.actorOf(change)
      const old = before === undefined ? [] : this.#decode(before, served).groups
      const now = after === undefined ? [] : this.#decodeNext(after, next, before).groups
      for (const { key, owner } of [...old, ...now]) owners.set(key, { key, owner, actor })
      yield
    }
    return owners
  }

  /**
   * Builds the RRsets of `owners`, whose endpoints have changed, with `build`. Then builds those of the CNAMEs whose
   * target name has died or recovered.
   */
  *#settle(
    owners: ReadonlyMap<string, ChangedOwner>,
    decoded: Decoded,
    build: Iterable<void>,
  ): Generator<void> {
    const { isLocalForm } = this.#options
    const isClean = isLocalForm || (this.#healths.isEmpty && this.#dead.isEmpty)
    const affected = yield* this.#dead.settle(isClean ? [] : owners.values(), (key, record) => {
      if (decoded.size > DECODED_MAX) decoded.clear()
      if (decoded.get(record)?.covers(key) === false) decoded.delete(record)
      return this.#contributions(key, record, decoded)
    })
    yield* build
    // Most owners that follow each other are of the same records.
    const known: Decoded = new Map()
    for (const [key, actor] of affected) {
      if (owners.has(key)) continue
      if (known.size > DECODED_MAX) known.clear()
      const owner = Uint8Array.from(Buffer.from(key, 'latin1'))
      const before = this.#dead.asServed(() => {
        return this.#sets(key, owner, this.#resolved(key, owner, known, []), [])
      })
      this.#replan({ key, owner, actor }, before, known)
      yield
    }
    this.#dead.commit()
  }

  /**
   * Adds a new record whose owners all have no data yet. Most records are of that kind while a zone
   * is filled, and they need no comparison. Returns the steps that are left; undefined for any other change, after
   * storing the decoded new record in `next`.
   */
  #addAlone({ before, after }: RecordChange, next: Decoded): Iterable<void> | undefined {
    if (before !== undefined || after === undefined) return undefined
    const state = this.#healths.nextState(after)
    const record = new DecodedRecord(state, this.#options)
    for (const { key } of record.groups) {
      if (!this.#holders.has(key) && !this.#ownKeys.has(key)) continue
      next.set(after, record)
      return undefined
    }
    if (record.groups.length > 0) this.#recordCount++
    this.#healths.note(after.key, state)
    const actor: EventActor = { kind: 'record', name: after.key }
    for (const { key } of record.groups) this.#holders.add(key, after)
    if (!this.#dead.note(undefined, after) && !this.#healths.has(after.key)) {
      this.#buildAlone(record.groups, actor)
      return DONE
    }
    const owners = new Map(record.groups.map(({ key, owner }) => [key, { key, owner, actor }]))
    const decoded = new Map([[after, record]])
    return this.#settle(owners, decoded, this.#buildResolved(record.groups, actor))
  }

  *#buildResolved(groups: readonly OwnerGroup[], actor: EventActor): Generator<void> {
    for (const { key, owner, contributions } of groups) {
      const resolved = this.#dead.resolve(contributions)
      this.#buildAlone([{ key, owner, contributions: resolved }], actor)
      yield
    }
  }

  /** `groups`: of owners without any other data. */
  #buildAlone(groups: readonly OwnerGroup[], actor: EventActor): void {
    const { apex, settings, site } = this.#options
    const options = { isApex: false, apex, site, settings }
    for (const { key, owner, contributions } of groups) {
      const conflicts: Conflict[] = []
      const sets = buildOwnerSets(owner, contributions, options, conflicts)
      this.#declare(owner, [], sets)
      for (const set of sets) if (isServed(set)) this.#put({ key, owner, actor }, set, undefined)
      this.#conflicts.note(key, conflicts)
      this.#noteOut(key, owner, sets)
      this.#options.onStates?.({ key, actor, contributions, before: [], after: sets })
    }
  }

  /**
   * Finds the owners that a change affects, because an edit usually changes one of many endpoints.
   * Only those are decoded. Returns undefined if both versions must be decoded completely.
   */
  #compare(
    { before, after }: RecordChange,
    served: Decoded,
    next: Decoded,
  ): PackedDifference | undefined {
    if (before === undefined || after === undefined || before === after) return undefined
    if (!isSameOrigin(before.origin, after.origin)) return undefined
    const [old, now] = [this.#healths.servedState(before), this.#healths.nextState(after)]
    if (!this.#isServedAsIs(old) || !this.#isServedAsIs(now)) return undefined
    const difference = comparePacked(before.packed, after.packed)
    if (difference === undefined) return undefined
    const { changed } = difference
    served.set(before, new DecodedRecord(old, this.#options, undefined, changed))
    next.set(after, new DecodedRecord(now, this.#options, undefined, changed))
    return difference
  }

  /** True if the data and the conflicts of each owner do not depend on other owners of the record. */
  #isServedAsIs(state: HealthRow): boolean {
    if (!isPlain(state) || this.#isDerived(state.record)) return false
    return unpackSettings(state.record.packed)?.failover === undefined
  }

  #isDerived({ packed }: StoredRecord): boolean {
    return isDerived(unpackPlace(packed).zoneLabel, this.#options)
  }

  #replan(changed: ChangedOwner, current: readonly OwnerSet[], decoded: Decoded = new Map()): void {
    const { key, owner } = changed
    const conflicts: Conflict[] = []
    const contributions = this.#resolved(key, owner, decoded, conflicts)
    const desired = this.#sets(key, owner, contributions, conflicts)
    this.#declare(owner, current, desired)
    const served = current.filter(isServed)
    const wanted = desired.filter(isServed)
    const changes = plan(owner, served, wanted)
    for (const set of wanted) {
      if (changes.some((change) => change.kind === 'put' && change.set === set)) continue
      this.#options.sink.rename?.(owner, set, served.find(({ type }) => type === set.type)!)
    }
    for (const change of changes) {
      const type = change.kind === 'put' ? change.set.type : change.type
      const old = served.find((set) => set.type === type)
      if (old !== undefined) {
        this.#digest.remove(key, old)
        this.tally.remove(old)
        this.#rrsetCount--
      }
      if (change.kind === 'put') {
        this.#put(changed, change.set, old)
        continue
      }
      this.#options.sink.remove(owner, type)
      this.#options.onChange?.({ ...changed, type, before: old, after: undefined })
    }
    this.#conflicts.note(key, conflicts)
    this.#noteOut(key, owner, desired)
    this.#options.onStates?.({ ...changed, contributions, before: current, after: desired })
  }

  /** A name with an empty set exists: its answers are NODATA, never NXDOMAIN. */
  #declare(owner: Uint8Array, current: readonly OwnerSet[], desired: readonly OwnerSet[]): void {
    const isDeclared = !desired.every(isServed)
    if (isDeclared === current.every(isServed)) this.#options.sink.declare(owner, isDeclared)
  }

  #put(changed: ChangedOwner, set: OwnerSet, before: OwnerSet | undefined): void {
    const { key, owner } = changed
    this.#digest.add(key, set)
    this.tally.add(set)
    this.#options.sink.put(owner, set)
    this.#rrsetCount++
    this.#options.onChange?.({ ...changed, type: set.type, before, after: set })
  }

  #sets(
    key: string,
    owner: Uint8Array,
    contributions: readonly Contribution[],
    conflicts: Conflict[],
    report?: BuildReport,
  ): OwnerSet[] {
    const { apex, settings, site } = this.#options
    const isApex = key === this.#apexKey
    return buildOwnerSets(owner, contributions, { isApex, apex, site, settings, report }, conflicts)
  }

  /** Returns the endpoints of an owner, of all records. */
  #resolved(
    key: string,
    owner: Uint8Array,
    decoded: Decoded,
    conflicts: Conflict[],
  ): readonly Contribution[] {
    const fixed = this.#fixedByOwner.get(key) ?? []
    const contributions = [...fixed]
    const holders = this.#holders.of(key)
    for (const record of holders.slice(0, HOLDERS_MAX)) {
      contributions.push(...this.#contributions(key, record, decoded))
    }
    const first = holders.length > HOLDERS_MAX ? holders[HOLDERS_MAX]! : undefined
    const leftOut = first && this.#contributions(key, first, decoded)[0]
    if (leftOut !== undefined) {
      const text = `${printName(owner)}: more than ${HOLDERS_MAX} records have endpoints at that name; only the first ${HOLDERS_MAX} are served`
      conflicts.push({ text, key: leftOut.key, owner, type: leftOut.endpoint.type })
    }
    if (this.#ownKeys.has(key)) {
      const defaults = defaultsAt(owner, key === this.#apexKey, contributions, this.#options)
      const added = defaults.map((one) => this.#configured(DEFAULT_KEY, one))
      contributions.splice(fixed.length, 0, ...added)
    }
    return this.#dead.resolve(contributions)
  }

  /** The Corefile comes before all records. `key`: CONFIGURED_KEY or DEFAULT_KEY. */
  #configured(key: string, endpoint: Endpoint): Contribution {
    return { key, place: key, site: this.#options.site ?? '', endpoint, down: NOTHING_DOWN }
  }

  #contributions(key: string, record: StoredRecord, decoded: Decoded): readonly Contribution[] {
    const known = this.#decode(record, decoded)
    const all = known.covers(key) ? known : this.#decode(record, new Map())
    return all.find(key)?.contributions ?? []
  }

  /** Decodes a record in the state in which it is served. */
  #decode(record: StoredRecord, decoded: Decoded): DecodedRecord {
    const known = decoded.get(record)
    if (known !== undefined) return known
    const fresh = new DecodedRecord(this.#healths.servedState(record), this.#options)
    decoded.set(record, fresh)
    return fresh
  }

  /** Decodes a record with its current health. `before`: the version that is served. */
  #decodeNext(
    record: StoredRecord,
    next: Decoded,
    before: StoredRecord | undefined,
  ): DecodedRecord {
    const known = next.get(record)
    if (known !== undefined) return known
    const earlier = before === undefined ? undefined : this.#healths.servedState(before)
    const fresh = new DecodedRecord(this.#healths.nextState(record), this.#options, earlier)
    next.set(record, fresh)
    return fresh
  }

  #index(
    { before, after }: RecordChange,
    served: Decoded,
    next: Decoded,
    difference: PackedDifference | undefined,
  ): void {
    if (before === after && before !== undefined && !this.#isDerived(before)) return
    const old = before === undefined ? [] : this.#decode(before, served).groups
    const now = after === undefined ? [] : this.#decodeNext(after, next, before).groups
    for (const { key } of old) this.#holders.drop(key, before!)
    for (const { key } of now) this.#holders.add(key, after!)
    if (before !== after) this.#dead.note(before, after)
    if (difference === undefined) {
      this.#recordCount += Number(now.length > 0) - Number(old.length > 0)
      return
    }
    for (const key of difference.same) this.#holders.replace(key, before!, after!)
  }

  #noteOut(key: string, owner: Uint8Array, sets: readonly OwnerSet[]): void {
    // The zone of the record itself reports it.
    if (this.#options.isLocalForm) return
    this.#out.note(key, owner, sets, () => !this.#dead.isBehindCname(key))
  }
}
