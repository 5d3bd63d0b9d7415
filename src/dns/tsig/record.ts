import { RRClass, RRType } from '../iana/index.ts'
import { lowerName } from '../name/name.ts'
import { parseName } from '../name/parse-name.ts'
import { OctetReader, OctetWriter } from '../rdata/octets.ts'

/** Type, class, TTL and rdata length of a record, which follow its owner. */
const RR_FIXED_OCTETS = 10
/** Time, fudge, MAC size, original ID, error and length of other data. */
const RDATA_FIXED_OCTETS = 16
const HEADER_OCTETS = 12
/** Offset of the count of additional records in the header. */
const ADDITIONAL_COUNT = 10

/** The TSIG record of a message (RFC 8945 section 4.2). */
export interface TsigRecord {
  /** Lower-case wire forms. */
  readonly keyName: Uint8Array
  readonly algorithmName: Uint8Array
  /** Seconds since the epoch, 48 bits. */
  readonly timeSeconds: number
  readonly fudgeSeconds: number
  readonly mac: Uint8Array
  readonly originalId: number
  /** A TSIG error: 0, or BADSIG, BADKEY, BADTIME, BADTRUNC. */
  readonly error: number
  readonly other: Uint8Array
}

/** Parses the TSIG record whose owner is at `offset`; returns undefined if it is another record or malformed. */
export function parseTsig(
  packet: Uint8Array,
  offset: number,
  octets: number,
): TsigRecord | undefined {
  const owner = parseName(packet, offset, octets)
  if (owner === undefined) return undefined
  const input = new OctetReader(packet, owner.end, octets)
  const type = input.uint(2)
  const rrclass = input.uint(2)
  const ttl = input.uint(4)
  const rdataOctets = input.uint(2)
  if (type !== RRType.TSIG || rrclass !== RRClass.ANY || ttl !== 0) return undefined
  if (rdataOctets < 0 || rdataOctets > input.remaining) return undefined
  const algorithm = parseName(packet, input.at, input.at + rdataOctets)
  if (algorithm === undefined || algorithm.isCompressed) return undefined
  const rdata = new OctetReader(packet, algorithm.end, input.at + rdataOctets)
  const high = rdata.uint(2)
  const low = rdata.uint(4)
  const fudgeSeconds = rdata.uint(2)
  const mac = takeCounted(rdata)
  const originalId = rdata.uint(2)
  const error = rdata.uint(2)
  const other = takeCounted(rdata)
  if (mac === undefined || other === undefined || rdata.remaining > 0) return undefined
  return {
    keyName: lowerName(owner.name),
    algorithmName: lowerName(algorithm.name),
    timeSeconds: high * 2 ** 32 + low,
    fudgeSeconds,
    mac: new Uint8Array(mac),
    originalId,
    error,
    other: new Uint8Array(other),
  }
}

function takeCounted(input: OctetReader): Uint8Array | undefined {
  const octets = input.uint(2)
  return octets < 0 ? undefined : input.take(octets)
}

/** Returns the octets of a TSIG record with a MAC and other data of the given lengths. */
export function tsigOctets(
  keyName: Uint8Array,
  algorithmName: Uint8Array,
  macOctets: number,
  otherOctets: number,
): number {
  const names = keyName.length + algorithmName.length
  return names + RR_FIXED_OCTETS + RDATA_FIXED_OCTETS + macOctets + otherOctets
}

/**
 * Appends `tsig` after the `octets` octets of `message`, which must have space for it, and counts
 * it in the header. Returns the new length.
 */
export function appendTsig(message: Uint8Array, octets: number, tsig: TsigRecord): number {
  const { keyName, algorithmName, mac, other } = tsig
  const output = new OctetWriter()
  output.put(keyName)
  output.u16(RRType.TSIG)
  output.u16(RRClass.ANY)
  output.u32(0)
  output.u16(algorithmName.length + RDATA_FIXED_OCTETS + mac.length + other.length)
  output.put(algorithmName)
  putTime(output, tsig.timeSeconds)
  output.u16(tsig.fudgeSeconds)
  output.u16(mac.length)
  output.put(mac)
  output.u16(tsig.originalId)
  output.u16(tsig.error)
  output.u16(other.length)
  output.put(other)
  message.set(output.octets(), octets)
  addToCount(message, 1)
  return octets + output.length
}

/** Writes a time of 48 bits. */
export function putTime(output: OctetWriter, timeSeconds: number): void {
  output.u16(Math.floor(timeSeconds / 2 ** 32))
  output.u32(timeSeconds >>> 0)
}

/**
 * Returns the message as it was before it was signed: the octets before the TSIG record at
 * `offset`, with the signer's ID and without the TSIG record in the count (RFC 8945 section 4.3.2).
 */
export function unsignedMessage(
  packet: Uint8Array,
  offset: number,
  originalId: number,
): Uint8Array {
  // Not `slice`: on a Buffer it does not copy.
  const message = new Uint8Array(packet.subarray(0, offset))
  message[0] = originalId >> 8
  message[1] = originalId & 0xff
  addToCount(message, -1)
  return message
}

function addToCount(message: Uint8Array, change: number): void {
  const count = ((message[ADDITIONAL_COUNT]! << 8) | message[ADDITIONAL_COUNT + 1]!) + change
  message[ADDITIONAL_COUNT] = count >> 8
  message[ADDITIONAL_COUNT + 1] = count & 0xff
}

/**
 * Returns the offset of the TSIG record of a whole message; 0 = none; -1 = the message is
 * malformed, or the record is not the last of the additional section (RFC 8945 section 5.2).
 */
export function findTsig(packet: Uint8Array, octets: number): number {
  if (octets < HEADER_OCTETS) return -1
  const input = new OctetReader(packet, 4, octets)
  const questions = input.uint(2)
  const others = input.uint(2) + input.uint(2)
  const total = others + input.uint(2)
  let at = HEADER_OCTETS
  for (let i = 0; i < questions; i++) {
    at = skipName(packet, at, octets) + 4
    if (at < HEADER_OCTETS + 4 || at > octets) return -1
  }
  for (let i = 0; i < total; i++) {
    const owner = at
    at = skipName(packet, at, octets)
    if (at === -1 || at + RR_FIXED_OCTETS > octets) return -1
    const type = (packet[at]! << 8) | packet[at + 1]!
    at += RR_FIXED_OCTETS + ((packet[at + 8]! << 8) | packet[at + 9]!)
    if (at > octets) return -1
    if (type === RRType.TSIG) return i === total - 1 && i >= others ? owner : -1
  }
  return 0
}

/** Returns the offset behind the name at `start`, or -1. A pointer ends a name and is not followed. */
function skipName(packet: Uint8Array, start: number, octets: number): number {
  for (let at = start; at < octets; ) {
    const length = packet[at]!
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    if (length > 63) return -1
    at += length + 1
  }
  return -1
}
