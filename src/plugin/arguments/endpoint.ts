import { isIP, isIPv6 } from 'node:net'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { addressOfHost, type HostPort, splitHostPort } from '../../dns/host-port.ts'
import { type Cidr, printAddress, scanAddress, scanCidr } from '../../dns/text/address.ts'
import type { BlockConfig } from '../directive.ts'

/** The name of an interface (Linux: up to 15 characters). */
const ZONE = /^[^\s/%:]{1,15}$/

/**
 * Reads `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; an IPv6 address may have a zone, `fe80::1%eth0`.
 * Throws InputError on anything else.
 */
export function scanEndpoint(d: Dispenser, text: string): HostPort {
  const split = splitHostPort(text)
  const host = addressOfHost(split?.host ?? '')
  const zone = split?.host.slice(host.length + 1) ?? ''
  const address = scanAddress(host)
  const isZoned = split !== undefined && split.host.length > host.length
  const isGood = !isZoned || (address?.family === 2 && ZONE.test(zone))
  if (split === undefined || address === undefined || !isGood) {
    throw d.error(`not an IP address or IP address with port: ${JSON.stringify(text)}`)
  }
  const printed = printAddress(address.bytes, address.family)
  return { host: isZoned ? `${printed}%${zone}` : printed, port: split.port }
}

/** The network of one host. */
export function hostNetwork({ host }: HostPort): Cidr {
  return scanCidr(`${addressOfHost(host)}/${isIPv6(host) ? 128 : 32}`)!
}

/**
 * Reads the one argument of `source`: the address to send from. `known`: the one read before, '' =
 * none.
 */
export function scanSource(d: Dispenser, known: string): string {
  if (known !== '') throw d.error('source already specified')
  const text = d.onlyArg()
  if (isIP(text) === 0) throw d.error(`invalid source IP address: ${text}`)
  return text
}

/**
 * Other servers know us by the address that they query. Returns the address that `bind` names in
 * the family of `host`. '' = `bind` names none or several: the system chooses.
 */
export function ownAddress(host: string, { listenHosts }: BlockConfig): string {
  const same = listenHosts.filter((own) => isIPv6(own) === isIPv6(host))
  return same.length === 1 ? same[0]! : ''
}
