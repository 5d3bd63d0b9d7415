import { isIP } from 'node:net'

/**
 * True if a Host header is an address, localhost, or one of `names`. A web page can make a browser on this machine send
 * requests, if a name of the page resolves to loopback.
 */
export function isLocalName(host: string | undefined, names: readonly string[]): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase()
  return (
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || name === 'localhost' || names.includes(name)
  )
}

/** True if only this machine reaches `host:port`. */
export function isLoopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1')
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
