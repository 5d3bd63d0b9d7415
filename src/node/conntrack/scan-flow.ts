import { printAddress, scanIPv6 } from '../../dns/text/address.ts'

/** The original direction of a connection. Addresses in canonical form. */
export interface Flow {
  readonly source: string
  readonly destination: string
}

const SOURCE = ' src='
const DESTINATION = ' dst='

/**
 * Parses a line of `conntrack -L` or `conntrack -E`: the first `src=` and `dst=` are those of the original
 * direction. Returns undefined if it has none.
 *
 *     tcp 6 431999 ESTABLISHED src=10.1.0.1 dst=192.0.2.1 sport=41608 dport=443 src=192.0.2.1 …
 */
export function scanFlow(line: string): Flow | undefined {
  const source = addressAfter(line, SOURCE, 0)
  if (source === undefined) return undefined
  const destination = addressAfter(line, DESTINATION, line.indexOf(SOURCE))
  return destination === undefined ? undefined : { source, destination }
}

function addressAfter(line: string, key: string, from: number): string | undefined {
  const at = line.indexOf(key, from)
  if (at < 0) return undefined
  const start = at + key.length
  const end = line.indexOf(' ', start)
  const text = line.slice(start, end < 0 ? line.length : end)
  if (!text.includes(':')) return text
  const address = scanIPv6(text)
  return address === undefined ? undefined : printAddress(address.bytes, 2)
}
