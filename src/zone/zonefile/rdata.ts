import { printType, RRType } from '../../dns/iana/index.ts'
import { NAME_OCTETS_MAX } from '../../dns/name/name.ts'
import { RdataError, type RdataField, scanRdata } from '../../dns/rdata/index.ts'
import type { ZoneLexer } from './lexer.ts'
import { scanNameOctets } from './owner.ts'
import type { ScannedRecord } from './sink.ts'

const DOT = 0x2e

/**
 * Turns the fields behind a record's type into rdata. The types that fill most zones are read in
 * place; all others, and whatever the short way refuses, go through `dns/rdata`, which knows every
 * type and says what is wrong.
 */
export class RdataScanner {
  readonly #short = new Uint8Array(NAME_OCTETS_MAX)

  /** Sets `record.rdata`; returns '' or a complaint. `field`: the first of the rdata. */
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

  /** Octets written to `#short`; 0 or less if this is not the short way's. */
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

/** A dotted quad, decimal, without leading zeros: 4, or 0 if it is none. */
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
