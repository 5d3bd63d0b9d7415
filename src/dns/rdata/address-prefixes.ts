import { type AddressFamily, printAddress, scanIPv4, scanIPv6 } from '../text/address.ts'
import { scanInteger } from './numbers.ts'
import { OctetReader } from './octets.ts'
import { expected, type RdataPart } from './part.ts'

const NEGATED = 0x80

function octetsOf(family: number): number {
  return family === 1 ? 4 : family === 2 ? 16 : -1
}

/**
 * The items of APL, up to the end of the rdata (RFC 3123 section 4):
 *
 *     family u16 | prefix bits u8 | negated, 1 bit | length, 7 bits | address without its trailing zero octets
 *
 * Text: `1:192.0.2.0/24 !2:2001:db8::/32`. Other families have no text form: see
 * `checkAddressPrefixes`.
 */
export const addressPrefixes: RdataPart = {
  parse: (input, output) => {
    while (input.remaining > 0) {
      const family = input.uint(2)
      const bits = input.uint(1)
      const flags = input.uint(1)
      const address = flags < 0 ? undefined : input.take(flags & ~NEGATED)
      if (address === undefined) return false
      output.u16(family)
      output.u8(bits)
      output.u8(flags)
      output.put(address)
    }
    return true
  },
  print: (input) => {
    const items: string[] = []
    while (input.remaining > 0) {
      const family = input.uint(2) as AddressFamily
      const bits = input.uint(1)
      const flags = input.uint(1)
      const address = new Uint8Array(octetsOf(family))
      address.set(input.take(flags & ~NEGATED) ?? [])
      const not = (flags & NEGATED) === 0 ? '' : '!'
      items.push(`${not}${family}:${printAddress(address, family)}/${bits}`)
    }
    return items.join(' ')
  },
  scan: (input, output) => {
    for (const field of input.rest()) {
      const found = field.quoted ? null : /^(!?)([12]):([^/]+)\/(\d{1,3})$/.exec(field.text)
      const family = Number(found?.[2])
      const address = (family === 1 ? scanIPv4 : scanIPv6)(found?.[3] ?? '')
      const bits = scanInteger(found?.[4] ?? '', octetsOf(family) * 8)
      if (address === undefined || bits === undefined) {
        return expected('prefixes as in 1:192.0.2.0/24 !2:2001:db8::/32', field)
      }
      const octets = address.bytes.findLastIndex((octet) => octet !== 0) + 1
      output.u16(family)
      output.u8(bits)
      output.u8((found?.[1] === '!' ? NEGATED : 0) | octets)
      output.put(address.bytes.subarray(0, octets))
    }
    return undefined
  },
}

/** See `RdataLayout.check`. */
export function checkAddressPrefixes(rdata: Uint8Array): string | undefined {
  const input = new OctetReader(rdata, 0, rdata.length)
  while (input.remaining > 0) {
    const octetsMax = octetsOf(input.uint(2))
    const bits = input.uint(1)
    const address = input.take(input.uint(1) & ~NEGATED) ?? []
    const isAddress = address.length <= octetsMax && address.at(-1) !== 0
    if (!isAddress || bits > octetsMax * 8) return 'a prefix of an unknown address family'
  }
  return undefined
}
