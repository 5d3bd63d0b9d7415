import { algorithmOfName } from '../dnssec/algorithms.ts'
import { printType, scanType } from '../iana/index.ts'
import { scanTtl } from '../text/ttl.ts'
import { expected, type RdataPart } from './part.ts'

type Width = 1 | 2 | 4

/** Parses a decimal number of 0..`max`; returns undefined for anything else. */
export function scanInteger(text: string, max: number): number | undefined {
  if (!/^\d{1,10}$/.test(text)) return undefined
  const value = Number(text)
  return value <= max ? value : undefined
}

/** An unsigned integer with its own text form. */
function integer(
  octets: Width,
  what: string,
  print: (value: number) => string,
  scan: (text: string) => number | undefined,
): RdataPart {
  return {
    parse: (input, output) => {
      const taken = input.take(octets)
      if (taken === undefined) return false
      output.put(taken)
      return true
    },
    print: (input) => print(input.uint(octets)),
    scan: (input, output) => {
      const field = input.next()
      const value = field === undefined || field.quoted ? undefined : scan(field.text)
      if (value === undefined) return expected(what, field)
      if (octets === 1) output.u8(value)
      else if (octets === 2) output.u16(value)
      else output.u32(value)
      return undefined
    },
  }
}

function decimal(octets: Width, what: string): RdataPart {
  const max = 256 ** octets - 1
  return integer(octets, `${what} (0 to ${max})`, String, (text) => scanInteger(text, max))
}

export const u8 = (what: string): RdataPart => decimal(1, what)
export const u16 = (what: string): RdataPart => decimal(2, what)
export const u32 = (what: string): RdataPart => decimal(4, what)

/** A number of seconds; text may use the units w d h m s, as in `1h30m`. */
export const seconds = (what: string): RdataPart =>
  integer(4, `${what} (seconds, or as in 1h30m)`, String, scanTtl)

/** A record type, by mnemonic. */
export const typeCode: RdataPart = integer(2, 'a record type', printType, scanType)

/** A number that text may write as one of the mnemonics in `valueOfName`; always printed as a number. */
function named(octets: Width, what: string, valueOfName: ReadonlyMap<string, number>): RdataPart {
  const max = 256 ** octets - 1
  const scan = (text: string) => valueOfName.get(text.toUpperCase()) ?? scanInteger(text, max)
  return integer(octets, what, String, scan)
}

/** A DNSSEC algorithm number (RFC 4034 section 2.2). */
export const algorithm: RdataPart = named(1, 'a DNSSEC algorithm', algorithmOfName)

/** The certificate type of CERT (RFC 4398 section 2.1). */
export const certificateType: RdataPart = named(
  2,
  'a certificate type',
  new Map([
    ['PKIX', 1],
    ['SPKI', 2],
    ['PGP', 3],
    ['IPKIX', 4],
    ['ISPKI', 5],
    ['IPGP', 6],
    ['ACPKIX', 7],
    ['IACPKIX', 8],
    ['URI', 253],
    ['OID', 254],
  ]),
)

/** The scheme of DSYNC (RFC 9859 section 6.2). */
export const syncScheme: RdataPart = named(1, 'a scheme', new Map([['NOTIFY', 1]]))

/** An unsigned integer of 64 bits. */
export const u64 = (what: string): RdataPart => ({
  parse: (input, output) => {
    const taken = input.take(8)
    if (taken === undefined) return false
    output.put(taken)
    return true
  },
  print: (input) => {
    const high = BigInt(input.uint(4))
    return String((high << 32n) | BigInt(input.uint(4)))
  },
  scan: (input, output) => {
    const field = input.next()
    const isDecimal = field !== undefined && !field.quoted && /^\d{1,20}$/.test(field.text)
    const value = isDecimal ? BigInt(field.text) : -1n
    if (value < 0n || value >> 64n !== 0n) return expected(`${what} (0 to 2^64 - 1)`, field)
    output.u32(Number(value >> 32n))
    output.u32(Number(value & 0xffffffffn))
    return undefined
  },
})

/** A signature time: YYYYMMDDHHmmSS in UTC, or seconds since the epoch (RFC 4034 section 3.2). */
export const timestamp: RdataPart = integer(4, 'a time as YYYYMMDDHHmmSS', printTime, scanTime)

function printTime(epochSeconds: number): string {
  return new Date(epochSeconds * 1000).toISOString().replace(/[-:T]|\..*$/g, '')
}

function scanTime(text: string): number | undefined {
  const date = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(text)
  if (date === null) return scanInteger(text, 0xffffffff)
  const [year, month, day, hour, minute, second] = date.slice(1).map(Number)
  const epochSeconds = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) / 1000
  if (epochSeconds < 0 || epochSeconds > 0xffffffff) return undefined
  // Date.UTC converts January 32 to February 1: an invalid date prints differently.
  return printTime(epochSeconds) === text ? epochSeconds : undefined
}
