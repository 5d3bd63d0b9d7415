import { printAddress, scanIPv6 } from '../../../dns/text/address.ts'
import type { Flow } from '../connections.ts'

/** What follows the number of the protocol: a timeout and a state, if the protocol has them. */
const PROTOCOL = / (\d+) (?:\d+ )?(?:(\w+) )?src=/
/** States of TCP after the end of a connection. A client that connects ten times per second has a thousand of them. */
const ENDED: readonly (string | undefined)[] = ['TIME_WAIT', 'CLOSE']
const SOURCE = ' src='
const DESTINATION = ' dst='
const SOURCE_PORT = ' sport='
const PORT = ' dport='

/**
 * Parses a line of `conntrack -L` or `conntrack -E`. The first addresses and ports are those of the original
 * direction, the second ones those of the replies. Returns undefined if it has none.
 *
 *     tcp 6 431999 ESTABLISHED src=10.1.0.1 dst=192.0.2.1 sport=41608 dport=443 src=192.0.2.1 …
 */
export function scanFlow(line: string): Flow | undefined {
  const at = line.indexOf(SOURCE)
  const source = addressAfter(line, SOURCE, at)
  const destination = addressAfter(line, DESTINATION, at)
  const [, protocol, state] = PROTOCOL.exec(line) ?? []
  if (source === undefined || destination === undefined || protocol === undefined) return undefined
  const replyAt = line.indexOf(SOURCE, at + SOURCE.length)
  const port = numberAfter(line, PORT, at)
  return {
    protocol: Number(protocol),
    source,
    destination,
    port,
    target: addressAfter(line, SOURCE, replyAt) ?? destination,
    targetPort: replyAt < 0 ? port : numberAfter(line, SOURCE_PORT, replyAt),
    isOpen: !ENDED.includes(state),
  }
}

/**
 * Returns the address behind a key, or undefined if the key has no address. `from`: where to search;
 * -1 = do not search.
 */
function addressAfter(line: string, key: string, from: number): string | undefined {
  const text = textAfter(line, key, from)
  if (text === undefined || !text.includes(':')) return text
  const address = scanIPv6(text)
  return address === undefined ? undefined : printAddress(address.bytes, 2)
}

function numberAfter(line: string, key: string, from: number): number {
  const text = textAfter(line, key, from) ?? ''
  return /^\d+$/.test(text) ? Number(text) : 0
}

function textAfter(line: string, key: string, from: number): string | undefined {
  const at = from < 0 ? -1 : line.indexOf(key, from)
  if (at < 0) return undefined
  const start = at + key.length
  const end = line.indexOf(' ', start)
  return line.slice(start, end < 0 ? line.length : end)
}
