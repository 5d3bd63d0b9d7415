import { RRType } from '../iana/index.ts'
import { ipv4, ipv6 } from './addresses.ts'
import { compressedName } from './names.ts'
import { seconds, u8, u16, u32 } from './numbers.ts'
import type { RdataPart } from './part.ts'
import { characterStrings, propertyTag, textToEnd } from './strings.ts'

/** How the rdata of one type is made up. */
export interface RdataLayout {
  readonly parts: readonly RdataPart[]
  /** What is wrong with well-formed rdata that nobody should write by hand; undefined if nothing. */
  readonly check?: (rdata: Uint8Array) => string | undefined
}

const layoutOfType = new Map<number, RdataLayout>()

function define(types: number | readonly number[], ...parts: readonly RdataPart[]): void {
  for (const type of typeof types === 'number' ? [types] : types) layoutOfType.set(type, { parts })
}

/** The layout of `type`; undefined if its rdata is opaque to us (RFC 3597). */
export function layoutOf(type: number): RdataLayout | undefined {
  return layoutOfType.get(type)
}

// RFC 1035 and the oldest additions
define(RRType.A, ipv4)
define(RRType.AAAA, ipv6)
define([RRType.NS, RRType.CNAME, RRType.PTR], compressedName)
define(
  RRType.SOA,
  compressedName,
  compressedName,
  u32('a serial'),
  seconds('a refresh interval'),
  seconds('a retry interval'),
  seconds('an expire time'),
  seconds('a minimum TTL'),
)
define(RRType.MX, u16('a preference'), compressedName)
define([RRType.TXT, RRType.SPF], characterStrings)
define(RRType.SRV, u16('a priority'), u16('a weight'), u16('a port'), compressedName)
define(RRType.CAA, u8('flags'), propertyTag, textToEnd('a property value', 0))
