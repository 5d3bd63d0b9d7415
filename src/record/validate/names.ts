import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'

/** Printable ASCII without spaces and backslashes: what host names, wildcards and `_service` need. */
const NAME_TEXT = /^[!-[\]-~]+$/

/**
 * A name of a DNSRecord in lower-case wire form, always absolute, with or without its final dot;
 * undefined if it is none. Escapes and characters beyond ASCII are not taken: IDNs come as punycode.
 */
export function scanHost(text: string): Uint8Array | undefined {
  if (!NAME_TEXT.test(text)) return undefined
  const name = scanName(text, ROOT_NAME)
  return name === undefined || text === '@' ? undefined : lowerName(name)
}

/** The name without a leading `*` label. */
export function withoutWildcard(name: Uint8Array): Uint8Array {
  return isWildcard(name) ? name.subarray(2) : name
}

export function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a
}
