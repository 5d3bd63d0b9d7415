/**
 * Rdata as octets and as text. Every type is a list of parts (layouts.ts); the scanner, the printer
 * and the parser here iterate over that list and contain nothing specific to a type.
 */
import { layoutOf } from './layouts.ts'
import { OctetReader, OctetWriter } from './octets.ts'
import { FieldReader, RdataError, type RdataField } from './part.ts'
import { printUnknown, scanUnknown } from './unknown.ts'

export { NameLayout, rdataNameLayout } from './name-layout.ts'
export { RdataError, type RdataField } from './part.ts'
export { splitFields } from './split.ts'

/** Maximum of octets that RDLENGTH can express. */
const RDATA_OCTETS_MAX = 65535

/**
 * Parses rdata from the fields of its text; completes relative names with `origin`. Any type may be
 * written as `\# length hex` (RFC 3597 section 5). The result is uncompressed wire form.
 */
export function scanRdata(
  type: number,
  fields: readonly RdataField[],
  origin: Uint8Array,
): Uint8Array | RdataError {
  const layout = layoutOf(type)
  if (isUnknownForm(fields)) return scanUnknownForm(type, fields)
  if (layout === undefined) {
    return new RdataError('this type has no text form of its own; write it as \\# LENGTH HEX')
  }
  const input = new FieldReader(fields, origin)
  const output = new OctetWriter()
  for (const part of layout.parts) {
    const complaint = part.scan(input, output)
    if (complaint !== undefined) return new RdataError(complaint)
  }
  if (input.remaining > 0) {
    return new RdataError(
      `unexpected ${JSON.stringify(input.next()!.text.slice(0, 80))} at the end`,
    )
  }
  if (output.length > RDATA_OCTETS_MAX) return new RdataError('rdata is longer than 65535 octets')
  const rdata = output.octets()
  const complaint = layout.check?.(rdata)
  return complaint === undefined ? rdata : new RdataError(complaint)
}

function isUnknownForm(fields: readonly RdataField[]): boolean {
  return fields[0]?.text === '\\#' && !fields[0].quoted
}

function scanUnknownForm(type: number, fields: readonly RdataField[]): Uint8Array | RdataError {
  const rdata = scanUnknown(fields)
  if (rdata instanceof RdataError || isWellFormed(type, rdata)) return rdata
  return new RdataError('these octets are not well-formed rdata of this type')
}

/** True if `rdata` equals the result of `parseRdata` for it: valid, complete and uncompressed. */
export function isWellFormed(type: number, rdata: Uint8Array): boolean {
  const parsed = parseRdata(type, rdata, 0, rdata.length)
  return parsed !== undefined && Buffer.compare(parsed, rdata) === 0
}

/**
 * Returns the text of uncompressed rdata, on one line, with absolute names. Returns
 * `\# length hex` if the type is unknown, the rdata is malformed, or `scanRdata` would reject its
 * own text form.
 */
export function printRdata(type: number, rdata: Uint8Array): string {
  const layout = layoutOf(type)
  if (layout === undefined || !isWellFormed(type, rdata)) return printUnknown(rdata)
  if (layout.check?.(rdata) !== undefined) return printUnknown(rdata)
  const input = new OctetReader(rdata, 0, rdata.length)
  const texts = layout.parts.map((part) => part.print(input))
  return texts.filter((text) => text !== '').join(' ')
}

/**
 * Returns the rdata of `octets` octets at `offset` of a packet, uncompressed, possibly as a view of
 * the packet; undefined if it is malformed. Names may be compressed in the types for which RFC 3597
 * section 4 allows it.
 */
export function parseRdata(
  type: number,
  packet: Uint8Array,
  offset: number,
  octets: number,
): Uint8Array | undefined {
  const end = offset + octets
  if (octets > RDATA_OCTETS_MAX || end > packet.length) return undefined
  if (layoutOf(type) === undefined) return packet.subarray(offset, end)
  const isWhole = readRdata(type, new OctetReader(packet, offset, end), scratch)
  return isWhole ? scratch.octetsOf(packet, offset) : undefined
}

/**
 * Writes the rest of `input`, the rdata of a record in a packet, uncompressed to `output`, from its start. Returns
 * false if it is malformed. Names may be compressed as for `parseRdata`.
 */
export function readRdata(type: number, input: OctetReader, output: OctetWriter): boolean {
  output.cutTo(0)
  const layout = layoutOf(type)
  if (layout === undefined) output.put(input.rest())
  else for (const part of layout.parts) if (!part.parse(input, output)) return false
  return input.remaining === 0 && output.length <= RDATA_OCTETS_MAX
}

/** Kept, so that parsing a record allocates nothing but its rdata. */
const scratch = new OctetWriter()
