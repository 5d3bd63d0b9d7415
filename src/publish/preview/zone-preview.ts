import { InputError } from '../../base/errors.ts'
import type { HealthRow } from '../../health/health-table.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import { unpackNames } from '../../records/pack.ts'
import type { RecordChange, StoredRecord } from '../../records/record-source.ts'
import type { RecordZone } from '../build/record-zone.ts'
import type { RRsetSink } from '../build/record-zone-options.ts'
import { belongs, createRecordZone } from '../zone/zone-content.ts'
import type { PreviewScope } from './preview-index.ts'

/** What would change. */
export interface PreviewChange {
  /** Returns the row that a served record would have; undefined = the present one. */
  rowOf(record: StoredRecord, scope: PreviewScope): HealthRow | undefined
  /** Records that would be added, or replace those with the same key. */
  readonly records: readonly StoredRecord[]
}

/** Changed records whose names are compared. */
const CHANGED_MAX = 1000
/** Records that share names with them. */
const RECORDS_MAX = 5000
const NAMES_MAX = 20_000
/** CNAMEs of other records that lead to a changed name: as long as chains that servers follow. */
const CHAIN_MAX = 8
const WILDCARD = '\u0001*'

/**
 * The names of one publisher that a change concerns, before and after it, in zones of their own: what is served does
 * not change. Only records that share names with the changed ones are copied, and those whose CNAMEs lead there.
 */
export class ZonePreview {
  readonly scope: PreviewScope
  readonly #change: PreviewChange
  /** By key: the served version, and the row or version that it would have. */
  readonly #changed = new Map<string, RecordChange & { readonly row: HealthRow | undefined }>()
  /** The served records to copy, by key. */
  readonly #copied = new Map<string, StoredRecord>()
  /** `lowerNameKey` of the owners whose RRsets may change. */
  readonly #owners = new Set<string>()
  readonly #zones: {
    readonly apex: Uint8Array
    readonly key: string
    readonly records: RecordZone
  }[]
  #isAfter = false
  /** Changed records whose names are not compared, because there are too many. */
  omitted = 0

  constructor(scope: PreviewScope, change: PreviewChange) {
    this.scope = scope
    this.#change = change
    this.#zones = []
  }

  /** Number of records that change, with those that are left out. */
  get changedCount(): number {
    return this.#changed.size + this.omitted
  }

  /** The zones with the change, once it is applied. */
  get zones(): readonly { readonly key: string; readonly records: RecordZone }[] {
    return this.#zones
  }

  /** True if the change may concern an owner, by its `lowerNameKey`. */
  concerns(owner: string): boolean {
    return this.#owners.has(owner)
  }

  /** Finds the changed records, and those that share names with them. Throws InputError if these are too many. */
  *find(): Generator<void> {
    const { records } = this.scope
    for (const after of this.#change.records) {
      const before = records.find(after.key)
      if (this.#belongs(before) || this.#belongs(after))
        this.#note({ before, after, row: undefined })
    }
    for (const record of records.records()) {
      yield
      const row = this.#change.rowOf(record, this.scope)
      if (row !== undefined) this.#note({ before: record, after: record, row })
    }
    if (this.#changed.size === 0) return
    for (const { before, after } of this.#changed.values()) {
      for (const one of [before, after]) if (one !== undefined) this.#addOwners(one)
    }
    yield* this.#followCnames()
    for (const owner of this.#owners) {
      yield
      this.#copyHolders(owner)
      for (let above = parentKey(owner); above.length > 1; above = parentKey(above)) {
        this.#copyHolders(WILDCARD + above)
      }
    }
  }

  /** Fills the zones with what is served now. */
  *fill(sinkOf: () => RRsetSink): Generator<void> {
    const { options, health } = this.scope
    const rowOf = (record: StoredRecord): HealthRow => {
      const next = this.#isAfter ? this.#changed.get(record.key) : undefined
      return next?.after === record && next.row !== undefined ? next.row : health.rowOf(record)
    }
    for (const { apex, key, records: served } of this.scope.zones) {
      if (isLocalZone(apex)) continue
      const parts = { sink: sinkOf(), health: { rowOf }, onConflict: () => {}, onOut: () => {} }
      const records = createRecordZone(apex, options, parts)
      this.#zones.push({ apex, key, records })
      const own = [...this.#copied.values()].filter((record) => served.has(record))
      yield* records.applyInSteps(own.map((after) => ({ before: undefined, after })))
    }
  }

  /** Applies the change to the filled zones. */
  *apply(): Generator<void> {
    this.#isAfter = true
    const { options, ownership } = this.scope
    for (const zone of this.#zones) {
      const changes: RecordChange[] = []
      for (const { before, after } of this.#changed.values()) {
        const old = before !== undefined && zone.records.has(before) ? before : undefined
        const isNext = after !== undefined && belongs(after, zone, options, ownership)
        const next = isNext ? after : undefined
        if (old !== undefined || next !== undefined) changes.push({ before: old, after: next })
      }
      yield* zone.records.applyInSteps(changes)
    }
  }

  #belongs(record: StoredRecord | undefined): boolean {
    const { zones, options, ownership } = this.scope
    return record !== undefined && zones.some((zone) => belongs(record, zone, options, ownership))
  }

  #note(change: RecordChange & { readonly row: HealthRow | undefined }): void {
    const { key } = (change.after ?? change.before)!
    if (this.#changed.has(key)) return
    if (this.#changed.size < CHANGED_MAX) this.#changed.set(key, change)
    else this.omitted++
  }

  #addOwners({ packed }: StoredRecord): void {
    for (const owner of unpackNames(packed).owners) this.#addOwner(owner)
  }

  #addOwner(owner: string): void {
    this.#owners.add(owner)
    if (this.#owners.size > NAMES_MAX) tooMany(`${NAMES_MAX} names`)
  }

  /** Adds the owners of CNAMEs that lead to changed names: a CNAME is out of service if its target is. */
  *#followCnames(): Generator<void> {
    for (let steps = 0; steps < CHAIN_MAX; steps++) {
      const before = this.#owners.size
      for (const { packed } of this.scope.records.records()) {
        yield
        const { owners, cnames } = unpackNames(packed)
        for (const [target, i] of cnames) if (this.#owners.has(target)) this.#addOwner(owners[i]!)
      }
      if (this.#owners.size === before) return
    }
  }

  #copyHolders(owner: string): void {
    for (const { records } of this.scope.zones) {
      for (const record of records.holders.of(owner)) {
        if (this.#copied.has(record.key)) continue
        const changed = this.#changed.get(record.key)
        this.#copied.set(record.key, changed?.before ?? record)
        if (this.#copied.size > RECORDS_MAX) tooMany(`${RECORDS_MAX} records`)
      }
    }
  }
}

function tooMany(what: string): never {
  const message = `the change concerns more than ${what}: select less`
  throw new InputError(undefined, message)
}

/** Returns the key of the name above; '' for the root. */
function parentKey(key: string): string {
  return key.slice(1 + key.charCodeAt(0))
}
