import { assert } from '../base/assert.ts'
import { isAscii, PackedWriter } from '../base/packed-writer.ts'
import { RRType } from '../dns/iana/types.ts'
import { type GeoCode, scanGeoCode } from '../geo/code.ts'
import { scanPoint } from '../geo/point.ts'
import { ALIAS_TYPE, type DnsRecord, type Endpoint } from './dns-record.ts'
import type { HealthCheck, ProbeAt } from './health-check.ts'
import type { RecordSettings } from './settings.ts'

/**
 * A record's content as one string of octets (each character 0..255). Objects for a hundred
 * thousand records would take a gigabyte of memory and time of the garbage collector. A one-byte
 * string takes one byte per character.
 *
 *     createdSeconds u32 | record flags u8 | zone label s8 | rootHost s8 | [settings s16, as JSON]
 *             | endpoint count u16 | endpoints | [health check s16, as JSON]
 *     endpoint: owner s8 | type u16 | ttl u32 | flags u8 | [weight u32]
 *             | [health port u16 | health address s8] | [location s8] | [aliasOf s8] | set identifier s16
 *             | code count u8, codes s8 each | rdata count u16, rdata s16 each
 *
 * s8, s16: length as u8 or u16, then that many octets. Numbers are big endian. Two records are
 * equal if and only if their packed forms are equal.
 */
export type PackedRecord = string

const FLAGS_OFFSET = 4
/** Number of octets before the zone label. */
const PLACE_OFFSET = 5
/** Flags of a record. */
const FLAG_AGGREGATE = 1
const FLAG_WILDCARD_HOST = 2
const FLAG_CHECKED = 4
const FLAG_SETTINGS = 8
const FLAG_HAS_ALIAS = 16
/** Flags of an endpoint. */
const FLAG_WEIGHT = 1
const FLAG_DEFAULT = 2
const FLAG_PROBE_AT = 4
const FLAG_POINT = 8
const FLAG_ALIAS_OF = 16

/** One is enough, because records are packed one at a time. */
const out = new PackedWriter()

export function packRecord(record: DnsRecord): PackedRecord {
  out.begin()
  out.u32(record.createdSeconds)
  const { isAggregate, isWildcardHost, healthCheck, settings } = record
  let flags = (isAggregate ? FLAG_AGGREGATE : 0) | (isWildcardHost ? FLAG_WILDCARD_HOST : 0)
  if (healthCheck !== undefined) flags |= FLAG_CHECKED
  if (settings !== undefined) flags |= FLAG_SETTINGS
  if (record.endpoints.some(({ type }) => type === ALIAS_TYPE)) flags |= FLAG_HAS_ALIAS
  out.u8(flags)
  out.text8(record.zoneLabel)
  out.octets8(record.rootHost)
  if (settings !== undefined) out.utf8(JSON.stringify(settings))
  out.u16(record.endpoints.length)
  for (const endpoint of record.endpoints) putEndpoint(endpoint)
  if (healthCheck !== undefined) out.utf8(JSON.stringify(healthCheck))
  return out.take()
}

/** Returns an endpoint in the form that packed records have; equal endpoints have equal octets. */
export function packEndpoint(endpoint: Endpoint): string {
  out.begin()
  putEndpoint(endpoint)
  return out.take()
}

function putEndpoint(endpoint: Endpoint): void {
  const { weight, probeAt, point, aliasOf } = endpoint
  out.octets8(endpoint.owner)
  out.u16(endpoint.type)
  out.u32(endpoint.ttlSeconds)
  let flags = (weight === undefined ? 0 : FLAG_WEIGHT) | (endpoint.isDefault ? FLAG_DEFAULT : 0)
  if (probeAt !== undefined) flags |= FLAG_PROBE_AT
  if (point !== undefined) flags |= FLAG_POINT
  if (aliasOf !== undefined) flags |= FLAG_ALIAS_OF
  out.u8(flags)
  if (weight !== undefined) out.u32(weight)
  if (probeAt !== undefined) {
    out.u16(probeAt.port)
    out.text8(probeAt.address)
  }
  if (point !== undefined) out.text8(point.text)
  if (aliasOf !== undefined) out.octets8(aliasOf)
  out.utf8(endpoint.setIdentifier)
  out.u8(endpoint.codes.length)
  for (const code of endpoint.codes) out.text8(code.text)
  out.u16(endpoint.rdata.length)
  for (const rdata of endpoint.rdata) out.octets16(rdata)
}

/** A record without its identity. */
export type RecordContent = Omit<DnsRecord, 'namespace' | 'name'>

/**
 * Returns the content of a packed record, without its identity. Consecutive endpoints with the same
 * owner share its octets. `owners`: return only endpoints of these owners, by `lowerNameKey`.
 */
export function unpackRecord(packed: PackedRecord, owners?: ReadonlySet<string>): RecordContent {
  const reader = new PackedReader(packed)
  const createdSeconds = reader.u32()
  const flags = reader.u8()
  const isAggregate = (flags & FLAG_AGGREGATE) !== 0
  const isWildcardHost = (flags & FLAG_WILDCARD_HOST) !== 0
  const zoneLabel = reader.latin1(reader.u8())
  const rootHost = reader.octets(reader.u8())
  const settings = (flags & FLAG_SETTINGS) === 0 ? undefined : takeSettings(reader)
  const endpoints: Endpoint[] = []
  let owner = rootHost
  for (let count = reader.u16(); count > 0; count--) {
    if (owners !== undefined && !owners.has(reader.peekText8())) {
      reader.skipEndpoint()
      continue
    }
    const endpoint = takeEndpoint(reader, owner)
    endpoints.push(endpoint)
    owner = endpoint.owner
  }
  const healthCheck = (flags & FLAG_CHECKED) === 0 ? undefined : takeHealthCheck(reader)
  // Fields are listed by name, because properties after a spread cost a microsecond.
  return {
    createdSeconds,
    isAggregate,
    isWildcardHost,
    zoneLabel,
    rootHost,
    endpoints,
    healthCheck,
    settings,
  }
}

/** True if the record defines a health check. */
export function isChecked(packed: PackedRecord): boolean {
  return (packed.charCodeAt(FLAGS_OFFSET) & FLAG_CHECKED) !== 0
}

/** True if the record has an ALIAS endpoint. */
export function hasAlias(packed: PackedRecord): boolean {
  return (packed.charCodeAt(FLAGS_OFFSET) & FLAG_HAS_ALIAS) !== 0
}

/** Returns the settings of a packed record, without the rest of it; undefined = it has none. */
export function unpackSettings(packed: PackedRecord): RecordSettings | undefined {
  if ((packed.charCodeAt(FLAGS_OFFSET) & FLAG_SETTINGS) === 0) return undefined
  return takeSettings(
    new PackedReader(packed, endOfText8(packed, endOfText8(packed, PLACE_OFFSET))),
  )
}

/** Reads a health check. It was validated before it was packed. */
function takeHealthCheck(reader: PackedReader): HealthCheck {
  return JSON.parse(reader.utf8(reader.u16())) as HealthCheck
}

/** Reads settings. They were validated before they were packed. */
function takeSettings(reader: PackedReader): RecordSettings {
  return JSON.parse(reader.utf8(reader.u16())) as RecordSettings
}

/** The fields that decide the zone of a record, read without the rest of it. */
interface PackedPlace {
  readonly zoneLabel: string
  /** `lowerNameKey` of the root host without its `*.`. */
  readonly rootHostKey: string
  readonly isWildcardHost: boolean
}

export function unpackPlace(packed: PackedRecord): PackedPlace {
  const labelStart = PLACE_OFFSET + 1
  const labelEnd = labelStart + packed.charCodeAt(PLACE_OFFSET)
  const rootHostEnd = endOfText8(packed, labelEnd)
  const rootHostKey = packed.slice(labelEnd + 1, rootHostEnd)
  const isWildcardHost = (packed.charCodeAt(PLACE_OFFSET - 1) & FLAG_WILDCARD_HOST) !== 0
  return { zoneLabel: packed.slice(labelStart, labelEnd), rootHostKey, isWildcardHost }
}

/** Offsets of the endpoints in a packed record. Their content is not read. */
interface PackedEndpoints {
  /** Offset of each endpoint, and the end of the last one. */
  readonly starts: readonly number[]
  /** Offset of the endpoint count, after the fields of the record itself. */
  readonly countAt: number
}

export function locateEndpoints(packed: PackedRecord): PackedEndpoints {
  const countAt = countOffset(packed)
  const count = u16At(packed, countAt)
  const starts = [countAt + 2]
  for (let i = 0; i < count; i++) starts.push(endOfEndpoint(packed, starts[i]!))
  return { starts, countAt }
}

/** `lowerNameKey` of the owner of the first endpoint; undefined = the record has no endpoint. */
export function firstOwnerKey(packed: PackedRecord): string | undefined {
  const countAt = countOffset(packed)
  return u16At(packed, countAt) === 0 ? undefined : ownerKeyAt(packed, countAt + 2)
}

function countOffset(packed: PackedRecord): number {
  const end = endOfText8(packed, endOfText8(packed, PLACE_OFFSET))
  const hasSettings = (packed.charCodeAt(FLAGS_OFFSET) & FLAG_SETTINGS) !== 0
  return hasSettings ? end + 2 + u16At(packed, end) : end
}

/** `createdSeconds` of the record. */
export function packedCreatedSeconds(packed: PackedRecord): number {
  return u16At(packed, 0) * 0x1_0000 + u16At(packed, 2)
}

/** `lowerNameKey` of the owner of the endpoint at that offset. */
export function ownerKeyAt(packed: PackedRecord, start: number): string {
  return packed.slice(start + 1, endOfText8(packed, start))
}

/** The names of a packed record, as `lowerNameKey`. */
interface PackedNames {
  /** Of each endpoint. */
  readonly owners: readonly string[]
  /** Of each CNAME: its target, and the index of its owner. */
  readonly cnames: readonly (readonly [target: string, index: number])[]
}

/** Reads the owners and the targets of CNAMEs, without the rest of the record. */
export function unpackNames(packed: PackedRecord): PackedNames {
  const owners: string[] = []
  const cnames: [string, number][] = []
  const countAt = countOffset(packed)
  let at = countAt + 2
  for (let left = u16At(packed, countAt); left > 0; left--) {
    const index = owners.push(ownerKeyAt(packed, at)) - 1
    const typeAt = endOfText8(packed, at)
    const isCname = u16At(packed, typeAt) === RRType.CNAME
    at = rdataOffset(packed, typeAt)
    let count = u16At(packed, at)
    for (at += 2; count > 0; count--) {
      const end = at + 2 + u16At(packed, at)
      if (isCname) cnames.push([packed.slice(at + 2, end), index])
      at = end
    }
  }
  return { owners, cnames }
}

function endOfEndpoint(packed: PackedRecord, start: number): number {
  let at = rdataOffset(packed, endOfText8(packed, start))
  const targets = u16At(packed, at)
  at += 2
  for (let i = 0; i < targets; i++) at += 2 + u16At(packed, at)
  return at
}

/** Offset of the rdata count of an endpoint. */
function rdataOffset(packed: PackedRecord, typeAt: number): number {
  const flagsAt = typeAt + 6
  const flags = packed.charCodeAt(flagsAt)
  let identifierAt = flagsAt + ((flags & FLAG_WEIGHT) === 0 ? 1 : 5)
  if ((flags & FLAG_PROBE_AT) !== 0) identifierAt = endOfText8(packed, identifierAt + 2)
  if ((flags & FLAG_POINT) !== 0) identifierAt = endOfText8(packed, identifierAt)
  if ((flags & FLAG_ALIAS_OF) !== 0) identifierAt = endOfText8(packed, identifierAt)
  let at = identifierAt + 2 + u16At(packed, identifierAt)
  const codes = packed.charCodeAt(at++)
  for (let i = 0; i < codes; i++) at = endOfText8(packed, at)
  return at
}

function endOfText8(packed: PackedRecord, at: number): number {
  return at + 1 + packed.charCodeAt(at)
}

function u16At(packed: PackedRecord, at: number): number {
  return (packed.charCodeAt(at) << 8) | packed.charCodeAt(at + 1)
}

/** Reads an endpoint. `ownerBefore`: owner of the previous endpoint, or else the root host. */
function takeEndpoint(reader: PackedReader, ownerBefore: Uint8Array): Endpoint {
  const owner = reader.octetsLike(ownerBefore, reader.u8())
  const type = reader.u16()
  const ttlSeconds = reader.u32()
  const flags = reader.u8()
  const weight = (flags & FLAG_WEIGHT) === 0 ? undefined : reader.u32()
  const probeAt = (flags & FLAG_PROBE_AT) === 0 ? undefined : takeProbeAt(reader)
  const point = (flags & FLAG_POINT) === 0 ? undefined : scanPoint(reader.latin1(reader.u8()))
  const aliasOf = (flags & FLAG_ALIAS_OF) === 0 ? undefined : reader.octets(reader.u8())
  const setIdentifier = reader.utf8(reader.u16())
  const codes: GeoCode[] = []
  for (let count = reader.u8(); count > 0; count--) codes.push(codeOf(reader.latin1(reader.u8())))
  const rdata: Uint8Array[] = []
  for (let count = reader.u16(); count > 0; count--) rdata.push(reader.octets(reader.u16()))
  const isDefault = (flags & FLAG_DEFAULT) !== 0
  return {
    owner,
    type,
    ttlSeconds,
    setIdentifier,
    weight,
    codes,
    isDefault,
    point,
    rdata,
    probeAt,
    aliasOf,
  }
}

function takeProbeAt(reader: PackedReader): ProbeAt {
  const port = reader.u16()
  return { port, address: reader.latin1(reader.u8()) }
}

/** Returns the code of a text. Packed codes were validated before. */
function codeOf(text: string): GeoCode {
  const code = scanGeoCode(text)
  assert(code !== undefined, 'a packed geo code is valid')
  return code
}

/** Reads characters as octets, because a buffer for a record of a few hundred octets costs more. */
class PackedReader {
  readonly #packed: PackedRecord
  #at: number

  constructor(packed: PackedRecord, at = 0) {
    this.#packed = packed
    this.#at = at
  }

  u8(): number {
    return this.#packed.charCodeAt(this.#at++)
  }

  u16(): number {
    return (this.u8() << 8) | this.u8()
  }

  u32(): number {
    return this.u16() * 65536 + this.u16()
  }

  octets(count: number): Uint8Array {
    const octets = new Uint8Array(count)
    for (let i = 0; i < count; i++) octets[i] = this.#packed.charCodeAt(this.#at++)
    return octets
  }

  /** Returns a text of form s8 without moving past it. */
  peekText8(): string {
    return ownerKeyAt(this.#packed, this.#at)
  }

  skipEndpoint(): void {
    this.#at = endOfEndpoint(this.#packed, this.#at)
  }

  /** Returns `like` itself if the octets are the same. */
  octetsLike(like: Uint8Array, count: number): Uint8Array {
    let same = 0
    if (like.length === count) {
      while (same < count && this.#packed.charCodeAt(this.#at + same) === like[same]) same++
    }
    if (same < count || like.length !== count) return this.octets(count)
    this.#at += count
    return like
  }

  latin1(count: number): string {
    const at = this.#at
    this.#at += count
    return this.#packed.slice(at, at + count)
  }

  utf8(count: number): string {
    const text = this.latin1(count)
    return isAscii(text) ? text : Buffer.from(text, 'latin1').toString('utf8')
  }
}
