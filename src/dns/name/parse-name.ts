import { NAME_OCTETS_MAX } from './name.ts'

/** Reads names from packets into memory of its own: parsing allocates nothing. */
export class NameParser {
  /** The last name: uncompressed wire form in 0..octets-1, case kept. */
  readonly name: Uint8Array = new Uint8Array(NAME_OCTETS_MAX)
  octets = 0
  /** Offset behind the name in the packet; if the name has a pointer, behind the first pointer. */
  end = 0
  /** True if a pointer was followed. */
  isCompressed = false

  /**
   * Parses the name at `offset`; follows compression pointers (RFC 1035 section 4.1.4). A label or
   * pointer at `offset` itself must end at or before `limit`. A pointer must lead to before the start
   * of the labels being read, so that every jump goes back and a loop is impossible. Returns
   * false for anything else.
   */
  parse(packet: Uint8Array, offset: number, limit: number): boolean {
    const { name } = this
    let octets = 0
    let at = offset
    let runStart = offset
    let runLimit = Math.min(limit, packet.length)
    let end = -1
    while (at < runLimit) {
      const length = packet[at]!
      if (length >= 0xc0) {
        if (at + 2 > runLimit) return false
        const target = ((length & 0x3f) << 8) | packet[at + 1]!
        if (target >= runStart) return false
        if (end < 0) end = at + 2
        runLimit = runStart
        runStart = target
        at = target
        continue
      }
      const next = at + 1 + length
      if (length > 63 || next > runLimit || octets + 1 + length > NAME_OCTETS_MAX) return false
      while (at < next) name[octets++] = packet[at++]!
      if (length === 0) {
        this.octets = octets
        this.isCompressed = end >= 0
        this.end = end >= 0 ? end : at
        return true
      }
    }
    return false
  }
}

/** A name read from a packet. */
interface ParsedName {
  /** Uncompressed wire form, case kept. */
  readonly name: Uint8Array
  /** As in `NameParser`. */
  readonly end: number
  readonly isCompressed: boolean
}

/** Kept, so that parsing allocates nothing but the name. */
const parser = new NameParser()

/** As `NameParser.parse`; returns a copy of the name, undefined if it is malformed. */
export function parseName(
  packet: Uint8Array,
  offset: number,
  limit: number,
): ParsedName | undefined {
  if (!parser.parse(packet, offset, limit)) return undefined
  const { name, octets, end, isCompressed } = parser
  return { name: name.slice(0, octets), end, isCompressed }
}
