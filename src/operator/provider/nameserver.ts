import { DNS_PORT } from '../../dns/host-port.ts'
import { type Address, printAddress, scanAddress } from '../../dns/text/address.ts'
import { scanHost } from '../../dnsrecord/validate/names.ts'

/** Address of a peer's nameserver. */
export interface Nameserver {
  /** An address in its canonical form, or a host name in lower case. */
  readonly host: string
  readonly port: number
}

const PORT_MAX = 65_535

/**
 * Reads `HOST` or `HOST:PORT`. The host is a name, an IPv4 address or an IPv6 address, which needs
 * brackets if a port follows. Returns an error message for any other text.
 */
export function scanNameserver(text: string): Nameserver | string {
  const { host, port } = split(text)
  const number = port === undefined ? DNS_PORT : Number(port)
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || number < 1 || number > PORT_MAX)) {
    return `port number expected at end of nameserver but got ${JSON.stringify(text)}`
  }
  const address = scanAddress(host)
  if (address !== undefined) {
    if (isLinkLocal(address)) {
      return `nameserver ${JSON.stringify(text)} is a link-local address; use one that is reachable from other networks`
    }
    return { host: printAddress(address.bytes, address.family), port: number }
  }
  if (host === '' || /^[\d.]+$/.test(host) || host.includes(':') || !isHostName(host)) {
    return `expected an IPAddress or host name as nameserver address but got ${JSON.stringify(text)}`
  }
  return { host: host.toLowerCase().replace(/\.$/, ''), port: number }
}

/** 169.254.0.0/16 and fe80::/10: for example the metadata services of clouds. Also as IPv4-mapped addresses. */
function isLinkLocal({ bytes, family }: Address): boolean {
  if (family === 1) return bytes[0] === 169 && bytes[1] === 254
  if (bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0x80) return true
  const isMapped = bytes.subarray(0, 10).every((octet) => octet === 0) && bytes[10] === 0xff
  return isMapped && bytes[11] === 0xff && bytes[12] === 169 && bytes[13] === 254
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
