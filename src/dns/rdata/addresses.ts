import {
  type Address,
  type AddressFamily,
  printAddress,
  scanIPv4,
  scanIPv6,
} from '../text/address.ts'
import { expected, type RdataPart } from './part.ts'

function address(
  family: AddressFamily,
  what: string,
  scan: (text: string) => Address | undefined,
): RdataPart {
  const octets = family === 1 ? 4 : 16
  return {
    parse: (input, output) => output.copy(input, octets),
    print: (input) => printAddress(input.take(octets) ?? new Uint8Array(octets), family),
    scan: (input, output) => {
      const field = input.next()
      const scanned = field === undefined || field.quoted ? undefined : scan(field.text)
      if (scanned === undefined) return expected(what, field)
      output.put(scanned.bytes)
      return undefined
    },
  }
}

export const ipv4: RdataPart = address(1, 'an IPv4 address', scanIPv4)
export const ipv6: RdataPart = address(2, 'an IPv6 address', scanIPv6)
