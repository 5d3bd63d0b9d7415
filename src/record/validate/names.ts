import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { printLatin1 } from '../latin1.ts'

/** Printable ASCII without spaces and backslashes: what host names, wildcards and `_service` need. */
const NAME_TEXT = /^[!-[\]-~]+$/
/** Names written a moment ago: a record repeats its few names many times. */
const RECENT_MAX = 512
const recent = new Map<string, Uint8Array>()

/**
 * A name of a DNSRecord in lower-case wire form, always absolute, with or without its final dot;
 * undefined if it is none. Escapes and characters beyond ASCII are not taken: IDNs come as punycode.
 * The result is shared: never write to it.
 */
export function scanHost(text: string): Uint8Array | undefined {
  const known = recent.get(text)
  if (known !== undefined) return known
  if (!NAME_TEXT.test(text) || text === '@') return undefined
  const name = scanName(text, ROOT_NAME)
  if (name === undefined) return undefined
  if (recent.size >= RECENT_MAX) recent.clear()
  const lower = lowerName(name)
  // A flat copy of the text: a slice would keep the document that it was read from.
  recent.set(Buffer.from(text, 'latin1').toString('latin1'), lower)
  return lower
}

/** The name without a leading `*` label. */
export function withoutWildcard(name: Uint8Array): Uint8Array {
  return isWildcard(name) ? name.subarray(2) : name
}

export function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a
}

/** Map key of a name that is in lower case already. */
export function lowerNameKey(name: Uint8Array): string {
  return printLatin1(name)
}
