import { RRType } from '../../src/dns/iana/types.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanGeoCode } from '../../src/geo/code.ts'
import type { Endpoint } from '../../src/records/dns-record.ts'

/* What a name holds in each of its versions: known to the writer and, without asking, to the client. */

export const ZONE = 'z.example.'
/** Clients of place i are in 10.0.i.0/24, and have the code NET-P<i>. */
export const PLACES = 32
/** Versions after which one more place is used in codes. */
const VERSIONS_PER_PLACE = 8
const PLAIN_ADDRESSES = 8
const STEERED_ADDRESSES = 2
const TTL_SECONDS = 60

export const nameOf = (n: number): string => `n${n}.${ZONE}`

/** Places that codes of a version may name: more with time, so that classes change all the while. */
export function placesOf(version: number): number {
  return Math.min(PLACES, 4 + Math.floor(version / VERSIONS_PER_PLACE))
}

/** Some bits that depend on name and version. */
function mix(n: number, version: number): number {
  let x = Math.imul(n + 1, 0x9e3779b1) ^ Math.imul(version + 1, 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d)
  return (x ^ (x >>> 13)) >>> 0
}

/** True if the name does not exist in that version. */
export function isAbsent(n: number, version: number): boolean {
  return version === 0 || mix(n, version) % 8 === 0
}

export function isSteered(n: number): boolean {
  return n % 2 === 1
}

/** Places for which that version of a steered name has endpoints of their own. */
export function placesNamed(n: number, version: number): number[] {
  const count = 1 + (mix(n, version + 0x10000) % 3)
  const places = placesOf(version)
  const named = Array.from({ length: count }, (_, i) => mix(n * 4 + i, version) % places)
  return [...new Set(named)]
}

/**
 * An address: what it is one of, and the version, in 24 bits. Plain: one of 8. Steered: one of 2 of a
 * place, or of all other clients.
 */
function addressOf(kind: number, version: number): Uint8Array {
  return Uint8Array.of(kind, version >> 16, version >> 8, version)
}

/** First octets of the addresses of a steered answer. */
const kindOf = (place: number, k: number): number => 2 + place * STEERED_ADDRESSES + k
const DEFAULT_PLACE = PLACES

export function endpointsOf(n: number, version: number): Endpoint[] {
  const shared = {
    owner: scanName(nameOf(n))!,
    type: RRType.A,
    ttlSeconds: TTL_SECONDS,
    setIdentifier: '',
    weight: undefined,
    codes: [],
    isDefault: false,
  }
  if (!isSteered(n)) {
    const rdata = Array.from({ length: PLAIN_ADDRESSES }, (_, k) => addressOf(k, version))
    return [{ ...shared, rdata }]
  }
  const addresses = (place: number): Uint8Array[] =>
    Array.from({ length: STEERED_ADDRESSES }, (_, k) => addressOf(kindOf(place, k), version))
  const coded = placesNamed(n, version).map((place) => ({
    ...shared,
    setIdentifier: `p${place}`,
    weight: 100,
    codes: [scanGeoCode(`NET-P${place}`)!],
    rdata: addresses(place),
  }))
  const others = { ...shared, setIdentifier: 'all', weight: 100, isDefault: true }
  return [...coded, { ...others, rdata: addresses(DEFAULT_PLACE) }]
}

/** What the addresses of an answer say; `fault`: why they are of no version. */
export interface Read {
  readonly fault: string
  readonly version: number
  /** That the answer was made for; -1 = for all other clients, or not steered. */
  readonly place: number
}

/** Reads the addresses of an answer for name `n`, 4 octets each, in any order. */
export function readAnswer(n: number, addresses: readonly Uint8Array[]): Read {
  const versions = addresses.map(([, a, b, c]) => (a! << 16) | (b! << 8) | c!)
  const kinds = addresses.map(([kind]) => kind!).sort((a, b) => a - b)
  const version = versions[0]!
  const place = isSteered(n) ? (kinds[0]! - 2) / STEERED_ADDRESSES : 0
  const want = isSteered(n)
    ? Array.from({ length: STEERED_ADDRESSES }, (_, k) => kindOf(place, k))
    : Array.from({ length: PLAIN_ADDRESSES }, (_, k) => k)
  const read = { version, place: !isSteered(n) || place === DEFAULT_PLACE ? -1 : place }
  if (versions.some((other) => other !== version)) return { ...read, fault: 'versions are mixed' }
  if (kinds.join() !== want.join()) return { ...read, fault: `addresses are not of one set` }
  if (isAbsent(n, version)) return { ...read, fault: 'the version has no such name' }
  return { ...read, fault: '' }
}
