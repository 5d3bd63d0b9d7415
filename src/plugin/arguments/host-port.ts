import type { Dispenser } from '../../corefile/dispenser.ts'

const PORT_MAX = 65_535

/**
 * Checks an address to serve HTTP on: `host:port`, `[v6]:port` or `:port`. Returns it unchanged, or
 * throws InputError with the messages of Go's `net.SplitHostPort`.
 */
export function scanHostPort(d: Dispenser, text: string): string {
  const colon = text.lastIndexOf(':')
  if (colon < 0 || text.endsWith(']')) throw d.error(`address ${text}: missing port in address`)
  const host = text.slice(0, colon)
  const port = text.slice(colon + 1)
  const bracketed = host.startsWith('[') && host.endsWith(']')
  if (!bracketed && host.includes(':')) throw d.error(`address ${text}: too many colons in address`)
  if (!/^\d{1,5}$/.test(port) || Number(port) > PORT_MAX) {
    throw d.error(
      `address ${text}: invalid port ${JSON.stringify(port)}; expected 0 to ${PORT_MAX}`,
    )
  }
  return text
}
