import { InputError } from '../../base/errors.ts'
import { printType, RRType } from '../../dns/iana/types.ts'
import { isSubdomain, nameKey, parentName, printName } from '../../dns/name/name.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { unpackRecord } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { isWildcard } from '../../records/validate/names.ts'
import { sourceOf } from '../build/cname-loops.ts'
import type { RecordPlaces } from '../build/locate.ts'

/** Octets before the target in the rdata of the types whose hosts must not be CNAMEs (RFC 2181 section 10.3). */
const HOST_AT: ReadonlyMap<number, number> = new Map([
  [RRType.NS, 0],
  [RRType.MX, 2],
  [RRType.SRV, 6],
])

/** The zone that the records are in. */
interface ZoneOfRecords {
  readonly apex: Uint8Array
  /** The zones below it, of any server block. */
  readonly zones: readonly Uint8Array[]
  /** True if the zone has records at a name, also those of the Corefile. */
  readonly has: (name: Uint8Array) => boolean
  /** True: nothing else has names of the zone, such as a peer or another directive. */
  readonly isWhole: boolean
}

/** One endpoint, and the record that has it. */
interface Placed {
  readonly key: string
  readonly endpoint: Endpoint
}

/**
 * Finds endpoints that cannot work because of others: those of `findCnamedHosts`; data below a delegation, which no
 * answer contains; name servers of a delegation without an address; CNAMEs to names that the zone does not have.
 */
export function findUnusableNames(
  records: readonly StoredRecord[],
  zone: ZoneOfRecords,
  places: Pick<RecordPlaces, 'endpoint'>,
): InputError[] {
  const found = new NameFinder(readEndpoints(records), places)
  found.checkHosts()
  found.checkZone(zone)
  return found.warnings
}

/** Finds NS, MX and SRV endpoints that lead to the owner of a CNAME. */
export function findCnamedHosts(
  records: readonly StoredRecord[],
  places: Pick<RecordPlaces, 'endpoint'>,
): InputError[] {
  const found = new NameFinder(readEndpoints(records), places)
  found.checkHosts()
  return found.warnings
}

function readEndpoints(records: readonly StoredRecord[]): Placed[] {
  return records.flatMap(({ key, packed }) => {
    return unpackRecord(packed).endpoints.map((endpoint) => ({ key, endpoint }))
  })
}

class NameFinder {
  readonly warnings: InputError[] = []
  readonly #all: readonly Placed[]
  readonly #places: Pick<RecordPlaces, 'endpoint'>
  /** The types at each name, by `nameKey`. */
  readonly #types = new Map<string, Set<number>>()

  constructor(all: readonly Placed[], places: Pick<RecordPlaces, 'endpoint'>) {
    this.#all = all
    this.#places = places
    for (const { endpoint } of all) {
      const name = nameKey(endpoint.owner)
      const types = this.#types.get(name)
      if (types === undefined) this.#types.set(name, new Set([endpoint.type]))
      else types.add(endpoint.type)
    }
  }

  checkHosts(): void {
    for (const one of this.#all) {
      const { owner, rdata, type } = one.endpoint
      const at = HOST_AT.get(type)
      if (at === undefined) continue
      for (const host of rdata.map((octets) => octets.subarray(at))) {
        if (this.#types.get(sourceOf(host, this.#types))?.has(RRType.CNAME) !== true) continue
        const message = `${printType(type)} of ${printName(owner)} leads to ${printName(host)}, which is a CNAME: many clients do not follow it (RFC 2181 section 10.3); name the host that the CNAME leads to`
        this.#warn(one, message)
      }
    }
  }

  checkZone(zone: ZoneOfRecords): void {
    const { cuts, servers } = this.#findDelegations(zone)
    const hidden = new Set<string>()
    for (const one of this.#all) {
      const { owner, type } = one.endpoint
      if (!isWithin(owner, zone)) continue
      const cut = findCut(owner, zone.apex, cuts)
      if (type === RRType.CNAME) this.#checkCname(one, zone, cuts)
      if (type === RRType.NS && cut === owner) this.#checkServers(one, zone, cuts)
      else if (cut !== undefined && !(isAddress(type) && servers.has(nameKey(owner)))) {
        const id = `${one.key} ${nameKey(owner)}`
        if (!hidden.has(id)) this.#reportHidden(one, cut)
        hidden.add(id)
      }
    }
  }

  /** Returns the delegated names of the zone, and all name servers, by `nameKey`. */
  #findDelegations(zone: ZoneOfRecords) {
    const cuts = new Set<string>()
    const servers = new Set<string>()
    for (const { endpoint } of this.#all) {
      const { owner, rdata, type } = endpoint
      if (type !== RRType.NS) continue
      for (const server of rdata) servers.add(nameKey(server))
      // NS of a wildcard delegate nothing.
      if (!isWithin(owner, zone) || isWildcard(owner)) continue
      if (owner.length > zone.apex.length) cuts.add(nameKey(owner))
    }
    return { cuts, servers }
  }

  #reportHidden(one: Placed, cut: Uint8Array): void {
    const { owner, type } = one.endpoint
    const message = `${printType(type)} of ${printName(owner)} is never served: ${printName(cut)} is delegated to other name servers; remove it, or move it to the zone that has the name`
    this.#warn(one, message)
  }

  #checkCname(one: Placed, zone: ZoneOfRecords, cuts: ReadonlySet<string>): void {
    if (!zone.isWhole) return
    for (const target of one.endpoint.rdata) {
      if (!isWithin(target, zone) || findCut(target, zone.apex, cuts) !== undefined) continue
      if (this.#types.has(sourceOf(target, this.#types)) || zone.has(target)) continue
      const text = printName(target)
      const message = `CNAME of ${printName(one.endpoint.owner)} leads to ${text}, which the zone does not have; add ${text}, or correct the target`
      this.#warn(one, message)
    }
  }

  /** Checks the name servers of a delegation. */
  #checkServers(one: Placed, zone: ZoneOfRecords, cuts: ReadonlySet<string>): void {
    if (!zone.isWhole) return
    const { owner, rdata } = one.endpoint
    for (const server of rdata) {
      const isOwn = isSubdomain(server, owner)
      if (!isWithin(server, zone)) continue
      if (!isOwn && findCut(server, zone.apex, cuts) !== undefined) continue
      const types = this.#types.get(nameKey(server))
      if (
        types === undefined
          ? zone.has(server)
          : [...types].some((type) => isAddress(type) || type === RRType.CNAME)
      )
        continue
      const text = printName(server)
      const message = `zone ${printName(owner)}: name server ${text} has no address; add A or AAAA endpoints of ${text}`
      this.#warn(one, message)
    }
  }

  #warn({ key, endpoint }: Placed, message: string): void {
    const { owner, setIdentifier, type } = endpoint
    const at = this.#places.endpoint({ key, owner, type, setIdentifier })
    this.warnings.push(new InputError(at, `DNSRecord ${key}: ${message}`))
  }
}

/** True if the name is in the zone, and in no zone below it. */
function isWithin(name: Uint8Array, { apex, zones }: ZoneOfRecords): boolean {
  if (!isSubdomain(name, apex)) return false
  return !zones.some((other) => isSubdomain(name, other))
}

/** Returns the highest delegated name that is `name` or above it, as a part of it; undefined = none. */
function findCut(
  name: Uint8Array,
  apex: Uint8Array,
  cuts: ReadonlySet<string>,
): Uint8Array | undefined {
  if (cuts.size === 0) return undefined
  let highest: Uint8Array | undefined
  for (let at = name; at.length > apex.length; at = parentName(at)) {
    if (cuts.has(nameKey(at))) highest = at
  }
  return highest
}

function isAddress(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA
}
