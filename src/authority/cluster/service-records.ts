import { RRType } from '../../dns/iana/types.ts'
import { lowerName, scanName } from '../../dns/name/name.ts'
import { type Address, scanAddress } from '../../dns/text/address.ts'
import { endpointsOf, type ServiceState } from './endpoints.ts'
import { nameBelow } from './names.ts'
import { unpackService } from './packed.ts'
import { RRsetCollector, type ServiceRRset } from './rrset-collector.ts'

interface RecordOptions {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Endpoints without a hostname are named after their Pods. */
  readonly podNames: boolean
  /** Omits Services with a cluster IP that have no ready endpoint. */
  readonly ignoresEmpty: boolean
}

/** The name that an address leads to. */
export interface Pointer {
  readonly address: Address
  /** Lower-case wire form. */
  readonly target: Uint8Array
  /** The address is that of a Service, not that of an endpoint. */
  readonly isService: boolean
}

export interface ServiceRecords {
  readonly sets: readonly ServiceRRset[]
  readonly pointers: readonly Pointer[]
  /** Addresses at which clients of the zone reach the Service. */
  readonly addresses: readonly Address[]
  /** Addresses of the ready endpoints. */
  readonly endpoints: readonly Address[]
}

export const NO_RECORDS: ServiceRecords = { sets: [], pointers: [], addresses: [], endpoints: [] }

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
  const named = endpointsOf(state, facts, base, podNames)
  const endpoints = named.map(({ address }) => address)
  const clusterIPs = facts.clusterIPs.flatMap((text) => scanAddress(text) ?? [])
  const pointers: Pointer[] = [
    ...clusterIPs.map((address) => ({ address, target: base, isService: true })),
    ...named.map(({ address, name }) => ({ address, target: name, isService: false })),
  ]
  if (ignoresEmpty && !facts.isHeadless && endpoints.length === 0) {
    return { ...NO_RECORDS, pointers }
  }
  const sets = new RRsetCollector()
  for (const { name, address } of named) sets.addAddress(name, address)
  if (facts.isHeadless) sets.addEndpoints(base, named)
  else {
    for (const address of clusterIPs) {
      sets.addAddress(base, address)
      sets.addPorts(base, facts.ports, base)
    }
  }
  const addresses = facts.isHeadless ? endpoints : clusterIPs
  return { sets: sets.list(), pointers, addresses, endpoints }
}

function aliasRecords(base: Uint8Array, alias: string): ServiceRecords {
  // An address is not a host name; CoreDNS ignores it too.
  if (scanAddress(alias) !== undefined) return NO_RECORDS
  const target = scanName(alias.endsWith('.') ? alias : `${alias}.`)
  if (target === undefined) return NO_RECORDS
  const set = { owner: base, type: RRType.CNAME, rdata: [lowerName(target)] }
  return { ...NO_RECORDS, sets: [set] }
}
