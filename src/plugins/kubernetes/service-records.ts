import { RRType } from '../../dns/iana/types.ts'
import { concatNames, LABEL_OCTETS_MAX, lowerName, scanName } from '../../dns/name/name.ts'
import { type Address, printAddress, scanAddress } from '../../dns/text/address.ts'
import { type Port, type SliceFacts, unpackService, unpackSlice } from './packed.ts'

/** The state of a Service with its EndpointSlices. */
export interface ServiceState {
  readonly namespace: string
  readonly name: string
  /** See packed.ts. */
  readonly service: string
  readonly slices: readonly string[]
}

export interface RecordOptions {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Endpoints without a hostname are named after their Pods. */
  readonly podNames: boolean
  /** Omits Services with a cluster IP that have no ready endpoint. */
  readonly ignoresEmpty: boolean
}

/** One RRset of a Service. */
export interface ServiceRRset {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  readonly type: number
  /** In canonical order, without duplicates. */
  readonly rdata: readonly Uint8Array[]
}

/** The name that an address leads to. */
export interface Pointer {
  readonly address: Address
  /** Lower-case wire form. */
  readonly target: Uint8Array
  /** The address is a cluster IP, not that of an endpoint. */
  readonly isService: boolean
}

export interface ServiceRecords {
  readonly sets: readonly ServiceRRset[]
  readonly pointers: readonly Pointer[]
  /** Addresses at which clients reach the Service: its cluster IPs, or its endpoints. */
  readonly addresses: readonly Address[]
}

const NO_RECORDS: ServiceRecords = { sets: [], pointers: [], addresses: [] }
/** The weights of the SRV records of one name add up to about this, as in CoreDNS. */
const WEIGHT_SUM = 100
/** Maximum of records of one RRset: no DNS message has room for more. */
const RDATA_MAX = 4096

/** One address of a ready endpoint. */
interface Endpoint {
  readonly name: Uint8Array
  readonly address: Address
  readonly ports: readonly Port[]
}

/** A target of an SRV RRset; several addresses of one target appear several times. */
interface Target {
  readonly name: Uint8Array
  readonly port: number
}

/**
 * Returns the records of a Service in a zone (Kubernetes DNS-Based Service Discovery 1.1, sections
 * 2.3 to 2.5). Omits names and addresses that are invalid.
 */
export function serviceRecords(state: ServiceState, options: RecordOptions): ServiceRecords {
  const { zone, podNames, ignoresEmpty } = options
  const facts = unpackService(state.service)
  const base = nameBelow([state.name, state.namespace, 'svc'], zone)
  if (base === undefined) return NO_RECORDS
  if (facts.alias !== '') return aliasRecords(base, facts.alias)
  const slices = state.slices.map(unpackSlice)
  const endpoints = [...endpointsOf(slices, base, facts.publishesNotReady, podNames)]
  const clusterIPs = facts.clusterIPs.flatMap((text) => scanAddress(text) ?? [])
  const pointers: Pointer[] = [
    ...clusterIPs.map((address) => ({ address, target: base, isService: true })),
    ...endpoints.map(({ address, name }) => ({ address, target: name, isService: false })),
  ]
  if (ignoresEmpty && !facts.isHeadless && endpoints.length === 0) {
    return { sets: [], pointers, addresses: [] }
  }
  const sets = new RRsetCollector()
  for (const { name, address } of endpoints) sets.addAddress(name, address)
  if (facts.isHeadless) {
    for (const { address } of endpoints) sets.addAddress(base, address)
    for (const { name, ports } of endpoints) sets.addPorts(base, ports, name)
  } else {
    for (const address of clusterIPs) {
      sets.addAddress(base, address)
      sets.addPorts(base, facts.ports, base)
    }
  }
  const addresses = facts.isHeadless ? endpoints.map(({ address }) => address) : clusterIPs
  return { sets: sets.list(), pointers, addresses }
}

/** Returns the name of `labels` in `zone` in lower-case wire form; undefined if a label is invalid. */
export function nameBelow(labels: readonly string[], zone: Uint8Array): Uint8Array | undefined {
  if (labels.some((label) => label === '' || /[^\w-]/.test(label))) return undefined
  const relative = scanName(`${labels.join('.')}.`)
  return relative === undefined ? undefined : concatNames(lowerName(relative), zone)
}

/** Returns the label that stands for an address: `10-0-0-1`, `2001-db8--1`. */
export function dashedAddress({ bytes, family }: Address): string {
  const dashed = printAddress(bytes, family).replaceAll(/[.:]/g, '-')
  return dashed.endsWith('-') ? `${dashed}0` : dashed
}

function aliasRecords(base: Uint8Array, alias: string): ServiceRecords {
  // An address is not a host name; CoreDNS ignores it too.
  if (scanAddress(alias) !== undefined) return NO_RECORDS
  const target = scanName(alias.endsWith('.') ? alias : `${alias}.`)
  if (target === undefined) return NO_RECORDS
  const set = { owner: base, type: RRType.CNAME, rdata: [lowerName(target)] }
  return { ...NO_RECORDS, sets: [set] }
}

function* endpointsOf(
  slices: readonly SliceFacts[],
  base: Uint8Array,
  publishesNotReady: boolean,
  podNames: boolean,
): Generator<Endpoint> {
  for (const { ports, endpoints } of slices) {
    for (const { addresses, hostname, pod, isReady } of endpoints) {
      if (!isReady && !publishesNotReady) continue
      for (const text of addresses) {
        const address = scanAddress(text)
        if (address === undefined) continue
        const isLabel = pod.length <= LABEL_OCTETS_MAX && !pod.includes('.')
        const podName = podNames && isLabel ? pod : ''
        const name = nameBelow([hostname || podName || dashedAddress(address)], base)
        if (name !== undefined) yield { name, address, ports }
      }
    }
  }
}

/** Collects RRsets. */
class RRsetCollector {
  readonly #sets = new Map<string, { owner: Uint8Array; type: number; rdata: Uint8Array[] }>()
  readonly #targets = new Map<string, { owner: Uint8Array; targets: Target[] }>()

  addAddress(owner: Uint8Array, { family, bytes }: Address): void {
    this.#add(owner, family === 1 ? RRType.A : RRType.AAAA, bytes)
  }

  /** Adds targets of SRV records: at `base` for all ports, and below it for named ports. */
  addPorts(base: Uint8Array, ports: readonly Port[], name: Uint8Array): void {
    for (const [portName, protocol, port] of ports) {
      this.#addTarget(base, { name, port })
      if (portName === '') continue
      const owner = nameBelow([`_${portName}`, `_${protocol}`], base)
      if (owner !== undefined) this.#addTarget(owner, { name, port })
    }
  }

  /** Returns the RRsets. */
  list(): ServiceRRset[] {
    for (const { owner, targets } of this.#targets.values()) {
      const weight = Math.max(1, Math.floor(WEIGHT_SUM / targets.length))
      for (const { name, port } of targets) {
        this.#add(owner, RRType.SRV, Uint8Array.of(0, 0, 0, weight, port >> 8, port & 255, ...name))
      }
    }
    return [...this.#sets.values()].map(({ owner, type, rdata }) => {
      return { owner, type, rdata: sortedOnce(rdata) }
    })
  }

  #add(owner: Uint8Array, type: number, rdata: Uint8Array): void {
    const key = `${latin1(owner)}${type}`
    const set = this.#sets.get(key) ?? { owner, type, rdata: [] }
    this.#sets.set(key, set)
    set.rdata.push(rdata)
  }

  #addTarget(owner: Uint8Array, target: Target): void {
    const key = latin1(owner)
    const set = this.#targets.get(key) ?? { owner, targets: [] }
    this.#targets.set(key, set)
    set.targets.push(target)
  }
}

/**
 * Sorts rdata, so that the order of EndpointSlices changes no RRset, and removes duplicates. Keeps
 * the first RDATA_MAX.
 */
export function sortedOnce(rdata: readonly Uint8Array[]): readonly Uint8Array[] {
  if (rdata.length < 2) return rdata
  const sorted = [...rdata].sort(Buffer.compare)
  const unique = sorted.filter((octets, i) => {
    return i === 0 || Buffer.compare(octets, sorted[i - 1]!) !== 0
  })
  return unique.slice(0, RDATA_MAX)
}

export function latin1(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString('latin1')
}
