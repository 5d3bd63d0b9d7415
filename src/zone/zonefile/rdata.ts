import { printType, RRType } from '../../dns/iana/index.ts'
import { NAME_OCTETS_MAX } from '../../dns/name/name.ts'
import { RdataError, type RdataField, scanRdata } from '../../dns/rdata/index.ts'
import type { ZoneLexer } from './lexer.ts'
import { scanNameOctets } from './owner.ts'
import type { ScannedRecord } from './sink.ts'

const DOT = 0x2e

/**
 * Converts the fields after a record's type to rdata. Parses the types that fill most zones in
 * place. All others, and fields that the in-place parser rejects, go through `dns/rdata`, which
 * supports every type and reports errors.
 */
export class RdataScanner {
  readonly #short = new Uint8Array(NAME_OCTETS_MAX)

  /** Sets `record.rdata`; returns '' or an error message. `field`: the first field of the rdata. */
  scan(record: ScannedRecord, lexer: ZoneLexer, field: number, origin: Uint8Array): string {
    const octets = this.#scanShort(record.type, lexer, field, origin)
    if (octets > 0) {
      record.rdata = this.#short
      record.rdataOctets = octets
      return ''
    }
    const fields: RdataField[] = []
    for (let i = field; i < lexer.count; i++) {
      fields.push({ text: lexer.text(i), quoted: lexer.quoted[i] === 1 })
    }
    const rdata = scanRdata(record.type, fields, origin)
    if (rdata instanceof RdataError) return `${printType(record.type)}: ${rdata.message}`
    record.rdata = rdata
    record.rdataOctets = rdata.length
    return ''
  }

  /** Returns the octets written to `#short`; 0 or less if `dns/rdata` must parse the fields. */
  #scanShort(type: number, lexer: ZoneLexer, field: number, origin: Uint8Array): number {
    if (lexer.count !== field + 1 || lexer.quoted[field] === 1) return 0
    const start = lexer.start[field]!
    const end = lexer.end[field]!
    switch (type) {
      case RRType.A:
        return scanQuad(lexer.input, start, end, this.#short)
      case RRType.NS:
      case RRType.CNAME:
      case RRType.PTR:
      case RRType.DNAME:
        return scanNameOctets(lexer.input, start, end, origin, this.#short)
      default:
        return 0
    }
  }
}

/** Parses a dotted quad, decimal, without leading zeros. Returns 4, or 0 if it is invalid. */
function scanQuad(input: Uint8Array, start: number, end: number, out: Uint8Array): number {
  let octet = 0
  let value = 0
  let digits = 0
  for (let i = start; i < end; i++) {
    const c = input[i]!
    if (c === DOT) {
      if (digits === 0 || octet === 3) return 0
      out[octet++] = value
      value = 0
      digits = 0
      continue
    }
    if (c < 0x30 || c > 0x39 || (digits > 0 && value === 0)) return 0
    value = value * 10 + (c - 0x30)
    digits++
    if (value > 255) return 0
  }
  if (digits === 0 || octet !== 3) return 0
  out[3] = value
  return 4
}
