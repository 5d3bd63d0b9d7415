import { printLatin1 } from '../../base/latin1.ts'
import {
  LABEL_OCTETS_MAX,
  lowerName,
  NAME_OCTETS_MAX,
  ROOT_NAME,
  scanName,
} from '../../dns/name/name.ts'

/**
 * Printable ASCII without spaces and backslashes: enough for host names, wildcards and `_service`.
 */
const NAME_TEXT = /^[!-[\]-~]+$/
const DOT = 0x2e

/**
 * Lower-case form of each usual character: letters, digits, `-`, `_` and `*`; 0 = any other
 * character.
 */
const USUAL = new Uint8Array(128)
for (const c of '0123456789abcdefghijklmnopqrstuvwxyz-_*') {
  USUAL[c.toUpperCase().charCodeAt(0)] = USUAL[c.charCodeAt(0)] = c.charCodeAt(0)
}

/**
 * Returns a name of a DNSRecord in lower-case wire form, always absolute, with or without its final
 * dot; undefined = invalid. The caller must not modify the result, because it may be shared.
 * Escapes and non-ASCII characters are invalid: IDNs are written in punycode.
 */
export function scanHost(text: string): Uint8Array | undefined {
  if (text === lastText) return lastName
  const name = scanAnyHost(text)
  lastText = name === undefined ? '' : text
  lastName = name
  return name
}

/** The last scanned name, because a record has the same few names in every endpoint. */
let lastText = ''
let lastName: Uint8Array | undefined

function scanAnyHost(text: string): Uint8Array | undefined {
  const usual = scanUsual(text)
  if (usual !== undefined) return usual
  if (!NAME_TEXT.test(text) || text === '@') return undefined
  const name = scanName(text, ROOT_NAME)
  return name === undefined ? undefined : lowerName(name)
}

/** Scans most names in one pass; undefined = the full scan is needed. */
function scanUsual(text: string): Uint8Array | undefined {
  const end = text.charCodeAt(text.length - 1) === DOT ? text.length - 1 : text.length
  if (end === 0 || end + 2 > NAME_OCTETS_MAX) return undefined
  const name = new Uint8Array(end + 2)
  let labelStart = 0
  for (let i = 0; i <= end; i++) {
    const c = i === end ? DOT : text.charCodeAt(i)
    if (c === DOT) {
      const octets = i - labelStart
      if (octets === 0 || octets > LABEL_OCTETS_MAX) return undefined
      name[labelStart] = octets
      labelStart = i + 1
      continue
    }
    const octet = c < 128 ? USUAL[c]! : 0
    if (octet === 0) return undefined
    name[i + 1] = octet
  }
  return name
}

/** The name without a leading `*` label. */
export function withoutWildcard(name: Uint8Array): Uint8Array {
  return isWildcard(name) ? name.subarray(2) : name
}

export function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a
}

/** Map key of a lower-case name. */
export function lowerNameKey(name: Uint8Array): string {
  return printLatin1(name)
}
