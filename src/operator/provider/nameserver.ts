import { DNS_PORT } from '../../dns/host-port.ts'
import {
  type Address,
  type Cidr,
  isInNetwork,
  printAddress,
  scanAddress,
  scanCidr,
} from '../../dns/text/address.ts'
import { scanHost } from '../../dnsrecord/validate/names.ts'

/** Address of a peer's nameserver. */
export interface Nameserver {
  /** An address in its canonical form, or a host name in lower case. */
  readonly host: string
  readonly port: number
}

const PORT_MAX = 65_535
const MAPPED = scanCidr('::ffff:0:0/96')!
/** Link-local networks have, for example, the metadata services of clouds. */
const LOCAL = [
  ['127.0.0.0/8', 'a loopback address'],
  ['0.0.0.0/8', 'an address of this host'],
  ['169.254.0.0/16', 'a link-local address'],
  ['::1/128', 'a loopback address'],
  ['::/128', 'an address of this host'],
  ['fe80::/10', 'a link-local address'],
].map(([text, what]) => ({ cidr: scanCidr(text!)!, what: what! }))

/**
 * Reads `HOST` or `HOST:PORT`. The host is a name, an IPv4 address or an IPv6 address, which needs
 * brackets if a port follows. Returns an error message for any other text, and for an address of this host or link
 * that is not in `allowed`: authors of Secrets must not reach services of the operator itself.
 */
export function scanNameserver(text: string, allowed: readonly Cidr[]): Nameserver | string {
  const { host, port } = split(text)
  const number = port === undefined ? DNS_PORT : Number(port)
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || number < 1 || number > PORT_MAX)) {
    return `port number expected at end of nameserver but got ${JSON.stringify(text)}`
  }
  const address = scanAddress(host)
  if (address !== undefined) {
    const local = findLocal(address)
    if (local !== undefined && !isAllowed(address, allowed)) {
      return `nameserver ${JSON.stringify(text)} is ${local}; use one that is reachable from other networks, or allow it with --nameserver-allow`
    }
    return { host: printAddress(address.bytes, address.family), port: number }
  }
  if (host === '' || /^[\d.]+$/.test(host) || host.includes(':') || !isHostName(host)) {
    return `expected an IPAddress or host name as nameserver address but got ${JSON.stringify(text)}`
  }
  return { host: host.toLowerCase().replace(/\.$/, ''), port: number }
}

/** Says what an address of this host or link is, also as an IPv4-mapped one; undefined = it is another one. */
function findLocal(address: Address): string | undefined {
  return LOCAL.find(({ cidr }) => isIn(unmap(address), cidr))?.what
}

/** An IPv4-mapped address counts as written, too. */
function isAllowed(address: Address, allowed: readonly Cidr[]): boolean {
  return allowed.some((cidr) => isIn(address, cidr) || isIn(unmap(address), cidr))
}

function isIn({ bytes, family }: Address, cidr: Cidr): boolean {
  return family === cidr.family && isInNetwork(bytes, cidr)
}

function unmap(address: Address): Address {
  const { bytes, family } = address
  return family === 2 && isInNetwork(bytes, MAPPED)
    ? { family: 1, bytes: bytes.slice(12) }
    : address
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
