import { type Cidr, scanCidr } from '../dns/text/address.ts'
import { type GeoCode, scanGeoCode } from './code.ts'
import { continentOf } from './countries.ts'
import type { Location } from './location.ts'

/** A place that the operator assigns to a prefix: `net CIDR CODE`. */
export interface Net {
  readonly cidr: Cidr
  readonly code: GeoCode
}

/**
 * The aspect of a location that a net sets. A net sets one aspect; wider nets and the databases
 * supply the others. A net with a place replaces the whole place. Otherwise an address moved to
 * Canada would keep Ireland's continent.
 */
export type Aspect = 'net' | 'asn' | 'place'

export function aspectOf(code: GeoCode): Aspect {
  return code.rung === 'net' || code.rung === 'asn' ? code.rung : 'place'
}

/** Parses `CIDR CODE`; returns an error message as a string. IPv4-mapped prefixes become IPv4 prefixes. */
export function scanNet(cidrText: string, codeText: string): Net | string {
  const cidr = scanCidr(cidrText)
  if (cidr === undefined) return `invalid network '${cidrText}': write it as 192.0.2.0/24`
  const code = scanGeoCode(codeText)
  if (code === undefined || code.rung === 'default') {
    return `invalid geo code '${codeText}': use a country (IE), a subdivision (US-CA), a continent (GEO-EU), an ASN (AS64500) or a label of your own (NET-OFFICE)`
  }
  return { cidr: foldMappedCidr(cidr), code }
}

const MAPPED_BITS = 96

/** True for an address of ::ffff:0:0/96 (RFC 4291 section 2.5.5.2). */
export function isMapped(address: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (address[i] !== 0) return false
  return address[10] === 0xff && address[11] === 0xff
}

function foldMappedCidr(cidr: Cidr): Cidr {
  if (cidr.family === 1 || cidr.bits < MAPPED_BITS || !isMapped(cidr.bytes)) return cidr
  return { family: 1, bytes: cidr.bytes.slice(12), bits: cidr.bits - MAPPED_BITS }
}

/** Returns the place that the code of a net sets. */
export function placeOf(code: GeoCode): Omit<Location, 'net' | 'asn'> {
  const coordinates = undefined
  if (code.rung === 'continent') {
    return { subdivisions: [], country: '', continent: code.text.slice(4), coordinates }
  }
  const country = code.text.slice(0, 2)
  const subdivisions = code.rung === 'subdivision' ? [code.text] : []
  return { subdivisions, country, continent: continentOf(country), coordinates }
}

/** Nets by prefix, for single lookups: for each aspect, the longest prefix wins. */
export class NetTable {
  /** Longest prefix first. */
  readonly nets: readonly Net[]
  /** Nets by `family:prefix` for each prefix length in use, longest first. */
  readonly #levels: readonly { readonly bits: number; readonly byPrefix: Map<string, Net[]> }[]

  constructor(nets: readonly Net[]) {
    this.nets = nets.toSorted((a, b) => b.cidr.bits - a.cidr.bits)
    const levels = new Map<number, Map<string, Net[]>>()
    for (const net of this.nets) {
      const { family, bytes, bits } = net.cidr
      const byPrefix = levels.get(bits) ?? new Map<string, Net[]>()
      levels.set(bits, byPrefix)
      const key = prefixKey(bytes, family, bits)
      byPrefix.set(key, [...(byPrefix.get(key) ?? []), net])
    }
    this.#levels = [...levels].map(([bits, byPrefix]) => ({ bits, byPrefix }))
  }

  /** Returns `location`, which comes from databases, as changed by the nets that contain `address`. */
  place(address: Uint8Array, family: number, location: Location): Location {
    const codes = new Map<Aspect, GeoCode>()
    for (const { bits, byPrefix } of this.#levels) {
      if (bits > (family === 1 ? 32 : 128)) continue
      for (const { code } of byPrefix.get(prefixKey(address, family, bits)) ?? []) {
        if (!codes.has(aspectOf(code))) codes.set(aspectOf(code), code)
      }
    }
    const place = codes.get('place')
    const asn = codes.get('asn')
    return {
      ...location,
      net: codes.get('net')?.text ?? location.net,
      asn: asn === undefined ? location.asn : Number(asn.text.slice(2)),
      ...(place === undefined ? {} : placeOf(place)),
    }
  }
}

function prefixKey(address: Uint8Array, family: number, bits: number): string {
  const octets = address.subarray(0, bits >> 3)
  const rest = bits & 7
  const last = rest === 0 ? 0 : address[bits >> 3]! & (0xff00 >> rest)
  return `${family}:${octets.join('.')}:${last}`
}
