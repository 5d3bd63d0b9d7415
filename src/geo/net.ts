import { assert } from '../base/assert.ts'
import { type Cidr, scanCidr } from '../dns/text/address.ts'
import { type GeoCode, scanGeoCode } from './code.ts'
import { geoCodeHint } from './code-hint.ts'
import { continentOf } from './countries.ts'
import type { Location } from './location.ts'
import { type Point, scanPoint } from './point.ts'

/** What the operator sets for a prefix: `net CIDR VALUE...`. */
export interface Net {
  readonly cidr: Cidr
  /** At most one for each aspect. */
  readonly codes: readonly GeoCode[]
  /** Coordinates of the clients; undefined = not set. */
  readonly point: Point | undefined
}

/**
 * The aspect of a location that a code sets. Wider nets and the databases supply the other aspects. A code of a place
 * replaces the whole place, with its coordinates. Otherwise an address moved to Canada would keep Ireland's continent.
 */
export type Aspect = 'net' | 'asn' | 'place'

export function aspectOf(code: GeoCode): Aspect {
  return code.rung === 'net' || code.rung === 'asn' ? code.rung : 'place'
}

/** Parses `CIDR VALUE...`; returns an error message as a string. IPv4-mapped prefixes become IPv4 prefixes. */
export function scanNet(cidrText: string, ...values: readonly string[]): Net | string {
  const cidr = scanCidr(cidrText)
  if (cidr === undefined) return `invalid network '${cidrText}': write it as 192.0.2.0/24`
  let net: Net = { cidr: foldMappedCidr(cidr), codes: [], point: undefined }
  for (const value of values) {
    const part = scanValue(value)
    if (typeof part === 'string') return part
    const joined = joinNets(net, { ...part, cidr: net.cidr })
    if (typeof joined === 'string') return `net ${cidrText} ${joined}`
    net = joined
  }
  return net
}

function scanValue(text: string): Omit<Net, 'cidr'> | string {
  if (text.includes(',')) {
    const point = scanPoint(text)
    if (point !== undefined) return { codes: [], point }
    return `invalid coordinates '${text}': write latitude and longitude in degrees, as 52.52,13.40`
  }
  const code = scanGeoCode(text)
  if (code !== undefined && code.rung !== 'default') return { codes: [code], point: undefined }
  return `invalid geo code '${text}': use a country (IE), a subdivision (US-CA), a continent (GEO-EU), an ASN (AS64500) or a label of your own (NET-OFFICE); or coordinates (52.52,13.40)${geoCodeHint(text)}`
}

/** Joins what two lines set for one prefix; returns the end of an error message as a string. */
export function joinNets(a: Net, b: Net): Net | string {
  const codes = [...a.codes]
  for (const code of b.codes) {
    const rival = codes.find((other) => aspectOf(other) === aspectOf(code))
    if (rival === undefined) codes.push(code)
    else if (rival.text !== code.text)
      return `is already ${rival.text}: remove ${rival.text} or ${code.text}`
  }
  const [known, point] = [a.point, b.point ?? a.point]
  if (known !== undefined && known.text !== point?.text) {
    return `is already at ${known.text}: remove ${known.text} or ${point?.text}`
  }
  return { cidr: a.cidr, codes, point }
}

/** Returns the values of a net, as they are written. */
export function printNetValues({ codes, point }: Net): string[] {
  return [...codes.map(({ text }) => text), ...(point === undefined ? [] : [point.text])]
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
  const isSubdivision = code.rung === 'subdivision'
  assert(isSubdivision || code.rung === 'country', 'the code is one of a place')
  const country = code.text.slice(0, 2)
  const subdivisions = isSubdivision ? [code.text] : []
  return { subdivisions, country, continent: continentOf(country), coordinates }
}

/** Nets by prefix, for single lookups. Each prefix has one net. */
export class NetTable {
  /** Longest prefix first. */
  readonly nets: readonly Net[]
  /** Nets by `family:prefix` for each prefix length in use, shortest first. */
  readonly #levels: readonly { readonly bits: number; readonly byPrefix: Map<string, Net> }[]

  constructor(nets: readonly Net[]) {
    this.nets = nets.toSorted((a, b) => b.cidr.bits - a.cidr.bits)
    const levels = new Map<number, Map<string, Net>>()
    for (const net of this.nets.toReversed()) {
      const { family, bytes, bits } = net.cidr
      const byPrefix = levels.get(bits) ?? new Map<string, Net>()
      levels.set(bits, byPrefix)
      byPrefix.set(prefixKey(bytes, family, bits), net)
    }
    this.#levels = [...levels].map(([bits, byPrefix]) => ({ bits, byPrefix }))
  }

  /** Returns `location`, which comes from databases, as changed by the nets that contain `address`. */
  place(address: Uint8Array, family: number, location: Location): Location {
    let placed = location
    for (const { bits, byPrefix } of this.#levels) {
      if (bits > (family === 1 ? 32 : 128)) continue
      const net = byPrefix.get(prefixKey(address, family, bits))
      if (net !== undefined) placed = placeIn(net, placed)
    }
    return placed
  }
}

/** Returns a location as changed by one net. */
function placeIn({ codes, point }: Net, location: Location): Location {
  let placed = location
  for (const code of codes) {
    const aspect = aspectOf(code)
    if (aspect === 'net') placed = { ...placed, net: code.text }
    else if (aspect === 'asn') placed = { ...placed, asn: Number(code.text.slice(2)) }
    else placed = { ...placed, ...placeOf(code) }
  }
  if (point === undefined) return placed
  const { latitude, longitude } = point
  return { ...placed, coordinates: { latitude, longitude } }
}

function prefixKey(address: Uint8Array, family: number, bits: number): string {
  const octets = address.subarray(0, bits >> 3)
  const rest = bits & 7
  const last = rest === 0 ? 0 : address[bits >> 3]! & (0xff00 >> rest)
  return `${family}:${octets.join('.')}:${last}`
}
