import { lookup } from 'node:dns/promises'
import { type HostPort, splitHostPort } from '../dns/host-port.ts'
import { type Cidr, printAddress, scanAddress } from '../dns/text/address.ts'
import { scanHost } from '../records/validate/names.ts'
import { findLocal } from './local-address.ts'

/** The configured address of a peer. */
export interface PeerAddress {
  /** A host name in lower case without its final dot, or an IP address in its canonical form. */
  readonly host: string
  readonly port: number
  /** Networks of this host or link that the host name may lead to; undefined = all. */
  readonly localAllowed?: readonly Cidr[]
}

const HOST_NAME = /^[\w-]+(?:\.[\w-]+)*\.?$/
/** Maximum of addresses of one host name that are tried. */
const ADDRESSES_MAX = 16

/**
 * Reads `HOST`, `HOST:PORT`, an IPv6 address, or one in brackets with a port. Returns a string that
 * says what is wrong otherwise.
 */
export function scanPeerAddress(text: string): PeerAddress | string {
  const split = splitHostPort(text)
  if (split === undefined)
    return `port number expected at end of ${JSON.stringify(text)}, 1 to 65535`
  const { host, port } = split
  const address = scanAddress(host)
  if (address !== undefined) return { host: printAddress(address.bytes, address.family), port }
  const isName = HOST_NAME.test(host) && /[a-z]/i.test(host) && scanHost(host) !== undefined
  if (!isName)
    return `${JSON.stringify(text)} is not an IP address or host name, with or without a port`
  return { host: host.replace(/\.$/, '').toLowerCase(), port }
}

/** Returns the addresses of a host name; rejects if it has no address. */
type Resolve = (host: string) => Promise<readonly string[]>

async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Returns the current addresses of the peer. `resolve` looks up a host name; empty = the host is unknown. */
export async function resolvePeer(
  { host, port, localAllowed }: PeerAddress,
  resolve: Resolve = resolveBySystem,
): Promise<HostPort[]> {
  if (scanAddress(host) !== undefined) return [{ host, port }]
  const isSelected = (text: string): boolean => {
    const address = scanAddress(text)
    if (address === undefined || localAllowed === undefined) return true
    return findLocal(address, localAllowed) === undefined
  }
  const found = (await resolve(host).catch(() => [])).filter(isSelected)
  return found.slice(0, ADDRESSES_MAX).map((address) => ({ host: address, port }))
}
