/** The address of a server. */
export interface HostPort {
  /** An IP address in its canonical form; a link-local one may have a zone, `fe80::1%eth0`. */
  readonly host: string
  readonly port: number
}

export const DNS_PORT = 53
const PORT_MAX = 65_535

/**
 * Splits `HOST`, `HOST:PORT`, `[IPV6]:PORT` or a bare IPv6 address. The host is returned as written
 * and may be invalid; undefined = the port is invalid.
 */
export function splitHostPort(text: string): HostPort | undefined {
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text)
  const single = /^([^:]*):(\d{1,5})$/.exec(text)
  const [, host = text, port] = bracketed ?? single ?? []
  const number = port === undefined ? DNS_PORT : Number(port)
  return number < 1 || number > PORT_MAX ? undefined : { host, port: number }
}

/** `192.0.2.1:53`, `[2001:db8::1]:53`, `ns1.example.org:53`. */
export function printHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Returns the address of a host without the zone, which only selects the link to send on (RFC 4007 section 11). */
export function addressOfHost(host: string): string {
  const percent = host.indexOf('%')
  return percent === -1 ? host : host.slice(0, percent)
}
