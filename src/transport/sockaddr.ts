import { networkInterfaces } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { parsePeerAddress } from './peer-address.ts'

export const AF_INET = 2
export const AF_INET6 = 10

export const SOCKADDR_IN_OCTETS = 16
export const SOCKADDR_IN6_OCTETS = 28
/** Offsets of the parts of a sockaddr. */
export const NAME_PORT = 2
export const NAME_IPV4 = 4
export const NAME_IPV6 = 8
export const NAME_SCOPE = 24

/**
 * Writes a `struct sockaddr_in` or `sockaddr_in6` at `at`: family 0..1 in the machine's byte order,
 * which is little endian, port 2..3 in network byte order, then the address. Returns its octets.
 */
export function writeSockaddr(octets: Uint8Array, at: number, host: string, port: number): number {
  const address = new Uint8Array(16)
  const isIPv4 = parsePeerAddress(host, address) === 1
  const length = isIPv4 ? SOCKADDR_IN_OCTETS : SOCKADDR_IN6_OCTETS
  octets.fill(0, at, at + length)
  octets[at] = isIPv4 ? AF_INET : AF_INET6
  octets[at + NAME_PORT] = port >> 8
  octets[at + NAME_PORT + 1] = port & 0xff
  if (isIPv4) octets.set(address.subarray(0, 4), at + NAME_IPV4)
  else {
    octets.set(address, at + NAME_IPV6)
    const scope = scopeOf(host)
    for (let i = 0; i < 4; i++) octets[at + NAME_SCOPE + i] = scope >>> (8 * i)
  }
  return length
}

/** Index of the interface that a link-local address names after `%`; 0 = none. */
function scopeOf(host: string): number {
  const zone = host.split('%')[1]
  if (zone === undefined) return 0
  const scoped = networkInterfaces()[zone]?.find((address) => address.family === 'IPv6')
  return scoped?.family === 'IPv6' ? scoped.scopeid : Number(zone) || 0
}

/** An error as node:dgram and node:net create it. */
export function systemError(
  syscall: string,
  errno: number,
  { host: address, port }: { readonly host: string; readonly port: number },
): Error {
  const code = getSystemErrorName(-errno)
  const place = syscall === 'bind' ? ` ${address}${port === 0 ? '' : `:${port}`}` : ''
  const error = new Error(`${syscall} ${code}${place}`)
  return Object.assign(error, { errno: -errno, code, syscall, address, port })
}

/** Whether `error` is that of an address that is in use. */
export function isInUse(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
}
