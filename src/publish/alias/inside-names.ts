import { RRType } from '../../dns/iana/types.ts'
import { isSubdomain, parentName } from '../../dns/name/name.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { unpackNames, unpackRecord } from '../../records/pack.ts'
import type { RecordChange, StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey } from '../../records/validate/names.ts'

/** What our zones have at a name. */
export interface InsideName {
  /** `lowerNameKey` of the owner: the name, or a wildcard; '' = the name does not exist. */
  readonly owner: string
  readonly endpoints: readonly { readonly key: string; readonly endpoint: Endpoint }[]
}

const WILDCARD = Uint8Array.of(1, 0x2a)

/** The names of our zones. The first lookup builds the index of owners, which is kept. */
export class InsideNames {
  readonly #zones: readonly Uint8Array[]
  readonly #records: () => Iterable<StoredRecord>
  /** Nearly always one record per name. */
  #byOwner: Map<string, StoredRecord | Set<StoredRecord>> | undefined

  /** `zones`: lower-case wire names. */
  constructor(zones: readonly Uint8Array[], records: () => Iterable<StoredRecord>) {
    this.#zones = zones
    this.#records = records
  }

  /**
   * Returns what our zones have at a name; undefined = it is outside of them, or delegated. `note` gets the
   * `lowerNameKey` of each owner that decides this.
   */
  find(name: Uint8Array, note: (owner: string) => void): InsideName | undefined {
    const apex = this.#zoneOf(name)
    if (apex === undefined) return undefined
    const exact = lowerNameKey(name)
    note(exact)
    if (this.#isCut(name, apex, note)) return undefined
    if (this.#index.has(exact)) return this.#read(exact)
    for (let above = name; above.length > apex.length; ) {
      above = parentName(above)
      const wildcard = lowerNameKey(Buffer.concat([WILDCARD, above]))
      note(wildcard)
      if (this.#index.has(wildcard)) return this.#read(wildcard)
      // The closest encloser (RFC 4592 section 3.3.1): no wildcard above it counts.
      if (this.#index.has(lowerNameKey(above))) break
    }
    return { owner: '', endpoints: [] }
  }

  /** Notes changed records. Returns the owners whose endpoints may differ. */
  apply(changes: readonly RecordChange[]): ReadonlySet<string> {
    const owners = new Set<string>()
    if (this.#byOwner === undefined) return owners
    for (const { before, after } of changes) {
      if (before !== undefined) for (const owner of this.#drop(before)) owners.add(owner)
      if (after !== undefined) for (const owner of this.#add(after)) owners.add(owner)
    }
    return owners
  }

  get #index(): Map<string, StoredRecord | Set<StoredRecord>> {
    if (this.#byOwner === undefined) {
      this.#byOwner = new Map()
      for (const record of this.#records()) this.#add(record)
    }
    return this.#byOwner
  }

  /** The longest zone with the name. */
  #zoneOf(name: Uint8Array): Uint8Array | undefined {
    let found: Uint8Array | undefined
    for (const zone of this.#zones) {
      if (isSubdomain(name, zone) && zone.length > (found?.length ?? 0)) found = zone
    }
    return found
  }

  #isCut(name: Uint8Array, apex: Uint8Array, note: (owner: string) => void): boolean {
    for (let at = name; at.length > apex.length; at = parentName(at)) {
      const owner = lowerNameKey(at)
      note(owner)
      if (!this.#index.has(owner)) continue
      if (this.#read(owner).endpoints.some(({ endpoint }) => endpoint.type === RRType.NS))
        return true
    }
    return false
  }

  #read(owner: string): InsideName {
    const held = this.#index.get(owner)!
    const records = held instanceof Set ? [...held] : [held]
    const owners = new Set([owner])
    const endpoints = records.flatMap(({ key, packed }) => {
      return unpackRecord(packed, owners).endpoints.map((endpoint) => ({ key, endpoint }))
    })
    return { owner, endpoints }
  }

  #add(record: StoredRecord): ReadonlySet<string> {
    const owners = new Set(unpackNames(record.packed).owners)
    for (const owner of owners) {
      const held = this.#byOwner!.get(owner)
      if (held === undefined) this.#byOwner!.set(owner, record)
      else if (held instanceof Set) held.add(record)
      else this.#byOwner!.set(owner, new Set([held, record]))
    }
    return owners
  }

  #drop(record: StoredRecord): ReadonlySet<string> {
    const owners = new Set(unpackNames(record.packed).owners)
    for (const owner of owners) {
      const held = this.#byOwner!.get(owner)
      if (held instanceof Set) held.delete(record)
      if (held === record || (held instanceof Set && held.size === 0)) this.#byOwner!.delete(owner)
    }
    return owners
  }
}
