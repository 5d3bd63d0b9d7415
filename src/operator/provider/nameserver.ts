import { DNS_PORT } from '../../dns/host-port.ts'
import { type Cidr, printAddress, scanAddress } from '../../dns/text/address.ts'
import { findLocal } from '../../peering/local-address.ts'
import type { PeerAddress } from '../../peering/peer-address.ts'
import { scanHost } from '../../records/validate/names.ts'

export type Nameserver = PeerAddress

const PORT_MAX = 65_535

/**
 * Reads `HOST` or `HOST:PORT`. The host is a name, an IPv4 address or an IPv6 address, which needs
 * brackets if a port follows. Returns an error message for any other text, and for an address of this host or link
 * that is not in `allowed`: authors of Secrets must not reach services of the operator itself. A host name must not
 * lead to one either (`resolvePeer`).
 */
export function scanNameserver(text: string, allowed: readonly Cidr[]): Nameserver | string {
  const { host, port } = split(text)
  const number = port === undefined ? DNS_PORT : Number(port)
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || number < 1 || number > PORT_MAX)) {
    return `port number expected at end of nameserver but got ${JSON.stringify(text)}`
  }
  const address = scanAddress(host)
  if (address !== undefined) {
    const local = findLocal(address, allowed)
    if (local !== undefined) {
      return `nameserver ${JSON.stringify(text)} is ${local}; use one that is reachable from other networks, or allow it with --nameserver-allow`
    }
    return { host: printAddress(address.bytes, address.family), port: number }
  }
  if (host === '' || /^[\d.]+$/.test(host) || host.includes(':') || !isHostName(host)) {
    return `expected an IPAddress or host name as nameserver address but got ${JSON.stringify(text)}`
  }
  return { host: host.toLowerCase().replace(/\.$/, ''), port: number, localAllowed: allowed }
}

function split(text: string): { readonly host: string; readonly port: string | undefined } {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(text)
  if (bracketed !== null) return { host: bracketed[1] ?? '', port: bracketed[2] }
  const colon = text.indexOf(':')
  // Several colons: an IPv6 address without a port.
  if (colon === -1 || text.includes(':', colon + 1)) return { host: text, port: undefined }
  return { host: text.slice(0, colon), port: text.slice(colon + 1) }
}

function isHostName(text: string): boolean {
  return /^[\w.-]+$/.test(text) && scanHost(text) !== undefined
}
