import { ipv4, ipv6 } from './addresses.ts'
import { plainName } from './names.ts'
import { scanInteger } from './numbers.ts'
import type { OctetReader, OctetWriter } from './octets.ts'
import { expected, type FieldReader, type RdataPart } from './part.ts'

/** No gateway: `.` in text, nothing on the wire. */
const none: RdataPart = {
  parse: () => true,
  print: () => '.',
  scan: (input) => {
    const field = input.next()
    return field?.text === '.' && !field.quoted ? undefined : expected('. for no gateway', field)
  },
}

/** A gateway of a type without a text form: octets up to the end of the rdata. */
const opaque: RdataPart = {
  parse: (input, output) => {
    output.put(input.rest())
    return true
  },
  print: () => '',
  scan: () => 'a gateway of this type has no text form',
}

/** The form of a gateway by its type (RFC 4025 section 2.3, RFC 8777 section 4.2.3). */
const PARTS: readonly RdataPart[] = [none, ipv4, ipv6, plainName]

/** Parses one field as a number of 0..`max` and writes it as an octet; returns -1 if it is not such a number. */
function scanOctet(input: FieldReader, max: number): number {
  const field = input.next()
  if (field === undefined || field.quoted) return -1
  return scanInteger(field.text, max) ?? -1
}

/** IPSECKEY: gateway type u8 | algorithm u8 | gateway. */
export const ipsecGateway: RdataPart = {
  parse: (input: OctetReader, output: OctetWriter) => {
    const type = input.uint(1)
    const algorithm = input.uint(1)
    if (algorithm < 0) return false
    output.u8(type)
    output.u8(algorithm)
    return (PARTS[type] ?? opaque).parse(input, output)
  },
  print: (input) => {
    const type = input.uint(1)
    const algorithm = input.uint(1)
    return `${type} ${algorithm} ${PARTS[type]!.print(input)}`
  },
  scan: (input, output) => {
    const typeField = input.peek()
    const type = scanOctet(input, PARTS.length - 1)
    if (type < 0) return expected('a gateway type (0 to 3)', typeField)
    const algorithmField = input.peek()
    const algorithm = scanOctet(input, 255)
    if (algorithm < 0) return expected('an algorithm (0 to 255)', algorithmField)
    output.u8(type)
    output.u8(algorithm)
    return PARTS[type]!.scan(input, output)
  },
}

const DISCOVERY_OPTIONAL = 0x80

/** AMTRELAY: discovery optional, 1 bit | relay type, 7 bits | relay. */
export const amtRelay: RdataPart = {
  parse: (input, output) => {
    const flags = input.uint(1)
    if (flags < 0) return false
    output.u8(flags)
    return (PARTS[flags & ~DISCOVERY_OPTIONAL] ?? opaque).parse(input, output)
  },
  print: (input) => {
    const flags = input.uint(1)
    const type = flags & ~DISCOVERY_OPTIONAL
    return `${flags >> 7} ${type} ${PARTS[type]!.print(input)}`
  },
  scan: (input, output) => {
    const optionalField = input.peek()
    const optional = scanOctet(input, 1)
    if (optional < 0) return expected('discovery optional (0 or 1)', optionalField)
    const typeField = input.peek()
    const type = scanOctet(input, PARTS.length - 1)
    if (type < 0) return expected('a relay type (0 to 3)', typeField)
    output.u8((optional << 7) | type)
    return PARTS[type]!.scan(input, output)
  },
}

/** See `RdataLayout.check`. */
export function checkIpsecKey(rdata: Uint8Array): string | undefined {
  return checkType(rdata[1]!)
}

/** See `RdataLayout.check`. */
export function checkAmtRelay(rdata: Uint8Array): string | undefined {
  return checkType(rdata[1]! & ~DISCOVERY_OPTIONAL)
}

function checkType(type: number): string | undefined {
  return type < PARTS.length ? undefined : 'a gateway of an unknown type'
}
