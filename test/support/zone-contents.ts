import { NameBuffer } from '../../src/dns/name/hashed-name.ts'
import * as L from '../../src/zone/image/layout.ts'
import type { ZoneReader } from '../../src/zone/image/reader.ts'
import type { RRsetData, ZoneId } from '../../src/zone/image/types.ts'

/*
 * Converts the content of a zone image to objects. The reader must not refresh during an iteration.
 */

/** One RRset with its owner. */
export interface OwnedRRset extends RRsetData {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
}

/** A zone in one version of an image. */
interface ZoneInfo {
  readonly id: ZoneId
  /** Lower-case wire form. */
  readonly apex: Uint8Array
}

/** Yields all zones of the reader's version, in no particular order. */
export function* listZones(reader: ZoneReader): Generator<ZoneInfo> {
  for (const zone of zoneOffsets(reader)) {
    yield { id: reader.words[zone + L.ZONE_ID]!, apex: apexOf(reader, zone) }
  }
}

/**
 * Yields all RRsets of a zone in the reader's version. RRsets of one owner are adjacent; owners are
 * in no particular order.
 */
export function* listRRsets(reader: ZoneReader, id: ZoneId): Generator<OwnedRRset> {
  const zone = zoneOffsets(reader).find((offset) => reader.words[offset + L.ZONE_ID] === id)
  if (zone === undefined) return
  const apex = apexOf(reader, zone)
  let node = reader.newestNode(zone)
  for (; node !== 0; node = reader.words[node + L.NODE_NEXT]!) {
    const body = reader.visibleBody(node)
    if (body === 0) continue
    const owner = ownerOf(reader, node, apex)
    const count = reader.words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT
    for (let i = 0; i < count; i++) {
      yield { owner, ...rrsetData(reader, reader.words[body + L.BODY_RRSETS + i]!) }
    }
  }
}

/**
 * Returns the RRset of exactly this owner (wire form) and type; undefined if it does not exist.
 * Searches the zone with the longest apex at or above the owner. Ignores zone cuts and wildcards.
 */
export function readRRset(
  reader: ZoneReader,
  owner: Uint8Array,
  type: number,
): RRsetData | undefined {
  const name = new NameBuffer()
  if (!name.set(owner, 0, owner.length)) return undefined
  const zone = reader.matchZone(name, 0)
  if (zone === 0) return undefined
  const body = reader.findBody(zone, name, 0, reader.zoneLabel)
  const rrset = body === 0 ? 0 : reader.findRRset(body, type)
  return rrset === 0 ? undefined : rrsetData(reader, rrset)
}

function zoneOffsets(reader: ZoneReader): number[] {
  const { words, zones, zonesMask } = reader
  const offsets: number[] = []
  for (let slot = 0; slot <= zonesMask; slot++) {
    const newest = words[zones + L.TABLE_SLOTS + slot * L.SLOT_WORDS + 1]!
    const zone = reader.visibleZone(newest)
    if (zone !== 0) offsets.push(zone)
  }
  return offsets
}

function apexOf(reader: ZoneReader, zone: number): Uint8Array {
  const at = (zone + L.ZONE_APEX) * 4
  return reader.bytes.slice(at, at + (reader.words[zone + L.ZONE_APEX_SIZE]! & 0xffff))
}

function ownerOf(reader: ZoneReader, node: number, apex: Uint8Array): Uint8Array {
  const octets = reader.words[node + L.NODE_KEY]! & 0xffff
  const at = (node + L.NODE_NAME) * 4
  const owner = new Uint8Array(octets + apex.length)
  owner.set(reader.bytes.subarray(at, at + octets))
  owner.set(apex, octets)
  return owner
}

function rrsetData(reader: ZoneReader, rrset: number): RRsetData {
  const { words, bytes } = reader
  const head = words[rrset + L.RRSET_HEAD]!
  const steeringCount = words[rrset + L.RRSET_STEERING_COUNT]!
  const steeringAt = reader.steeringStart(rrset)
  const rdata: Uint8Array[] = []
  let at = reader.rdataStart(rrset)
  for (let i = 0; i < (head & 0xffff); i++) {
    const octets = (bytes[at]! << 8) | bytes[at + 1]!
    rdata.push(bytes.slice(at + 2, at + 2 + octets))
    at += 2 + octets
  }
  const whole = { type: head >>> 16, ttlSeconds: words[rrset + L.RRSET_TTL]!, rdata }
  if (steeringCount === 0) return whole
  return { ...whole, steering: words.slice(steeringAt, steeringAt + steeringCount) }
}
