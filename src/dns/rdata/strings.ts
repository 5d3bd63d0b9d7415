import { scanEscape } from '../name/name.ts'
import { OctetWriter } from './octets.ts'
import { expected, type RdataField, type RdataPart } from './part.ts'

const STRING_OCTETS_MAX = 255
const TOO_LONG = 'a string holds at most 255 octets; split it into several'

/** Returns the octets of text: UTF-8, with `\X` and `\DDD` resolved; undefined if an escape is invalid. */
export function scanText(text: string): Uint8Array | undefined {
  const input = Buffer.from(text, 'utf8')
  const output = new OctetWriter()
  for (let i = 0; i < input.length; ) {
    let octet = input[i]!
    i += 1
    if (octet === 0x5c) {
      const escaped = scanEscape(input, i)
      if (escaped < 0) return undefined
      const isDecimal = input[i]! >= 0x30 && input[i]! <= 0x39
      i += isDecimal ? 3 : 1
      octet = escaped
    }
    output.u8(octet)
  }
  return output.octets()
}

/** Returns octets as text to put between quotes. */
export function printText(octets: Uint8Array): string {
  let text = ''
  for (const octet of octets) {
    if (octet < 0x20 || octet >= 0x7f) text += `\\${String(octet).padStart(3, '0')}`
    else if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`
    else text += String.fromCharCode(octet)
  }
  return text
}

function printQuoted(octets: Uint8Array): string {
  return `"${printText(octets)}"`
}

function takeString(input: { take(n: number): Uint8Array | undefined; uint(n: 1): number }) {
  const octets = input.uint(1)
  return octets < 0 ? undefined : input.take(octets)
}

function putString(field: RdataField | undefined, what: string, output: OctetWriter) {
  const octets = field === undefined ? undefined : scanText(field.text)
  if (octets === undefined) return expected(what, field)
  if (octets.length > STRING_OCTETS_MAX) return TOO_LONG
  output.u8(octets.length)
  output.put(octets)
  return undefined
}

/** One character-string (RFC 1035 section 3.3). */
export function characterString(what: string): RdataPart {
  return {
    parse: (input, output) => {
      const octets = takeString(input)
      if (octets === undefined) return false
      output.u8(octets.length)
      output.put(octets)
      return true
    },
    print: (input) => printQuoted(takeString(input) ?? new Uint8Array(0)),
    scan: (input, output) => putString(input.next(), what, output),
  }
}

/** A character-string that may be absent at the end. */
export function optionalString(what: string): RdataPart {
  const { parse, print, scan } = characterString(what)
  return {
    parse: (input, output) => input.remaining === 0 || parse(input, output),
    print: (input) => (input.remaining === 0 ? '' : print(input)),
    scan: (input, output) => (input.remaining === 0 ? undefined : scan(input, output)),
  }
}

const someString = characterString('a string')

/** One or more character-strings, up to the end of the rdata. */
export const characterStrings: RdataPart = {
  parse: (input, output) => {
    if (input.remaining === 0) return false
    while (input.remaining > 0) if (!someString.parse(input, output)) return false
    return true
  },
  print: (input) => {
    const strings: string[] = []
    while (input.remaining > 0) strings.push(someString.print(input))
    return strings.join(' ')
  },
  scan: (input, output) => {
    if (input.remaining === 0) return expected('a string', undefined)
    while (input.remaining > 0) {
      const complaint = someString.scan(input, output)
      if (complaint !== undefined) return complaint
    }
    return undefined
  },
}

/** The property tag of CAA: a length, then ASCII letters and digits (RFC 8659 section 4.1). */
export const propertyTag: RdataPart = {
  parse: (input, output) => {
    const octets = takeString(input)
    if (octets === undefined || !isTag(Buffer.from(octets).toString('latin1'))) return false
    output.u8(octets.length)
    output.put(octets)
    return true
  },
  print: (input) => Buffer.from(takeString(input) ?? []).toString('latin1'),
  scan: (input, output) => {
    const field = input.next()
    if (field === undefined || !isTag(field.text)) {
      return expected('a property tag of letters and digits', field)
    }
    return putString(field, 'a property tag', output)
  },
}

function isTag(text: string): boolean {
  return /^[a-zA-Z0-9]{1,255}$/.test(text)
}

/** All octets up to the end of the rdata as one quoted string without a length: CAA values, URI targets. */
export function textToEnd(what: string, minOctets: 0 | 1): RdataPart {
  return {
    parse: (input, output) => {
      if (input.remaining < minOctets) return false
      output.put(input.rest())
      return true
    },
    print: (input) => printQuoted(input.rest()),
    scan: (input, output) => {
      const field = input.next()
      const octets = field === undefined ? undefined : scanText(field.text)
      if (octets === undefined || octets.length < minOctets) return expected(what, field)
      output.put(octets)
      return undefined
    },
  }
}
