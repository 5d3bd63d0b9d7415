import { scanHex } from './binary.ts'
import { scanInteger } from './numbers.ts'
import { expected, RdataError, type RdataField } from './part.ts'

/** Parses `\# length hex…` (RFC 3597 section 5). */
export function scanUnknown(fields: readonly RdataField[]): Uint8Array | RdataError {
  const octets = scanInteger(fields[1]?.text ?? '', 65535)
  if (octets === undefined) return new RdataError(expected('a length (0 to 65535)', fields[1]))
  const hex = fields.slice(2).map((field) => field.text)
  const rdata = scanHex(hex.join(''))
  if (rdata === undefined) return new RdataError('expected pairs of hexadecimal digits')
  if (rdata.length === octets) return rdata
  return new RdataError(`\\# announces ${octets} octets, but ${rdata.length} follow`)
}

export function printUnknown(rdata: Uint8Array): string {
  const hex = Buffer.from(rdata).toString('hex')
  return rdata.length === 0 ? '\\# 0' : `\\# ${rdata.length} ${hex}`
}
