import { lowerName, scanName } from '../../dns/name/name.ts'
import { type Address, scanAddress } from '../../dns/text/address.ts'
import { endpointsOf, type ServiceState } from './endpoints.ts'
import { nameBelow } from './names.ts'
import { unpackService } from './packed.ts'
import { RRsetCollector, sortedOnce } from './rrset-collector.ts'
import { NO_RECORDS, type ServiceRecords } from './service-records.ts'

/** With the final dot (RFC 1035 section 2.3.4). */
const HOSTNAME_CHARACTERS_MAX = 254

interface ExternalRecordOptions {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Endpoints without a hostname are named after their Pods. */
  readonly podNames: boolean
  /** Headless Services without external addresses have the names of their endpoints. */
  readonly headless: boolean
}

/**
 * Returns the records of a Service at which clients outside of the cluster reach it:
 * `NAME.NAMESPACE.ZONE`. Omits names and addresses that are invalid.
 */
export function externalRecords(
  state: ServiceState,
  { zone, podNames, headless }: ExternalRecordOptions,
): ServiceRecords {
  const base = nameBelow([state.name, state.namespace], zone)
  if (base === undefined) return NO_RECORDS
  const facts = unpackService(state.service)
  const named = endpointsOf(state, facts, base, podNames)
  const endpoints = named.map(({ address }) => address)
  const { addresses, hostnames } = externalsOf(facts.externals)
  const sets = new RRsetCollector()
  if (addresses.length === 0 && hostnames.length === 0) {
    if (!headless || !facts.isHeadless) return { ...NO_RECORDS, endpoints }
    for (const { name, address } of named) sets.addAddress(name, address)
    sets.addEndpoints(base, named)
    return { sets: sets.list(), pointers: [], addresses: endpoints, endpoints }
  }
  for (const address of addresses) {
    sets.addAddress(base, address)
    sets.addPorts(base, facts.ports, base)
  }
  const isAlias = addresses.length === 0
  // A name with a CNAME has one of it and no other record (RFC 2181 section 10.1).
  if (isAlias) sets.addAlias(base, hostnames[0]!)
  for (const name of hostnames) {
    if (isAlias) sets.addNamedPorts(base, facts.ports, name)
    else sets.addPorts(base, facts.ports, name)
  }
  const pointers = addresses.map((address) => ({ address, target: base, isService: true }))
  return { sets: sets.list(), pointers, addresses, endpoints }
}

/** Host names are in lower-case wire form and in canonical order. */
function externalsOf(texts: readonly string[]): {
  readonly addresses: readonly Address[]
  readonly hostnames: readonly Uint8Array[]
} {
  const addresses: Address[] = []
  const hostnames: Uint8Array[] = []
  for (const text of texts) {
    const address = scanAddress(text)
    const hostname = address === undefined ? scanHostname(text) : undefined
    if (address !== undefined) addresses.push(address)
    else if (hostname !== undefined) hostnames.push(hostname)
  }
  return { addresses, hostnames: sortedOnce(hostnames) }
}

/** Returns undefined for a text that is no host name, such as an address that is invalid. */
function scanHostname(text: string): Uint8Array | undefined {
  // The last label of a host name is not a number (RFC 3696 section 2).
  if (text.length > HOSTNAME_CHARACTERS_MAX || !/^(?:[\w-]+\.)*[\d_]*[a-z][\w-]*\.?$/i.test(text))
    return undefined
  const name = scanName(text.endsWith('.') ? text : `${text}.`)
  return name === undefined ? undefined : lowerName(name)
}
