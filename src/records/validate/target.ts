import { RRType } from '../../dns/iana/types.ts'
import { ROOT_NAME } from '../../dns/name/name.ts'
import { RdataError, scanRdata, splitFields } from '../../dns/rdata/index.ts'
import { scanAddress, scanIPv4, scanIPv6 } from '../../dns/text/address.ts'
import { ALIAS_TYPE } from '../dns-record.ts'
import { scanHost } from './names.ts'

/** Types that a DNSRecord may have, by their name in the DNSRecord. */
export const RECORD_TYPES: ReadonlyMap<string, number> = new Map([
  ['A', RRType.A],
  ['AAAA', RRType.AAAA],
  ['CNAME', RRType.CNAME],
  ['ALIAS', ALIAS_TYPE],
  ['NS', RRType.NS],
  ['TXT', RRType.TXT],
  ['MX', RRType.MX],
  ['SRV', RRType.SRV],
  ['CAA', RRType.CAA],
  ['PTR', RRType.PTR],
  ['NAPTR', RRType.NAPTR],
  ['HTTPS', RRType.HTTPS],
  ['SVCB', RRType.SVCB],
])

/** The field with the host name, by type. An address there would be a name that does not exist. */
const NAME_FIELDS: ReadonlyMap<number, number> = new Map([
  [RRType.MX, 1],
  [RRType.SRV, 3],
  [RRType.NAPTR, 5],
  [RRType.HTTPS, 1],
  [RRType.SVCB, 1],
])
/** A target of one string is split into strings of this many octets (RFC 1035 section 3.3). */
const STRING_OCTETS_MAX = 255
/** Longest target, as written. */
const TARGET_CHARACTERS_MAX = 8192
export const RDATA_OCTETS_MAX = 65535

/**
 * Returns one external-dns target as wire rdata, or the reason why it is invalid.
 *
 * - A, AAAA: an address. CNAME, ALIAS, NS, PTR: a name, always absolute.
 * - TXT: if it starts with a quotation mark, quoted strings with the escapes of RFC 1035; else the
 *   text itself, octet for octet. Strings over 255 octets are split.
 * - The others: fields as in a zone file, names always absolute.
 */
export function scanTarget(type: number, text: string): Uint8Array | string {
  if (text.length > TARGET_CHARACTERS_MAX) return `is longer than ${TARGET_CHARACTERS_MAX}`
  switch (type) {
    case RRType.A:
      return scanIPv4(text)?.bytes ?? 'is not an IPv4 address'
    case RRType.AAAA:
      return scanIPv6(text)?.bytes ?? 'is not an IPv6 address'
    case RRType.CNAME:
    case ALIAS_TYPE:
    case RRType.NS:
    case RRType.PTR:
      return scanNameTarget(text)
    case RRType.TXT:
      return scanText(text)
    default:
      return scanFields(type, text)
  }
}

function scanNameTarget(text: string): Uint8Array | string {
  if (isAddress(text)) return 'is an address; a name is needed'
  return scanHost(text) ?? 'is not a domain name'
}

/** A final dot, as names have it, does not make a name of an address. */
function isAddress(text: string): boolean {
  return scanAddress(text.endsWith('.') ? text.slice(0, -1) : text) !== undefined
}

function scanText(text: string): Uint8Array | string {
  if (!text.startsWith('"')) return composeStrings([Buffer.from(text, 'utf8')])
  const fields = splitFields(text)
  if (fields === undefined || fields.some((f) => !f.quoted)) return 'has unbalanced quotation marks'
  const strings = fields.map((f) => unescapeText(f.text))
  return strings.includes(undefined)
    ? 'has an invalid escape'
    : composeStrings(strings.filter((s) => s !== undefined))
}

function scanFields(type: number, text: string): Uint8Array | string {
  const fields = splitFields(text)
  if (fields === undefined) return 'has unbalanced quotation marks'
  const rdata = scanRdata(type, fields, ROOT_NAME)
  if (rdata instanceof RdataError) return rdata.message
  const name = fields[NAME_FIELDS.get(type) ?? fields.length]?.text ?? ''
  return isAddress(name) ? `names the address ${name}; a name is needed` : rdata
}

/** Returns rdata of a TXT record with these strings, each split after 255 octets. */
export function composeStrings(strings: readonly Uint8Array[]): Uint8Array | string {
  const parts: Uint8Array[] = []
  for (const string of strings) {
    let at = 0
    do {
      const part = string.subarray(at, at + STRING_OCTETS_MAX)
      parts.push(Uint8Array.of(part.length), part)
      at += STRING_OCTETS_MAX
    } while (at < string.length)
  }
  const rdata = new Uint8Array(Buffer.concat(parts))
  return rdata.length > RDATA_OCTETS_MAX ? 'is longer than rdata can be' : rdata
}

/**
 * Returns the octets of a quoted string: `\"`, `\\`, `\DDD` (RFC 1035 section 5.1); undefined =
 * invalid.
 */
function unescapeText(text: string): Uint8Array | undefined {
  if (!text.includes('\\')) return Buffer.from(text, 'utf8')
  const parts: Uint8Array[] = []
  for (const part of text.match(/\\\d{3}|\\[\s\S]|[^\\]+/g) ?? []) {
    const isNumber = /^\\\d{3}$/.test(part)
    const octet = Number(part.slice(1))
    if (isNumber && octet > 255) return undefined
    if (isNumber) parts.push(Uint8Array.of(octet))
    else parts.push(Buffer.from(part.startsWith('\\') ? part.slice(1) : part, 'utf8'))
  }
  return Buffer.concat(parts)
}
