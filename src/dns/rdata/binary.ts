import { expected, type RdataPart } from './part.ts'

/** Returns the octets of pairs of hexadecimal digits; undefined for anything else. */
export function scanHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || /[^0-9a-fA-F]/.test(text)) return undefined
  return new Uint8Array(Buffer.from(text, 'hex'))
}

/** Returns the octets of padded base64 (RFC 4648 section 4); undefined for anything else. */
export function scanBase64(text: string): Uint8Array | undefined {
  const octets = Buffer.from(text, 'base64')
  // Node skips invalid characters: the text was base64 only if encoding the result yields the same
  // text.
  return octets.toString('base64') === text ? new Uint8Array(octets) : undefined
}

const BASE32HEX = '0123456789ABCDEFGHIJKLMNOPQRSTUV'

/**
 * Returns the octets of base32 with the extended hex alphabet, without padding (RFC 4648 section 7,
 * RFC 5155 section 3.3).
 */
function scanBase32Hex(text: string): Uint8Array | undefined {
  const octets: number[] = []
  let bits = 0
  let buffer = 0
  for (const character of text.toUpperCase()) {
    const value = BASE32HEX.indexOf(character)
    if (value < 0) return undefined
    buffer = ((buffer << 5) | value) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    octets.push((buffer >> bits) & 0xff)
  }
  const result = new Uint8Array(octets)
  // Left-over bits must be zero and fewer than a digit has.
  return printBase32Hex(result) === text.toUpperCase() ? result : undefined
}

function printBase32Hex(octets: Uint8Array): string {
  let text = ''
  let bits = 0
  let buffer = 0
  for (const octet of octets) {
    buffer = ((buffer << 8) | octet) & 0x1fff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += BASE32HEX[(buffer >> bits) & 31]
    }
  }
  return bits === 0 ? text : text + BASE32HEX[(buffer << (5 - bits)) & 31]
}

/** All octets up to the end of the rdata, written in one or several pieces. */
function toEnd(
  what: string,
  minOctets: number,
  print: (octets: Uint8Array) => string,
  scan: (text: string) => Uint8Array | undefined,
): RdataPart {
  return {
    parse: (input, output) => {
      if (input.remaining < minOctets) return false
      output.put(input.rest())
      return true
    },
    print: (input) => print(input.rest()),
    scan: (input, output) => {
      const first = input.peek()
      const octets = scan(
        input
          .rest()
          .map((field) => field.text)
          .join(''),
      )
      if (octets === undefined || octets.length < minOctets) return expected(what, first)
      output.put(octets)
      return undefined
    },
  }
}

export function hexToEnd(what: string): RdataPart {
  return toEnd(
    `${what} in hexadecimal`,
    1,
    (octets) => Buffer.from(octets).toString('hex').toUpperCase(),
    scanHex,
  )
}

/** `minOctets` is 0 if an empty value is valid (KEY without a key). */
export function base64ToEnd(what: string, minOctets: 0 | 1 = 1): RdataPart {
  return toEnd(
    `${what} in base64`,
    minOctets,
    (octets) => Buffer.from(octets).toString('base64'),
    scanBase64,
  )
}

/** The same as `base64ToEnd`, but an empty value is written as `-`. */
export function optionalBase64(what: string): RdataPart {
  return toEnd(
    `${what} in base64, or -`,
    0,
    (octets) => (octets.length === 0 ? '-' : Buffer.from(octets).toString('base64')),
    (text) => (text === '-' ? new Uint8Array(0) : text === '' ? undefined : scanBase64(text)),
  )
}

/** A length and octets, written as one field. */
function counted(
  what: string,
  minOctets: 0 | 1,
  print: (octets: Uint8Array) => string,
  scan: (text: string) => Uint8Array | undefined,
): RdataPart {
  return {
    parse: (input, output) => {
      const length = input.uint(1)
      const octets = length < minOctets ? undefined : input.take(length)
      if (octets === undefined) return false
      output.u8(length)
      output.put(octets)
      return true
    },
    print: (input) => print(input.take(input.uint(1)) ?? new Uint8Array(0)),
    scan: (input, output) => {
      const field = input.next()
      const octets = field === undefined || field.quoted ? undefined : scan(field.text)
      const fits = octets !== undefined && octets.length >= minOctets && octets.length <= 255
      if (!fits) return expected(what, field)
      output.u8(octets.length)
      output.put(octets)
      return undefined
    },
  }
}

/** NSEC3's salt: hexadecimal, or `-` for none. */
export const salt: RdataPart = counted(
  'a salt in hexadecimal, or -',
  0,
  (octets) => (octets.length === 0 ? '-' : Buffer.from(octets).toString('hex').toUpperCase()),
  (text) => (text === '-' ? new Uint8Array(0) : text === '' ? undefined : scanHex(text)),
)

/** NSEC3's next hashed owner name. */
export const hashedOwner: RdataPart = counted(
  'a hash in base32hex',
  1,
  printBase32Hex,
  scanBase32Hex,
)
