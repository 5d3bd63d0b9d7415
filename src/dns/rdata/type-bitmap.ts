import { printType, scanType } from '../iana/index.ts'
import type { OctetReader, OctetWriter } from './octets.ts'
import { expected, type RdataPart } from './part.ts'

/** Maximum length of the bitmap of one window: 256 types. */
const WINDOW_OCTETS_MAX = 32

/**
 * The types at a name (RFC 4034 section 4.1.2), up to the end of the rdata:
 *
 *     window u8 | length u8 (1..32) | bitmap, its last octet not zero | next window, higher | …
 *
 * Bit 0 is the highest bit of the first octet; it represents type window * 256.
 */
export const typeBitmap: RdataPart = {
  parse: (input, output) => {
    let previous = -1
    while (input.remaining > 0) {
      const window = input.uint(1)
      const length = input.uint(1)
      if (window <= previous || length < 1 || length > WINDOW_OCTETS_MAX) return false
      const bitmap = input.take(length)
      if (bitmap === undefined || bitmap[length - 1] === 0) return false
      putWindow(window, bitmap, output)
      previous = window
    }
    return true
  },
  print: (input) => typesOf(input).map(printType).join(' '),
  scan: (input, output) => {
    const types = new Set<number>()
    for (const field of input.rest()) {
      const type = field.quoted ? undefined : scanType(field.text)
      if (type === undefined) return expected('a record type', field)
      types.add(type)
    }
    composeTypes(types, output)
    return undefined
  },
}

function typesOf(input: OctetReader): number[] {
  const types: number[] = []
  while (input.remaining > 0) {
    const window = input.uint(1)
    const bitmap = input.take(input.uint(1)) ?? input.rest()
    for (let bit = 0; bit < bitmap.length * 8; bit++) {
      if ((bitmap[bit >> 3]! & (0x80 >> (bit & 7))) !== 0) types.push(window * 256 + bit)
    }
  }
  return types
}

/** Writes the bitmap of a set of types. */
export function composeTypes(types: ReadonlySet<number>, output: OctetWriter): void {
  const sorted = [...types].sort((a, b) => a - b)
  for (let i = 0; i < sorted.length; ) {
    const window = sorted[i]! >> 8
    const bitmap = new Uint8Array(WINDOW_OCTETS_MAX)
    let length = 0
    for (; i < sorted.length && sorted[i]! >> 8 === window; i++) {
      const bit = sorted[i]! & 0xff
      bitmap[bit >> 3]! |= 0x80 >> (bit & 7)
      length = (bit >> 3) + 1
    }
    putWindow(window, bitmap.subarray(0, length), output)
  }
}

function putWindow(window: number, bitmap: Uint8Array, output: OctetWriter): void {
  output.u8(window)
  output.u8(bitmap.length)
  output.put(bitmap)
}
