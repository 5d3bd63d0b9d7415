import { RRType } from '../dns/iana/types.ts'
import type { Endpoint } from '../records/dns-record.ts'
import {
  type ClaimTree,
  claimedNames,
  claimOfName,
  compareClaims,
  describeRefused,
  findOwner,
  type HostClaim,
  type HostOwner,
  isAtOrBelow,
  keyAbove,
  printKey,
  type RefusedName,
  refuseName,
} from '../records/host-owners.ts'
import { type HostShare, ROOT_KEY } from '../records/host-share.ts'
import { isMetadataName } from '../records/kdrnt.ts'
import { KDRNT } from '../records/local-zone.ts'
import { printRecordObject } from '../records/object-record-key.ts'
import {
  packedCreatedSeconds,
  packRecord,
  unpackNames,
  unpackPlace,
  unpackRecord,
} from '../records/pack.ts'
import { printHost } from '../records/print-endpoint.ts'
import { type RecordChange, StoredRecord } from '../records/record-source.ts'
import { lowerNameKey, scanHost } from '../records/validate/names.ts'
import { ClaimEdits } from './claim-edits.ts'
import { HostClaims, type HostMember } from './host-claims.ts'
import type { ZoneOwnership } from './zone-ownership.ts'

/** A record with names of other namespaces. */
export interface RefusedNames {
  /** `namespace/name`. */
  readonly key: string
  readonly names: readonly RefusedName[]
}

interface RecordRightsOptions {
  readonly ownership: Pick<ZoneOwnership, 'zoneKeyOf' | 'zoneKeyOfHost'>
  /** All records, with the changes that are being applied. */
  readonly records: () => Iterable<StoredRecord>
  readonly find: (key: string) => StoredRecord | undefined
  /** False: the record claims no names, and its rights are not decided. */
  readonly isServed: (record: StoredRecord) => boolean
  readonly shares: readonly HostShare[]
  /** Receives the names of a record that are refused; undefined = none any longer. */
  readonly onRefused?: (key: string, refused: RefusedNames | undefined) => void
}

interface Decided {
  readonly original: StoredRecord
  /** The record without the refused names; undefined = no name is left. */
  readonly record: StoredRecord | undefined
  readonly refused: RefusedNames
}

interface Names {
  readonly apex: string
  /** What the record claims; empty for a record of the zone kdrnt. */
  readonly claimed: readonly string[]
  // They are no claims, because the author can add them to an old record at any time.
  /** Names of the record that are not at or below its root host. For a record of the zone kdrnt, see `besideHost`. */
  readonly outside: readonly string[]
  readonly isLocal: boolean
  readonly host: string
}

/** The index while records are added to it. */
interface Building {
  readonly claims: HostClaims
  /** The namespace that had all records before; undefined = there was no record. */
  readonly alone: string | undefined
  /** Records of `alone` that are in the index. */
  readonly placed: Map<string, StoredRecord>
  /** Keys of changed records of other namespaces. They are not served before they are decided. */
  readonly held: Set<string>
  isStarted: boolean
}

/** Another index of all records, while they are added to it. */
interface Renewal {
  /** The records when it began. */
  readonly records: readonly StoredRecord[]
  /** Since then. */
  readonly changes: RecordChange[]
  isStarted: boolean
}

const KDRNT_KEY = lowerNameKey(scanHost(KDRNT)!)

/**
 * Leaves the names out of records that belong to other namespaces (`findOwner`). While all records are of one
 * namespace, this stores nothing and changes nothing.
 */
export class RecordRights {
  readonly #options: RecordRightsOptions
  /** Number of records by namespace. */
  readonly #namespaces = new Map<string, number>()
  /** Undefined = all records are of one namespace. */
  #claims: HostClaims | undefined
  #building: Building | undefined
  #renewal: Renewal | undefined
  /** What was found in `#claims`, by apex and name, during one call. */
  readonly #owners = new Map<string, Map<string, HostOwner | undefined>>()
  /** Records with names of other namespaces, by key. */
  readonly #decided = new Map<string, Decided>()

  constructor(options: RecordRightsOptions) {
    this.#options = options
  }

  /** The records with names that are not served. */
  get refused(): readonly RefusedNames[] {
    return [...this.#decided.values()].map(({ refused }) => refused)
  }

  /** Returns what is served of a record that was applied; undefined = nothing. */
  servedOf(record: StoredRecord): StoredRecord | undefined {
    if (this.#building?.held.has(record.key) === true) return undefined
    const decided = this.#decided.get(record.key)
    return decided === undefined ? record : decided.record
  }

  /** Reads all records, before the first change. Nothing is decided, or changed, until the caller has run `build`. */
  load(): void {
    for (const record of this.#options.records()) this.#count(record, 1)
    if (this.#namespaces.size > 1) this.#renewal = startRenewal(this.#options.records())
  }

  /** Returns the changes of what is served. They may concern further records. The caller runs `build` after it. */
  apply(changes: readonly RecordChange[]): readonly RecordChange[] {
    const [alone] = this.#namespaces.keys()
    this.#renewal?.changes.push(...changes)
    for (const { before, after } of changes) {
      if (before !== undefined) this.#count(before, -1)
      if (after !== undefined) this.#count(after, 1)
    }
    if (this.#namespaces.size < 2)
      return this.#building ? this.#unhold(changes) : this.#end(changes)
    if (this.#claims !== undefined) {
      return this.#decideAll(changes, this.#index(changes, this.#claims))
    }
    if (this.#renewal !== undefined) return []
    this.#building ??= startBuilding(alone)
    return this.#hold(changes, this.#building)
  }

  /**
   * Indexes all records, with a pause after each one; undefined = nothing is to be done. Meanwhile, records of a second
   * namespace are held, and others have their former decisions. `publish` receives what changes at the end.
   */
  build(publish: (changes: readonly RecordChange[]) => void): Generator<void, void> | undefined {
    const renewal = this.#renewal
    if (renewal !== undefined && !renewal.isStarted) {
      renewal.isStarted = true
      return this.#renew(renewal, publish)
    }
    const building = this.#building
    if (building === undefined || building.isStarted) return undefined
    building.isStarted = true
    return this.#runBuild(building, publish)
  }

  *#runBuild(
    building: Building,
    publish: (changes: readonly RecordChange[]) => void,
  ): Generator<void, void> {
    const { alone, placed, held } = building
    for (const { key } of this.#options.records()) {
      if (this.#building !== building) return
      const isOther = namespaceOf({ key }) !== alone || placed.has(key)
      const record = isOther ? undefined : this.#options.find(key)
      if (record !== undefined) this.#replace(record.key, record, building)
      yield
    }
    if (this.#building !== building) return
    this.#building = undefined
    this.#claims = building.claims
    const changes = this.#changesOf(held)
    publish(this.#decideAll(changes, this.#index(changes, building.claims)))
    // A record of the zone kdrnt without a record of its host is forged. With one namespace, no check finds it.
    for (const { key, packed } of placed.values()) {
      if (unpackPlace(packed).zoneLabel === KDRNT) publish(this.#decideAll([], [key]))
      yield
    }
  }

  *#renew(
    renewal: Renewal,
    publish: (changes: readonly RecordChange[]) => void,
  ): Generator<void, void> {
    const [claims, keys] = [new HostClaims(), new Set<string>()]
    for (const record of renewal.records) {
      if (this.#renewal !== renewal) return
      this.#place(record, (name, member) => {
        claims.add(name, member)
        if (!member.isClaim) keys.add(member.key)
      })
      yield
    }
    for (const { key } of claims.contestedMembers()) {
      keys.add(key)
      yield
    }
    if (this.#renewal !== renewal) return
    this.#renewal = undefined
    for (const key of this.#index(renewal.changes, claims)) keys.add(key)
    for (const { before, after } of renewal.changes) keys.add((after ?? before)!.key)
    this.#claims = claims
    publish(this.#decideAll([], new Set([...this.#decided.keys(), ...keys])))
  }

  /** Replaces a record in an index that is being built. `after`: undefined = the record was removed. */
  #replace(key: string, after: StoredRecord | undefined, { claims, placed }: Building): void {
    const before = placed.get(key)
    if (before !== undefined) this.#place(before, (name) => claims.remove(name, key))
    placed.delete(key)
    if (after === undefined) return
    this.#place(after, (name, member) => claims.add(name, member))
    placed.set(key, after)
  }

  /** Returns the changes of the namespace that had all records, and of records that claim no names. */
  #hold(changes: readonly RecordChange[], building: Building): readonly RecordChange[] {
    return changes.filter(({ before, after }) => {
      const record = (after ?? before)!
      const isServed = this.#options.isServed(record)
      const isHeld = isServed && namespaceOf(record) !== building.alone
      if (isHeld) building.held.add(record.key)
      else if (isServed) this.#replace(record.key, after, building)
      return !isHeld
    })
  }

  /** Stops building the index, because all records are of one namespace again. */
  #unhold(changes: readonly RecordChange[]): readonly RecordChange[] {
    const { held } = this.#building!
    this.#building = undefined
    const passed = changes.filter(({ before, after }) => !held.has((after ?? before)!.key))
    return [...passed, ...this.#changesOf(held)]
  }

  /** The records with these keys, as new ones. */
  #changesOf(keys: ReadonlySet<string>): RecordChange[] {
    return [...keys].flatMap((key) => {
      const after = this.#options.find(key)
      return after === undefined ? [] : [{ before: undefined, after }]
    })
  }

  /** `others`: keys of further records to decide. */
  #decideAll(changes: readonly RecordChange[], others: Iterable<string>): readonly RecordChange[] {
    this.#owners.clear()
    const listed = new Map<string, RecordChange>()
    for (const change of changes) {
      const key = (change.after ?? change.before)!.key
      listed.set(key, { before: (listed.get(key) ?? change).before, after: change.after })
    }
    const settled = [...listed].flatMap(([key, change]) => this.#settle(key, change))
    for (const key of others) {
      const record = listed.has(key) ? undefined : this.#options.find(key)
      if (record === undefined) continue
      const [change] = this.#settle(key, { before: record, after: record })
      if (change !== undefined && change.before !== change.after) settled.push(change)
    }
    this.#owners.clear()
    return settled
  }

  /** Returns the change of what is served of one record; empty = nothing is served of it. */
  #settle(key: string, change: RecordChange): RecordChange[] {
    const decided = this.#decided.get(key)
    const before = decided === undefined ? change.before : decided.record
    if (change.after === undefined) this.#clear(key)
    const after = change.after && this.#decide(change.after)
    return before === undefined && after === undefined ? [] : [{ before, after }]
  }

  /** All records are of one namespace: those that were refused are served again. */
  #end(changes: readonly RecordChange[]): readonly RecordChange[] {
    this.#renewal = undefined
    if (this.#claims === undefined) return changes
    this.#claims = undefined
    return this.#decideAll(changes, [...this.#decided.keys()])
  }

  /** Begins to decide about all records again, after zones were added or removed. The caller runs `build` after it. */
  decideAgain(): void {
    if (this.#building !== undefined) {
      const { alone, held } = this.#building
      this.#building = { ...startBuilding(alone), held }
    } else if (this.#namespaces.size > 1) this.#renewal = startRenewal(this.#options.records())
  }

  #count(record: StoredRecord, step: number): void {
    if (!this.#options.isServed(record)) return
    const namespace = namespaceOf(record)
    const count = (this.#namespaces.get(namespace) ?? 0) + step
    if (count > 0) this.#namespaces.set(namespace, count)
    else this.#namespaces.delete(namespace)
  }

  /** Applies changes to an index. Returns the keys of the records whose names may have another owner now. */
  #index(changes: readonly RecordChange[], claims: HostClaims): ReadonlySet<string> {
    const edits = new ClaimEdits(claims)
    for (const { before, after } of changes) {
      if (before === after) continue
      const { key } = (after ?? before)!
      const old = new Map<string, HostMember>()
      if (before !== undefined) this.#place(before, (name, member) => old.set(name, member))
      if (after !== undefined) {
        this.#place(after, (name, member) => {
          const known = old.get(name)
          old.delete(name)
          if (known !== undefined && isSameMember(known, member)) return
          edits.put(name, { key, before: known, after: member })
        })
      }
      for (const [name, known] of old) edits.put(name, { key, before: known, after: undefined })
    }
    return edits.apply()
  }

  #place(record: StoredRecord, put: (name: string, member: HostMember) => void): void {
    if (!this.#options.isServed(record)) return
    const { apex, claimed, outside, isLocal, host } = this.#namesOf(record)
    const claim = { ...claimOf(record), key: record.key, apex }
    if (isLocal) put(host, { ...claim, isClaim: false })
    for (const name of outside) put(name, { ...claim, isClaim: false })
    for (const name of claimed) {
      put(name, { ...claim, ...claimOfName(claim, name, host, apex), isClaim: true })
    }
  }

  #namesOf({ packed }: StoredRecord): Names {
    const { ownership } = this.#options
    const { zoneLabel, rootHostKey } = unpackPlace(packed)
    if (zoneLabel === KDRNT) {
      const host = withoutKdrnt(rootHostKey) ?? ROOT_KEY
      return {
        apex: ownership.zoneKeyOfHost(host) || ROOT_KEY,
        claimed: [],
        outside: unpackNames(packed).owners.flatMap((owner) => besideHost(owner, host) ?? []),
        isLocal: true,
        host,
      }
    }
    // A zone of another server may have the host, too.
    const label = zoneLabel === '' ? ROOT_KEY : lowerNameKey(scanHost(zoneLabel)!)
    const apex = ownership.zoneKeyOf(packed) || label
    const isAtApex = rootHostKey === apex
    const { owners } = unpackNames(packed)
    const claimed = claimedNames(rootHostKey, isAtApex ? owners : [], apex)
    const outside = owners.filter((owner) => !isAtOrBelow(owner, rootHostKey))
    return { apex, claimed, outside, isLocal: false, host: rootHostKey }
  }

  /** Returns what is served of a record; undefined = nothing. */
  #decide(record: StoredRecord): StoredRecord | undefined {
    const { key } = record
    const known = this.#decided.get(key)
    this.#clear(key)
    if (this.#claims === undefined || !this.#options.isServed(record)) return record
    const names = this.#namesOf(record)
    if (this.#isAlone(record, names)) return record
    const content = unpackRecord(record.packed)
    const refused = new Map<string, RefusedName>()
    const kept = content.endpoints.filter((endpoint) => {
      const found = this.#refuse(endpoint, record, names)
      if (found !== undefined) refused.set(found.name, found)
      return found === undefined
    })
    if (refused.size === 0) return record
    const served = kept.length === 0 ? undefined : withEndpoints(record, kept, known)
    const all = { key, names: [...refused.values()] }
    this.#decided.set(key, { original: record, record: served, refused: all })
    this.#options.onRefused?.(key, all)
    return served
  }

  #clear(key: string): void {
    if (this.#decided.delete(key)) this.#options.onRefused?.(key, undefined)
  }

  /** True if no other namespace has a name at, below or above those of the record. */
  #isAlone(record: StoredRecord, { claimed, outside, isLocal }: Names): boolean {
    // Endpoints of the local form may have any name of its zone.
    if (isLocal || outside.length > 0) return false
    const namespace = namespaceOf(record)
    return !claimed.some((name) => this.#claims!.hasOthers(name, namespace))
  }

  /** Many records may have one name: each name is decided once for all of them. */
  #ownerOf(name: string, apex: string): HostOwner | undefined {
    const owners = this.#owners.get(apex) ?? new Map<string, HostOwner | undefined>()
    this.#owners.set(apex, owners)
    if (owners.has(name)) return owners.get(name)
    const owner = findOwner(name, apex, (at) => this.#claims!.at(at))
    owners.set(name, owner)
    return owner
  }

  #refuse(
    { owner, type }: Endpoint,
    record: StoredRecord,
    { apex, isLocal, host }: Names,
  ): RefusedName | undefined {
    const key = lowerNameKey(owner)
    const name = isLocal ? nameInHost(key, type, host) : key
    // The operator writes the local form beside a record of the same namespace.
    const isForged = name === undefined || (isLocal && this.#ownerOf(name, apex) === undefined)
    if (isForged) return { name: printHost(owner), host: printKey(host), owner: '' }
    const decided = { apex, namespace: namespaceOf(record), isDelegation: type === RRType.NS }
    const claims: ClaimTree = {
      ownerOf: (at, zone) => this.#ownerOf(at, zone),
      below: (at) => this.#claims!.below(at),
    }
    const beside = isLocal && type === RRType.TXT ? besideHost(key, host) : undefined
    const { shares } = this.#options
    let refused = refuseName({ ...decided, name }, claims, shares)
    if (beside !== undefined) refused ??= refuseName({ ...decided, name: beside }, claims, shares)
    return refused && { ...refused, name: printHost(owner) }
  }
}

function startBuilding(alone: string | undefined): Building {
  const held = new Set<string>()
  return { claims: new HostClaims(), alone, placed: new Map(), held, isStarted: false }
}

function startRenewal(records: Iterable<StoredRecord>): Renewal {
  return { records: [...records], changes: [], isStarted: false }
}

function isSameMember(a: HostMember, b: HostMember): boolean {
  if (a.isClaim !== b.isClaim || a.isEditable !== b.isEditable || a.apex !== b.apex) return false
  return compareClaims(a, b) === 0
}

/** Returns a record with fewer endpoints. `known`: the same object is returned again if it has the same content. */
function withEndpoints(
  record: StoredRecord,
  endpoints: readonly Endpoint[],
  known: Decided | undefined,
): StoredRecord {
  const { key, packed: whole, origin, original, heldSinceSeconds } = record
  const packed = packRecord({ ...unpackRecord(whole), namespace: '', name: '', endpoints })
  const isSame = known?.original === record && known.record?.packed === packed
  if (isSame) return known.record
  return new StoredRecord(key, packed, origin, original, heldSinceSeconds)
}

/** Says what is not served of a record, why, and what allows it. */
export function printRefused({ key, names }: RefusedNames): string {
  const [namespace = ''] = key.split('/', 1)
  const allow = (host: string): string => `\`share-hosts ${host} ${namespace}\` in kuadrant`
  return `${printRecordObject(key)}: ${describeRefused(names, namespace, allow).join('; ')}`
}

function namespaceOf({ key }: Pick<StoredRecord, 'key'>): string {
  return key.slice(0, key.indexOf('/'))
}

/** The age of the object counts: an author can write any age into the annotation of an operator. */
function claimOf(record: StoredRecord): HostClaim {
  const createdSeconds = record.heldSinceSeconds ?? packedCreatedSeconds(record.packed)
  return { namespace: namespaceOf(record), createdSeconds }
}

/** Returns a name without its last label; undefined = the name is not in the zone kdrnt. */
function withoutKdrnt(name: string): string | undefined {
  return isAtOrBelow(name, KDRNT_KEY) ? name.slice(0, -KDRNT_KEY.length) + ROOT_KEY : undefined
}

/** Returns the name that an endpoint in the zone kdrnt stands for; undefined = it is not of the host. */
function nameInHost(owner: string, type: number, host: string): string | undefined {
  const name = withoutKdrnt(owner)
  if (name === undefined || host === ROOT_KEY) return undefined
  if (type === RRType.TXT && isMetadataName(printKey(name), printKey(host))) return host
  return isAtOrBelow(name, host) ? name : undefined
}

/**
 * The name beside the host at which v1 peers read metadata of a wildcard (`wildcardapp` for `*.app`), which may be a
 * host of another namespace; undefined = `owner` is no such metadata.
 */
function besideHost(owner: string, host: string): string | undefined {
  const name = withoutKdrnt(owner)
  // Most names of a record are no metadata, and printing a name is expensive.
  if (name === undefined || name.charCodeAt(0) !== 1) return undefined
  if (!isMetadataName(printKey(name), printKey(host))) return undefined
  const place = keyAbove(name)
  return isAtOrBelow(place, host) ? undefined : place
}
