/** Parts of record types that RFCs have made obsolete and that old zones still contain. */
import { printType, scanType } from '../iana/index.ts'
import { parseName } from '../name/parse-name.ts'
import { printAddress, scanIPv6 } from '../text/address.ts'
import { scanHex } from './binary.ts'
import { plainName } from './names.ts'
import { scanInteger } from './numbers.ts'
import { expected, type RdataPart } from './part.ts'

/** The address of NSAP: `0x` and hexadecimal digits, with dots anywhere (RFC 1706 section 5). */
export const nsapAddress: RdataPart = {
  parse: (input, output) => {
    if (input.remaining === 0) return false
    output.put(input.rest())
    return true
  },
  print: (input) => `0x${Buffer.from(input.rest()).toString('hex')}`,
  scan: (input, output) => {
    const field = input.next()
    const found = field === undefined || field.quoted ? null : /^0[xX](.+)$/.exec(field.text)
    const octets = scanHex(found?.[1]?.replaceAll('.', '') ?? '')
    if (octets === undefined || octets.length === 0) return expected('0x and an address', field)
    output.put(octets)
    return undefined
  },
}

const ADDRESS_OCTETS = 16

/**
 * The whole rdata of A6 (RFC 2874 section 3.1): prefix bits u8 | the octets of the address after
 * them | the name that has the prefix, omitted if the prefix is empty. A prefix of 128 bits leaves
 * no address.
 */
export const prefixedAddress: RdataPart = {
  parse: (input, output) => {
    const bits = input.uint(1)
    const suffix = bits < 0 || bits > 128 ? undefined : input.take(ADDRESS_OCTETS - (bits >> 3))
    if (suffix === undefined) return false
    output.u8(bits)
    output.put(suffix)
    return bits === 0 || plainName.parse(input, output)
  },
  print: (input) => {
    const bits = input.uint(1)
    const texts = [String(bits)]
    if (bits < 128) {
      const address = new Uint8Array(ADDRESS_OCTETS)
      address.set(input.take(ADDRESS_OCTETS - (bits >> 3)) ?? [], bits >> 3)
      texts.push(printAddress(address, 2))
    }
    if (bits > 0) texts.push(plainName.print(input))
    return texts.join(' ')
  },
  scan: (input, output) => {
    const bitsField = input.next()
    const bits = scanInteger(bitsField?.text ?? '', 128)
    if (bits === undefined) return expected('a prefix length (0 to 128)', bitsField)
    output.u8(bits)
    if (bits < 128) {
      const field = input.next()
      const address = scanIPv6(field?.text ?? '')
      if (address === undefined) return expected('an IPv6 address', field)
      const suffix = address.bytes.slice(bits >> 3)
      // The name supplies the bits of the prefix.
      suffix[0] = suffix[0]! & (0xff >> (bits & 7))
      output.put(suffix)
    }
    return bits === 0 ? undefined : plainName.scan(input, output)
  },
}

/** See `RdataLayout.check`. */
export function checkPrefixedAddress(rdata: Uint8Array): string | undefined {
  const bits = rdata[0]!
  const isPadded = bits === 128 || rdata[1]! >> (8 - (bits & 7)) === 0
  return isPadded ? undefined : 'an address that repeats bits of its prefix'
}

/** Maximum of octets of NXT's bitmap: types 1 to 127. */
const NXT_OCTETS_MAX = 16

/** Returns the numbers of the bits that are set. Bit 0 is the highest bit of the first octet. */
function bitsOf(bitmap: Uint8Array): number[] {
  const bits: number[] = []
  for (let bit = 0; bit < bitmap.length * 8; bit++) {
    if ((bitmap[bit >> 3]! & (0x80 >> (bit & 7))) !== 0) bits.push(bit)
  }
  return bits
}

function bitmapOf(bits: readonly number[]): Uint8Array {
  const bitmap = new Uint8Array((bits.reduce((a, b) => Math.max(a, b), -1) + 8) >> 3)
  for (const bit of bits) bitmap[bit >> 3]! |= 0x80 >> (bit & 7)
  return bitmap
}

/** The types at a name in NXT, up to the end of the rdata (RFC 2535 section 5.2). Bit 0 is reserved. */
export const nxtBitmap: RdataPart = {
  parse: (input, output) => {
    output.put(input.rest())
    return true
  },
  print: (input) => bitsOf(input.rest()).map(printType).join(' '),
  scan: (input, output) => {
    const types: number[] = []
    for (const field of input.rest()) {
      const type = field.quoted ? undefined : scanType(field.text)
      if (type === undefined || type === 0 || type >= NXT_OCTETS_MAX * 8) {
        return expected('a record type below 128', field)
      }
      types.push(type)
    }
    output.put(bitmapOf(types))
    return undefined
  },
}

/** See `RdataLayout.check`. */
export function checkNxt(rdata: Uint8Array): string | undefined {
  const bitmap = rdata.subarray(parseName(rdata, 0, rdata.length)!.end)
  const isReserved = bitmap.length > NXT_OCTETS_MAX || (bitmap[0] ?? 0) >= 0x80
  return isReserved || bitmap.at(-1) === 0 ? 'a bitmap of a reserved form' : undefined
}

const PROTOCOLS = new Map([
  ['icmp', 1],
  ['tcp', 6],
  ['udp', 17],
])
/** Services that text may name in WKS; other services are written as port numbers. */
const SERVICES = new Map([
  ['echo', 7],
  ['discard', 9],
  ['systat', 11],
  ['daytime', 13],
  ['netstat', 15],
  ['ftp-data', 20],
  ['ftp', 21],
  ['ssh', 22],
  ['telnet', 23],
  ['smtp', 25],
  ['time', 37],
  ['domain', 53],
  ['gopher', 70],
  ['finger', 79],
  ['http', 80],
  ['pop3', 110],
  ['sunrpc', 111],
  ['nntp', 119],
  ['ntp', 123],
  ['imap2', 143],
  ['snmp', 161],
])
const PORTS_OCTETS_MAX = 8192

/** WKS after its address: protocol u8 | bitmap of ports (RFC 1035 section 3.4.2). Always printed as numbers. */
export const wellKnownServices: RdataPart = {
  parse: (input, output) => {
    const protocol = input.uint(1)
    const bitmap = input.rest()
    if (protocol < 0 || bitmap.length > PORTS_OCTETS_MAX) return false
    output.u8(protocol)
    output.put(bitmap)
    return true
  },
  print: (input) => [input.uint(1), ...bitsOf(input.rest())].join(' '),
  scan: (input, output) => {
    const protocolField = input.next()
    const name = protocolField?.text ?? ''
    const protocol = PROTOCOLS.get(name.toLowerCase()) ?? scanInteger(name, 255)
    if (protocol === undefined) return expected('TCP, UDP or a protocol number', protocolField)
    const ports: number[] = []
    for (const field of input.rest()) {
      const port = SERVICES.get(field.text.toLowerCase()) ?? scanInteger(field.text, 65535)
      if (port === undefined) return expected('the number of a port', field)
      ports.push(port)
    }
    output.u8(protocol)
    output.put(bitmapOf(ports))
    return undefined
  },
}

/** See `RdataLayout.check`. Address and protocol are the first five octets. */
export function checkWellKnownServices(rdata: Uint8Array): string | undefined {
  return rdata.length > 5 && rdata.at(-1) === 0 ? 'a bitmap that ends with zeros' : undefined
}
