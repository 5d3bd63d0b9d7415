import { NAME_OCTETS_MAX } from './name.ts'

/** Kept, so that parsing allocates nothing but the name. */
const read = new Uint8Array(NAME_OCTETS_MAX)

/** A name read from a packet. */
interface ParsedName {
  /** Uncompressed wire form, case kept. */
  readonly name: Uint8Array
  /** Offset behind the name in the packet; if the name has a pointer, behind the first pointer. */
  readonly end: number
  /** True if a pointer was followed. */
  readonly isCompressed: boolean
}

/**
 * Parses the name at `offset`; follows compression pointers (RFC 1035 section 4.1.4). A label or
 * pointer at `offset` itself must end at or before `limit`. A pointer must lead to before the start
 * of the labels being read, so that every jump goes back and a loop is impossible. Returns
 * undefined for anything else.
 */
export function parseName(
  packet: Uint8Array,
  offset: number,
  limit: number,
): ParsedName | undefined {
  let octets = 0
  let at = offset
  let runStart = offset
  let runLimit = Math.min(limit, packet.length)
  let end = -1
  while (at < runLimit) {
    const length = packet[at]!
    if (length >= 0xc0) {
      if (at + 2 > runLimit) return undefined
      const target = ((length & 0x3f) << 8) | packet[at + 1]!
      if (target >= runStart) return undefined
      if (end < 0) end = at + 2
      runLimit = runStart
      runStart = target
      at = target
      continue
    }
    const next = at + 1 + length
    if (length > 63 || next > runLimit || octets + 1 + length > NAME_OCTETS_MAX) return undefined
    while (at < next) read[octets++] = packet[at++]!
    if (length === 0) {
      const isCompressed = end >= 0
      return { name: read.slice(0, octets), end: isCompressed ? end : at, isCompressed }
    }
  }
  return undefined
}
