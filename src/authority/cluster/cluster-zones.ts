import type { Clock } from '../../base/clock.ts'
import { RRType } from '../../dns/iana/types.ts'
import { concatNames, isSubdomain, lowerName, scanName } from '../../dns/name/name.ts'
import { type Address, scanAddress } from '../../dns/text/address.ts'
import { isReverseZone, reverseName } from '../../dns/text/reverse-name.ts'
import type { SetKey } from '../../xfr/zone-versions.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import { ZoneImage } from '../../zone/image/writer.ts'
import type { ServiceState } from './endpoints.ts'
import type { NameScheme } from './name-scheme.ts'
import { dashedAddress, nameBelow } from './names.ts'
import type { ClusterChanges, NamespaceChange, PodChange, ServiceChange } from './object-store.ts'
import { PointerIndex } from './pointer-index.ts'
import { latin1, type ServiceRRset, sortedOnce } from './rrset-collector.ts'
import type { Pointer, ServiceRecords } from './service-records.ts'

/** The version of the specification that the records follow. */
const SCHEMA_VERSION = '1.1.0'
const SCHEMA_TTL_SECONDS = 28_800
/** Timers of the SOA in seconds, as in CoreDNS. */
const SOA_TIMERS = [7200, 1800, 86_400]
/** Changed RRsets per zone and version that are named to `transfer`; above it, it compares whole zones. */
const CHANGED_MAX = 10_000

export interface ZonesOptions {
  /** Lower-case wire form. */
  readonly zones: readonly Uint8Array[]
  readonly scheme: NameScheme
  readonly ttlSeconds: number
  readonly soaTtlSeconds: number
  /** Addresses of this server: the Service that selects one of them is the name server of the zones. */
  readonly ownAddresses: readonly Address[]
  readonly clock: Clock
}

/** A zone in the image. */
export interface ClusterZone {
  readonly id: ZoneId
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly isReverse: boolean
  serial: number
  /** RRsets that changed since the last version; undefined = any may have changed. */
  changed: SetKey[] | undefined
  isChanged: boolean
}

/** Writes the records of a cluster to a zone image: of each change only the records that differ. */
export class ClusterZones {
  readonly image = new ZoneImage()
  readonly zones: readonly ClusterZone[]
  readonly #options: ZonesOptions
  readonly #primary: ClusterZone
  readonly #forward: readonly ClusterZone[]
  readonly #reverse: readonly ClusterZone[]
  readonly #pointers = new PointerIndex()
  /** Addresses whose PTR records may have changed, by octets as latin1. */
  readonly #changedAddresses = new Map<string, Address>()
  readonly #ownKeys: ReadonlySet<string>
  /** Addresses of the Services that lead to this server, by `namespace/name`. */
  readonly #nameservers = new Map<string, readonly Address[]>()
  #isNameserverChanged = true

  constructor(options: ZonesOptions) {
    this.#options = options
    this.#ownKeys = new Set(options.ownAddresses.map(({ bytes }) => latin1(bytes)))
    this.zones = options.zones.map((apex) => {
      const id = this.image.addZone(apex)
      const isReverse = isReverseZone(apex)
      return { id, apex, isReverse, serial: 0, changed: undefined, isChanged: true }
    })
    this.#forward = this.zones.filter(({ isReverse }) => !isReverse)
    this.#reverse = this.zones
      .filter(({ isReverse }) => isReverse)
      .sort((a, b) => b.apex.length - a.apex.length)
    this.#primary = this.#forward[0]!
    for (const zone of this.zones) this.#fillApex(zone)
  }

  /** Writes changes, and pauses now and then. Readers see them after `publish`. */
  *apply({ namespaces, services, pods }: ClusterChanges): Generator<void, void> {
    for (const change of namespaces) {
      this.#applyNamespace(change)
      yield
    }
    for (const change of services) {
      this.#applyService(change)
      yield
    }
    for (const change of pods) {
      this.#applyPod(change)
      yield
    }
    for (const address of this.#changedAddresses.values()) {
      this.#putPointers(address)
      yield
    }
    this.#changedAddresses.clear()
    if (this.#isNameserverChanged) this.#putNameservers()
    this.#isNameserverChanged = false
  }

  /** Publishes all changes as one version, and returns the zones that changed. */
  publish(): readonly ClusterZone[] {
    const changed = this.zones.filter(({ isChanged }) => isChanged)
    for (const zone of changed) this.#putSoa(zone)
    this.image.publish()
    return changed
  }

  /** Forgets which RRsets changed, once the caller has passed them on. */
  settle(): void {
    for (const zone of this.zones) {
      zone.changed = []
      zone.isChanged = false
    }
  }

  #fillApex(zone: ClusterZone): void {
    const ns = this.#nameserverOf(zone)
    this.#put(zone, { owner: zone.apex, type: RRType.NS, rdata: [ns] })
    if (zone.isReverse) return
    const { branches, hasVersion } = this.#options.scheme
    for (const branch of branches) this.#declare(zone, branch, true)
    if (!hasVersion) return
    const owner = childOf(zone.apex, 'dns-version')
    const rdata = Uint8Array.of(SCHEMA_VERSION.length, ...Buffer.from(SCHEMA_VERSION))
    this.#put(zone, { owner, type: RRType.TXT, rdata: [rdata] }, SCHEMA_TTL_SECONDS)
  }

  /** A namespace is an empty non-terminal, even without Services: NODATA, not NXDOMAIN. */
  #applyNamespace({ namespace, isExposed }: NamespaceChange): void {
    const names = this.#options.scheme.namesOf(namespace)
    for (const zone of this.#forward) {
      for (const name of names) this.#declare(zone, name, isExposed)
    }
  }

  #applyService({ before, after }: ServiceChange): void {
    for (const zone of this.#forward) {
      const { scheme } = this.#options
      const old = before === undefined ? undefined : scheme.recordsOf(before, zone.apex)
      const now = after === undefined ? undefined : scheme.recordsOf(after, zone.apex)
      const kept = new Set(now?.sets.map(keyOfSet))
      for (const set of old?.sets ?? []) if (!kept.has(keyOfSet(set))) this.#remove(zone, set)
      for (const set of now?.sets ?? []) this.#put(zone, set)
      if (zone !== this.#primary) continue
      if (this.#reverse.length > 0) this.#replacePointers(old?.pointers, now?.pointers)
      const state = after ?? before
      if (state !== undefined) this.#noteNameserver(state, now)
    }
  }

  #replacePointers(old: readonly Pointer[] = [], now: readonly Pointer[] = []): void {
    for (const pointer of old) {
      this.#pointers.remove(pointer)
      this.#changedAddresses.set(latin1(pointer.address.bytes), pointer.address)
    }
    for (const pointer of now) {
      this.#pointers.add(pointer)
      this.#changedAddresses.set(latin1(pointer.address.bytes), pointer.address)
    }
  }

  #putPointers(address: Address): void {
    const owner = reverseName(address)
    const zone = this.#reverse.find(({ apex }) => isSubdomain(owner, apex))
    if (zone === undefined) return
    const rdata = sortedOnce(this.#pointers.targets(address.bytes))
    this.#putOrRemove(zone, { owner, type: RRType.PTR, rdata })
  }

  #applyPod({ namespace, address: text, exists }: PodChange): void {
    if (!this.#options.scheme.hasPods) return
    const address = scanAddress(text)
    if (address === undefined) return
    const type = address.family === 1 ? RRType.A : RRType.AAAA
    for (const zone of this.#forward) {
      const owner = nameBelow([dashedAddress(address), namespace, 'pod'], zone.apex)
      if (owner === undefined) continue
      this.#putOrRemove(zone, { owner, type, rdata: exists ? [address.bytes] : [] })
    }
  }

  /** Notes whether a Service leads to this server. */
  #noteNameserver({ namespace, name }: ServiceState, records: ServiceRecords | undefined): void {
    const key = `${namespace}/${name}`
    const endpoints = records?.endpoints ?? []
    const isOurs = endpoints.some(({ bytes }) => this.#ownKeys.has(latin1(bytes)))
    if (isOurs || this.#nameservers.has(key)) this.#isNameserverChanged = true
    if (records !== undefined && isOurs) this.#nameservers.set(key, records.addresses)
    else this.#nameservers.delete(key)
  }

  /** Sets the addresses of the name server: of the Services that lead to this server, or else its own. */
  #putNameservers(): void {
    const found = [...this.#nameservers.values()].flat()
    const addresses = this.#nameservers.size > 0 ? found : this.#options.ownAddresses
    for (const zone of this.#forward) {
      const owner = this.#nameserverOf(zone)
      for (const [family, type] of [
        [1, RRType.A],
        [2, RRType.AAAA],
      ]) {
        const own = addresses.filter((address) => address.family === family)
        this.#putOrRemove(zone, { owner, type: type!, rdata: sortedOnce(own.map(bytesOf)) })
      }
    }
  }

  #putSoa(zone: ClusterZone): void {
    const { clock, ttlSeconds, soaTtlSeconds, scheme } = this.#options
    zone.serial = Math.max(zone.serial + 1, Math.floor(clock.now() / 1000)) >>> 0
    const mname = this.#nameserverOf(zone)
    const rname = childOf(zone.apex, scheme.mailbox)
    const rdata = new Uint8Array(mname.length + rname.length + 20)
    rdata.set(mname)
    rdata.set(rname, mname.length)
    const view = new DataView(rdata.buffer, mname.length + rname.length)
    for (const [i, number] of [zone.serial, ...SOA_TIMERS, ttlSeconds].entries()) {
      view.setUint32(i * 4, number)
    }
    this.#put(zone, { owner: zone.apex, type: RRType.SOA, rdata: [rdata] }, soaTtlSeconds)
  }

  /** A reverse zone has no names of its own for it. */
  #nameserverOf({ apex, isReverse }: ClusterZone): Uint8Array {
    return childOf(isReverse ? this.#primary.apex : apex, this.#options.scheme.nameserver)
  }

  #declare(zone: ClusterZone, relative: string, exists: boolean): void {
    const owner = nameBelow(relative.split('.'), zone.apex)
    if (owner === undefined) return
    // The name is no record: transfers do not contain it, so the version of the zone stays.
    this.image.declareName(zone.id, owner, exists)
  }

  #putOrRemove(zone: ClusterZone, set: ServiceRRset): void {
    if (set.rdata.length === 0) this.#remove(zone, set)
    else this.#put(zone, set)
  }

  #put(zone: ClusterZone, set: ServiceRRset, ttlSeconds = this.#options.ttlSeconds): void {
    const { owner, type, rdata } = set
    if (this.image.putRRset(zone.id, owner, { type, ttlSeconds, rdata })) this.#note(zone, set)
  }

  #remove(zone: ClusterZone, set: ServiceRRset): void {
    if (this.image.removeRRset(zone.id, set.owner, set.type)) this.#note(zone, set)
  }

  #note(zone: ClusterZone, { owner, type }: ServiceRRset): void {
    zone.isChanged = true
    if (zone.changed !== undefined && zone.changed.length >= CHANGED_MAX) zone.changed = undefined
    zone.changed?.push({ owner, type })
  }
}

/** A name below an apex. An apex that is too long for it is rejected before. */
function childOf(apex: Uint8Array, relative: string): Uint8Array {
  return concatNames(lowerName(scanName(`${relative}.`)!), apex)!
}

function keyOfSet({ owner, type }: ServiceRRset): string {
  return `${latin1(owner)}${type}`
}

function bytesOf({ bytes }: Address): Uint8Array {
  return bytes
}
