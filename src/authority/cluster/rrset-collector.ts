import { RRType } from '../../dns/iana/types.ts'
import type { Address } from '../../dns/text/address.ts'
import type { ServiceEndpoint } from './endpoints.ts'
import { nameBelow } from './names.ts'
import type { Port } from './packed.ts'

/** One RRset of a Service. */
export interface ServiceRRset {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  readonly type: number
  /** In canonical order, without duplicates. */
  readonly rdata: readonly Uint8Array[]
}

/** The weights of the SRV records of one name add up to about this, as in CoreDNS. */
const WEIGHT_SUM = 100
/** Maximum of records of one RRset: no DNS message has room for more. */
const RDATA_MAX = 4096

/** A target of an SRV RRset; several addresses of one target appear several times. */
interface Target {
  readonly name: Uint8Array
  readonly port: number
}

/** Collects RRsets. */
export class RRsetCollector {
  readonly #sets = new Map<string, { owner: Uint8Array; type: number; rdata: Uint8Array[] }>()
  readonly #targets = new Map<string, { owner: Uint8Array; targets: Target[] }>()

  addAddress(owner: Uint8Array, { family, bytes }: Address): void {
    this.#add(owner, family === 1 ? RRType.A : RRType.AAAA, bytes)
  }

  addAlias(owner: Uint8Array, target: Uint8Array): void {
    this.#add(owner, RRType.CNAME, target)
  }

  /** Adds the records of a headless Service: `base` has its endpoints. */
  addEndpoints(base: Uint8Array, endpoints: readonly ServiceEndpoint[]): void {
    for (const { address } of endpoints) this.addAddress(base, address)
    for (const { name, ports } of endpoints) this.addPorts(base, ports, name)
  }

  /** Adds targets of SRV records: at `base` for all ports, and below it for named ports. */
  addPorts(base: Uint8Array, ports: readonly Port[], name: Uint8Array): void {
    for (const [, , port] of ports) this.#addTarget(base, { name, port })
    this.addNamedPorts(base, ports, name)
  }

  /** Adds targets of SRV records below `base`. */
  addNamedPorts(base: Uint8Array, ports: readonly Port[], name: Uint8Array): void {
    for (const [portName, protocol, port] of ports) {
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
