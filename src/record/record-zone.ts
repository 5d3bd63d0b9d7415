import { RRType } from '../dns/iana/types.ts'
import { ContentDigest } from './content-digest.ts'
import type { Endpoint } from './dns-record.ts'
import { findDownTargets } from './health.ts'
import { deriveLocalEndpoints, KDRNT } from './kdrnt.ts'
import { buildOwnerSets, type Conflict, type Contribution, type OwnerSet } from './owner-sets.ts'
import { unpackRecord } from './pack.ts'
import { plan, printSet } from './plan.ts'
import { findRisingUnits } from './rising.ts'
import type { RecordChange, StoredRecord } from './source.ts'
import { lowerNameKey } from './validate/names.ts'

/** Where the changes of a zone go. */
export interface ZoneSink {
  put(owner: Uint8Array, set: OwnerSet): void
  remove(owner: Uint8Array, type: number): void
}

export interface RecordZoneOptions {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  /** Serve the gateway-local form of every record that isn't in that form already. */
  readonly isLocalForm: boolean
  /** What the Corefile itself puts into the zone: NS of the apex and their addresses. */
  readonly fixed: readonly Endpoint[]
  /** The apex NS that serves where neither the Corefile nor a record has one. */
  readonly defaultNs: Endpoint
  readonly sink: ZoneSink
  /** Told of each disagreement between records as it appears. */
  readonly onConflict: (text: string) => void
}

/** Endpoints of one record as this zone has them, by owner: a record may have as many owners as endpoints. */
type Decoded = ReadonlyMap<string, readonly [Contribution, ...Contribution[]]>

/** Order of what the Corefile says: before every record. */
const CONFIGURED = { key: 'the Corefile', createdSeconds: -1, down: new Set<number>() } as const
/** Records whose old and new sets are held in memory at a time. */
const BATCH_MAX = 32

/**
 * One zone made of records: keeps, per owner, which records name it, and turns changed records into
 * changed RRsets of the owners concerned. Nothing else is looked at: the cost of a change is that of
 * the record, not of the zone.
 */
export class RecordZone {
  readonly #options: RecordZoneOptions
  /** By `nameKey` of the owner: one record is by far the most common. */
  readonly #byOwner = new Map<string, StoredRecord | readonly StoredRecord[]>()
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
      const contribution = { ...CONFIGURED, endpoint, ownerKey: key }
      this.#fixedByOwner.set(key, [...(this.#fixedByOwner.get(key) ?? []), contribution])
    }
    for (const [key, owner] of owners) this.#replan(key, owner, [])
  }

  /** Records that the zone holds. */
  get recordCount(): number {
    return this.#recordCount
  }

  get rrsetCount(): number {
    return this.#rrsetCount
  }

  /** Owners at which records disagree. */
  get conflictCount(): number {
    return this.#conflicts.size
  }

  conflicts(): Conflict[] {
    return [...this.#conflicts.values()].flat()
  }

  /** Equal for equal content, however it came about; the SOA is not part of it. */
  get digest(): string {
    return this.#digest.print()
  }

  /** True if that very record is among those that the zone is made of. */
  has(record: StoredRecord): boolean {
    const [first] = this.#decode(record, new Map()).keys()
    return first !== undefined && this.#holders(first).includes(record)
  }

  /** Takes over changes of records of this zone; `before` and `after` only where they belong to it. */
  apply(changes: readonly RecordChange[]): void {
    for (let at = 0; at < changes.length; at += BATCH_MAX) {
      this.#applyBatch(changes.slice(at, at + BATCH_MAX))
    }
  }

  #applyBatch(changes: readonly RecordChange[]): void {
    const decoded = new Map<StoredRecord, Decoded>()
    const owners = new Map<string, Uint8Array>()
    for (const change of changes) {
      for (const record of [change.before, change.after]) {
        if (record === undefined) continue
        for (const [key, [{ endpoint }]] of this.#decode(record, decoded)) {
          owners.set(key, endpoint.owner)
        }
      }
    }
    const current = new Map<string, OwnerSet[]>()
    for (const [key, owner] of owners) current.set(key, this.#sets(key, owner, decoded, []))
    for (const { before, after } of changes) {
      if (before !== undefined) this.#removeFromIndex(before, decoded)
      if (after !== undefined) this.#addToIndex(after, decoded)
    }
    for (const [key, owner] of owners) this.#replan(key, owner, current.get(key)!, decoded)
  }

  #replan(
    key: string,
    owner: Uint8Array,
    current: readonly OwnerSet[],
    decoded: Map<StoredRecord, Decoded> = new Map(),
  ): void {
    const conflicts: Conflict[] = []
    const desired = this.#sets(key, owner, decoded, conflicts)
    for (const change of plan(owner, current, desired)) {
      const old = current.find(
        (s) => s.type === (change.kind === 'put' ? change.set.type : change.type),
      )
      if (old !== undefined) this.#digest.remove(`${key} ${printSet(old)}`)
      if (change.kind === 'put') {
        this.#digest.add(`${key} ${printSet(change.set)}`)
        this.#options.sink.put(owner, change.set)
        if (old === undefined) this.#rrsetCount++
      } else {
        this.#options.sink.remove(owner, change.type)
        this.#rrsetCount--
      }
    }
    this.#noteConflicts(key, conflicts)
  }

  #sets(
    key: string,
    owner: Uint8Array,
    decoded: Map<StoredRecord, Decoded>,
    conflicts: Conflict[],
  ): OwnerSet[] {
    const contributions: Contribution[] = [...(this.#fixedByOwner.get(key) ?? [])]
    for (const record of this.#holders(key)) {
      contributions.push(...(this.#decode(record, decoded).get(key) ?? []))
    }
    const isApex = key === this.#apexKey
    if (isApex && !contributions.some((c) => c.endpoint.type === RRType.NS)) {
      contributions.push({ ...CONFIGURED, endpoint: this.#options.defaultNs, ownerKey: key })
    }
    return buildOwnerSets(owner, contributions, { isApex }, conflicts)
  }

  #decode(record: StoredRecord, decoded: Map<StoredRecord, Decoded>): Decoded {
    const known = decoded.get(record)
    if (known !== undefined) return known
    const content = unpackRecord(record.packed)
    const { createdSeconds, endpoints: own, zoneLabel, isAggregate } = content
    const derives = this.#options.isLocalForm && zoneLabel !== KDRNT
    let endpoints = derives ? deriveLocalEndpoints(content) : own
    if (derives && isAggregate) endpoints = []
    const down = findDownTargets(endpoints, derives ? [] : record.down)
    const { key, rising } = record
    const units = derives || rising === undefined ? [] : findRisingUnits(endpoints, rising, down)
    const contributions = new Map<string, [Contribution, ...Contribution[]]>()
    for (const [i, endpoint] of endpoints.entries()) {
      const ownerKey = lowerNameKey(endpoint.owner)
      const health = { down: down[i]!, units: units[i] }
      const contribution = { key, createdSeconds, endpoint, ownerKey, ...health }
      const known = contributions.get(ownerKey)
      if (known === undefined) contributions.set(ownerKey, [contribution])
      else known.push(contribution)
    }
    decoded.set(record, contributions)
    return contributions
  }

  #holders(key: string): readonly StoredRecord[] {
    const held = this.#byOwner.get(key)
    if (held === undefined) return []
    return isList(held) ? held : [held]
  }

  #addToIndex(record: StoredRecord, decoded: Map<StoredRecord, Decoded>): void {
    const owners = this.#decode(record, decoded)
    if (owners.size > 0) this.#recordCount++
    for (const key of owners.keys()) {
      const held = this.#byOwner.get(key)
      if (held === undefined) this.#byOwner.set(key, record)
      else this.#byOwner.set(key, isList(held) ? [...held, record] : [held, record])
    }
  }

  #removeFromIndex(record: StoredRecord, decoded: Map<StoredRecord, Decoded>): void {
    const owners = this.#decode(record, decoded)
    if (owners.size > 0) this.#recordCount--
    for (const key of owners.keys()) {
      const rest = this.#holders(key).filter((r) => r !== record)
      if (rest.length === 0) this.#byOwner.delete(key)
      else this.#byOwner.set(key, rest.length === 1 ? rest[0]! : rest)
    }
  }

  #noteConflicts(key: string, conflicts: readonly Conflict[]): void {
    const known = this.#conflicts.get(key)
    if (conflicts.length === 0) {
      if (known !== undefined) this.#conflicts.delete(key)
      return
    }
    this.#conflicts.set(key, conflicts)
    const told = new Set(known?.map((conflict) => conflict.text))
    for (const { text } of conflicts) if (!told.has(text)) this.#options.onConflict(text)
  }
}

function isList(held: StoredRecord | readonly StoredRecord[]): held is readonly StoredRecord[] {
  return Array.isArray(held)
}
