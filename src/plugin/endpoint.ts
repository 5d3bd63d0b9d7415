import { isIP, isIPv6 } from 'node:net'
import type { Dispenser } from '../corefile/dispenser.ts'
import { type Endpoint, splitHostPort } from '../dns/endpoint.ts'
import { printAddress, scanAddress } from '../dns/text/address.ts'
import type { BlockConfig } from './directive.ts'

/** Reads `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`. Throws InputError on anything else. */
export function scanEndpoint(d: Dispenser, text: string): Endpoint {
  const split = splitHostPort(text)
  const address = split === undefined ? undefined : scanAddress(split.host)
  if (split === undefined || address === undefined) {
    throw d.error(`not an IP address or IP address with port: ${JSON.stringify(text)}`)
  }
  return { host: printAddress(address.bytes, address.family), port: split.port }
}

/** Reads the one argument of `source`: the address that we ask or tell others from. */
export function scanSource(d: Dispenser): string {
  const args = d.remainingArgs()
  if (args.length !== 1) throw d.argError()
  if (isIP(args[0]!) === 0) throw d.error(`invalid source IP address: ${args[0]}`)
  return args[0]!
}

/**
 * Other servers know us by the address that we are asked at: the one of the family of `host` that `bind`
 * names. '' = there is none, or several: the system picks.
 */
export function ownAddress(host: string, { listenHosts }: BlockConfig): string {
  const same = listenHosts.filter((own) => isIPv6(own) === isIPv6(host))
  return same.length === 1 ? same[0]! : ''
}
