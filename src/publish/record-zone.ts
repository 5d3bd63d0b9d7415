import { RRType } from '../dns/iana/types.ts'
import { printName } from '../dns/name/name.ts'
import type { Endpoint } from '../dnsrecord/dns-record.ts'
import { firstOwnerKey, unpackPlace } from '../dnsrecord/pack.ts'
import { comparePacked, type PackedDifference } from '../dnsrecord/packed-difference.ts'
import { lowerNameKey } from '../dnsrecord/validate/names.ts'
import type { RecordChange, StoredRecord } from '../sources/source.ts'
import { ContentDigest } from './content-digest.ts'
import { DecodedRecord, isDerived, type RecordForm } from './decoded-record.ts'
import { HOLDERS_MAX, OwnerHolders } from './owner-holders.ts'
import {
  buildOwnerSets,
  type Conflict,
  type Contribution,
  DEFAULT_KEY,
  type OwnerSet,
} from './owner-sets.ts'
import { plan } from './plan.ts'

/** Receives the changes of a zone. */
export interface RRsetSink {
  put(owner: Uint8Array, set: OwnerSet): void
  remove(owner: Uint8Array, type: number): void
}

export interface RecordZoneOptions extends RecordForm {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  /** Endpoints that the Corefile adds to the zone: NS of the apex and their addresses. */
  readonly fixed: readonly Endpoint[]
  /** The apex NS to serve if neither the Corefile nor a record has one. */
  readonly defaultNs: Endpoint
  readonly sink: RRsetSink
  /** Called with each new conflict between records. */
  readonly onConflict: (text: string) => void
}

/** Sorts the Corefile's endpoints before those of all records. */
const CONFIGURED = { key: 'the Corefile', createdSeconds: -1, down: new Set<number>() } as const
/** Maximum number of records whose old and new sets are in memory at a time. */
const BATCH_MAX = 32

/**
 * One zone built from records. It indexes the records of each owner, and turns changed records into
 * changed RRsets of their owners. Only these owners are processed, so the cost of a change depends
 * on the record, not on the zone.
 */
export class RecordZone {
  readonly #options: RecordZoneOptions
  readonly #holders = new OwnerHolders()
  readonly #fixedByOwner = new Map<string, Contribution[]>()
  readonly #conflicts = new Map<string, readonly Conflict[]>()
  readonly #digest = new ContentDigest()
  readonly #apexKey: string
  #recordCount = 0
  #rrsetCount = 0

  constructor(options: RecordZoneOptions) {
    this.#options = options
    this.#apexKey = lowerNameKey(options.apex)
    const owners = new Map([[this.#apexKey, options.apex]])
    for (const endpoint of options.fixed) {
      const key = lowerNameKey(endpoint.owner)
      owners.set(key, endpoint.owner)
      const contribution = { ...CONFIGURED, endpoint }
      this.#fixedByOwner.set(key, [...(this.#fixedByOwner.get(key) ?? []), contribution])
    }
    for (const [key, owner] of owners) this.#replan(key, owner, [])
  }

  /** Number of records in the zone. */
  get recordCount(): number {
    return this.#recordCount
  }

  get rrsetCount(): number {
    return this.#rrsetCount
  }

  /** Number of owners with conflicts between records. */
  get conflictCount(): number {
    return this.#conflicts.size
  }

  conflicts(): Conflict[] {
    return [...this.#conflicts.values()].flat()
  }

  /** Digest of the content without the SOA; equal for equal content, regardless of the history. */
  get digest(): string {
    return this.#digest.print()
  }

  /** True if the zone contains this object. */
  has(record: StoredRecord): boolean {
    const { packed } = record
    const key = isDerived(unpackPlace(packed).zoneLabel, this.#options)
      ? this.#decode(record, new Map()).groups[0]?.key
      : firstOwnerKey(packed)
    return key !== undefined && this.#holders.of(key).includes(record)
  }

  /**
   * Applies changes to records of this zone. `before` and `after` are set only if they belong to
   * it.
   */
  apply(changes: readonly RecordChange[]): void {
    for (let at = 0; at < changes.length; at += BATCH_MAX) {
      this.#applyBatch(changes.slice(at, at + BATCH_MAX))
    }
  }

  #applyBatch(changes: readonly RecordChange[]): void {
    const decoded = new Map<StoredRecord, DecodedRecord>()
    const others = changes.filter((change) => !this.#addAlone(change, decoded))
    const differences = new Map(others.map((change) => [change, this.#compare(change, decoded)]))
    const owners = new Map<string, Uint8Array>()
    for (const { before, after } of others) {
      for (const record of [before, after]) {
        if (record === undefined) continue
        const earlier = record === after && before !== after ? before : undefined
        const { groups } = this.#decode(record, decoded, earlier)
        for (const { key, owner } of groups) owners.set(key, owner)
      }
    }
    const current = new Map<string, OwnerSet[]>()
    for (const [key, owner] of owners) current.set(key, this.#sets(key, owner, decoded, []))
    for (const [change, difference] of differences) this.#index(change, decoded, difference)
    for (const [key, owner] of owners) this.#replan(key, owner, current.get(key)!, decoded)
  }

  /**
   * Adds a new record whose owners all have no data yet. Most records are of that kind while a zone
   * is filled, and they need no comparison. Returns false for any other change, after storing the
   * decoded new record in `decoded`.
   */
  #addAlone({ before, after }: RecordChange, decoded: Map<StoredRecord, DecodedRecord>): boolean {
    if (before !== undefined || after === undefined) return false
    const record = new DecodedRecord(after, this.#options)
    for (const { key } of record.groups) {
      if (!this.#holders.has(key) && !this.#fixedByOwner.has(key) && key !== this.#apexKey) continue
      decoded.set(after, record)
      return false
    }
    if (record.groups.length > 0) this.#recordCount++
    for (const { key, owner, contributions } of record.groups) {
      this.#holders.add(key, after)
      const conflicts: Conflict[] = []
      const sets = buildOwnerSets(owner, contributions, { isApex: false }, conflicts)
      for (const set of sets) this.#put(key, owner, set)
      this.#noteConflicts(key, conflicts)
    }
    return true
  }

  /**
   * Finds the owners that a change affects, because an edit usually changes one of many endpoints.
   * Only those are decoded. Returns undefined if both versions must be decoded completely.
   */
  #compare(
    { before, after }: RecordChange,
    decoded: Map<StoredRecord, DecodedRecord>,
  ): PackedDifference | undefined {
    if (before === undefined || after === undefined || before === after) return undefined
    if (!this.#isServedAsIs(before) || !this.#isServedAsIs(after)) return undefined
    const difference = comparePacked(before.packed, after.packed)
    if (difference === undefined) return undefined
    for (const record of [before, after]) {
      const part = new DecodedRecord(record, this.#options, undefined, difference.changed)
      decoded.set(record, part)
    }
    return difference
  }

  /** True if the data of each owner does not depend on other owners. */
  #isServedAsIs({ packed, down, slowStart }: StoredRecord): boolean {
    const isPlain = down.length === 0 && slowStart === undefined
    return isPlain && !isDerived(unpackPlace(packed).zoneLabel, this.#options)
  }

  #replan(
    key: string,
    owner: Uint8Array,
    current: readonly OwnerSet[],
    decoded: Map<StoredRecord, DecodedRecord> = new Map(),
  ): void {
    const conflicts: Conflict[] = []
    const desired = this.#sets(key, owner, decoded, conflicts)
    for (const change of plan(owner, current, desired)) {
      const old = current.find(
        (s) => s.type === (change.kind === 'put' ? change.set.type : change.type),
      )
      if (old !== undefined) {
        this.#digest.remove(key, old)
        this.#rrsetCount--
      }
      if (change.kind === 'put') this.#put(key, owner, change.set)
      else this.#options.sink.remove(owner, change.type)
    }
    this.#noteConflicts(key, conflicts)
  }

  #put(key: string, owner: Uint8Array, set: OwnerSet): void {
    this.#digest.add(key, set)
    this.#options.sink.put(owner, set)
    this.#rrsetCount++
  }

  #sets(
    key: string,
    owner: Uint8Array,
    decoded: Map<StoredRecord, DecodedRecord>,
    conflicts: Conflict[],
  ): OwnerSet[] {
    const contributions: Contribution[] = [...(this.#fixedByOwner.get(key) ?? [])]
    const holders = this.#holders.of(key)
    for (const record of holders.slice(0, HOLDERS_MAX)) {
      contributions.push(...this.#contributions(key, record, decoded))
    }
    const first = holders.length > HOLDERS_MAX ? holders[HOLDERS_MAX]! : undefined
    const leftOut = first && this.#contributions(key, first, decoded)[0]
    if (leftOut !== undefined) {
      const text = `${printName(owner)}: more than ${HOLDERS_MAX} records have endpoints of that name; the first ${HOLDERS_MAX} count`
      conflicts.push({ text, key: leftOut.key, owner, type: leftOut.endpoint.type })
    }
    const isApex = key === this.#apexKey
    if (isApex && !contributions.some((c) => c.endpoint.type === RRType.NS)) {
      contributions.push({ ...CONFIGURED, key: DEFAULT_KEY, endpoint: this.#options.defaultNs })
    }
    return buildOwnerSets(owner, contributions, { isApex }, conflicts)
  }

  #contributions(
    key: string,
    record: StoredRecord,
    decoded: Map<StoredRecord, DecodedRecord>,
  ): readonly Contribution[] {
    const known = this.#decode(record, decoded)
    const all = known.covers(key) ? known : new DecodedRecord(record, this.#options)
    return all.find(key)?.contributions ?? []
  }

  #decode(
    record: StoredRecord,
    decoded: Map<StoredRecord, DecodedRecord>,
    before?: StoredRecord,
  ): DecodedRecord {
    const known = decoded.get(record)
    if (known !== undefined) return known
    const fresh = new DecodedRecord(record, this.#options, before)
    decoded.set(record, fresh)
    return fresh
  }

  #index(
    { before, after }: RecordChange,
    decoded: Map<StoredRecord, DecodedRecord>,
    difference: PackedDifference | undefined,
  ): void {
    const old = before === undefined ? [] : this.#decode(before, decoded).groups
    const now = after === undefined ? [] : this.#decode(after, decoded).groups
    for (const { key } of old) this.#holders.drop(key, before!)
    for (const { key } of now) this.#holders.add(key, after!)
    if (difference === undefined) {
      this.#recordCount += Number(now.length > 0) - Number(old.length > 0)
      return
    }
    for (const key of difference.same) this.#holders.replace(key, before!, after!)
  }

  #noteConflicts(key: string, conflicts: readonly Conflict[]): void {
    const known = this.#conflicts.get(key)
    if (conflicts.length === 0) {
      if (known !== undefined) this.#conflicts.delete(key)
      return
    }
    this.#conflicts.set(key, conflicts)
    const exported = new Set(known?.map((conflict) => conflict.text))
    for (const { text } of conflicts) if (!exported.has(text)) this.#options.onConflict(text)
  }
}
