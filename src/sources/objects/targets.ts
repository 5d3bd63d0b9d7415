import { scanAddress } from '../../dns/text/address.ts'
import { TARGETS_MAX } from '../../records/dns-record.ts'
import type { EndpointDocument } from '../../records/record-document.ts'
import { type FieldPlace, quote, RefusedError } from '../../records/validate/fields.ts'
import { scanHost } from '../../records/validate/names.ts'
import type { OnProblem } from './object-kind.ts'

/** Addresses and host names to which a host leads. */
export interface ObjectTargets {
  readonly texts: readonly string[]
  /** The field of the object that has them. */
  readonly place: FieldPlace
}

/** An endpoint without settings. */
export type PlainEndpoint = Pick<EndpointDocument, 'dnsName' | 'recordType' | 'targets'>

/** Returns a host in lower case, without a final dot. */
export function normalHost(text: string): string {
  return text.toLowerCase().replace(/\.$/, '')
}

/** Returns a host as `normalHost` does. Throws RefusedError if it is not a domain name. */
export function checkHost(text: string, place: FieldPlace): string {
  const host = normalHost(text)
  if (host.includes('.') && scanHost(host) !== undefined) return host
  throw new RefusedError(place, `${quote(text)} is not a domain name with two labels or more`)
}

/**
 * Returns the endpoints of a host: one for each type of its targets. Host names beside addresses are not used, because
 * a CNAME must be alone; of several, the first one is. Throws RefusedError.
 */
export function endpointsOf(
  dnsName: string,
  { texts, place }: ObjectTargets,
  onProblem: OnProblem,
): readonly PlainEndpoint[] {
  const [ipv4, ipv6, names] = [new Set<string>(), new Set<string>(), new Set<string>()]
  for (const text of texts) {
    const family = scanAddress(text)?.family
    if (family === undefined) names.add(checkTarget(text, place))
    else (family === 1 ? ipv4 : ipv6).add(text)
  }
  for (const { size } of [ipv4, ipv6]) {
    if (size <= TARGETS_MAX) continue
    const message = `${dnsName} has ${size} addresses; an endpoint may have up to ${TARGETS_MAX}`
    throw new RefusedError(place, message)
  }
  const unused = [...names].slice(ipv4.size + ipv6.size > 0 ? 0 : 1)
  if (unused.length > 0) {
    const message = `${unused.map(quote).join(', ')} is not served at ${dnsName}, because a CNAME must be alone`
    onProblem({ path: place.path(), message })
  }
  if (ipv4.size + ipv6.size === 0) {
    return [...names].slice(0, 1).map((name) => {
      return { dnsName, recordType: 'CNAME', targets: [name] }
    })
  }
  return [...addressEndpoints(dnsName, 'A', ipv4), ...addressEndpoints(dnsName, 'AAAA', ipv6)]
}

/** Returns the endpoint with these addresses; none if the set is empty. */
function addressEndpoints(
  dnsName: string,
  recordType: string,
  addresses: ReadonlySet<string>,
): readonly PlainEndpoint[] {
  return addresses.size === 0 ? [] : [{ dnsName, recordType, targets: [...addresses] }]
}

function checkTarget(text: string, place: FieldPlace): string {
  if (scanHost(text) !== undefined) return text
  throw new RefusedError(place, `${quote(text)} is neither an IP address nor a host name`)
}
