import { printLatin1 } from '../base/latin1.ts'
import { printType, RRType } from '../dns/iana/types.ts'
import { NAME_OCTETS_MAX } from '../dns/name/name.ts'
import { printRdata } from '../dns/rdata/index.ts'
import { printAddress } from '../dns/text/address.ts'
import { ALIAS_TYPE, type Endpoint } from './dns-record.ts'

/** An endpoint in external-dns's JSON form, with the fields that a DNSRecord uses. */
export interface EndpointObject {
  readonly dnsName: string
  readonly recordType: string
  readonly targets: readonly string[]
  readonly recordTTL: number
  readonly setIdentifier?: string
  readonly labels?: { readonly [name: string]: string }
  readonly providerSpecific?: readonly { readonly name: string; readonly value: string }[]
}

/** The steering fields of an endpoint, as text. */
export interface SteeringText {
  readonly setIdentifier: string
  readonly weight: number | undefined
  readonly geoCodes: readonly string[]
  readonly isDefault: boolean
  /** `52.52,13.40`; undefined = none. */
  readonly location?: string | undefined
}

/** With this set identifier, an endpoint with geo codes is a default too. */
export const DEFAULT_SET_IDENTIFIER = 'default'
/** Text that needs no quotes in a TXT target: printable ASCII without quotes and backslashes. */
const PLAIN_TEXT = /^[ !#-[\]-~]+$/

const DOT = 0x2e
const hostText = Buffer.alloc(NAME_OCTETS_MAX)

/** Prints a name as in DNSRecords, without its final dot. `name`: a result of `scanHost`. */
export function printHost(name: Uint8Array): string {
  const end = name.length - 1
  let labelEnd = name[0]! + 1
  for (let at = 1; at < end; at++) {
    const isLength = at === labelEnd
    if (isLength) labelEnd += name[at]! + 1
    hostText[at - 1] = isLength ? DOT : name[at]!
  }
  return hostText.toString('latin1', 0, Math.max(0, end - 1))
}

/** Prints the type of an endpoint as in DNSRecords. */
export function printRecordType(type: number): string {
  return type === ALIAS_TYPE ? 'ALIAS' : printType(type)
}

/** Prints one target as in DNSRecords; `scanTarget` reads it back. */
export function printTarget(type: number, rdata: Uint8Array): string {
  switch (type) {
    // Most targets are addresses, and `printRdata` would parse them first.
    case RRType.A:
      return printAddress(rdata, 1)
    case RRType.AAAA:
      return printAddress(rdata, 2)
    case RRType.CNAME:
    case ALIAS_TYPE:
    case RRType.NS:
    case RRType.PTR:
      return printHost(rdata)
    case RRType.TXT:
      return printText(rdata)
    default:
      return printRdata(type, rdata)
  }
}

/**
 * Prints a single plain string without quotes, as other providers expect, and other strings quoted.
 */
function printText(rdata: Uint8Array): string {
  const isSingle = rdata.length > 1 && rdata[0] === rdata.length - 1
  const text = isSingle ? printLatin1(rdata.subarray(1)) : ''
  return PLAIN_TEXT.test(text) ? text : printRdata(RRType.TXT, rdata)
}

/** Returns an endpoint in the form of a DNSRecord's spec, without the place of its probes. */
export function printSteered(endpoint: Endpoint): EndpointObject {
  const { owner, type, rdata, ttlSeconds: recordTTL, codes, point } = endpoint
  const targets = rdata.map((target) => printTarget(type, target))
  const geoCodes = codes.map(({ text }) => text)
  const steering = printSteering({ ...endpoint, geoCodes, location: point?.text })
  const recordType = printRecordType(type)
  return { dnsName: printHost(owner), recordType, targets, recordTTL, ...steering }
}

/** Returns the steering fields of an endpoint, without those that are empty. */
export function printSteering(
  steering: SteeringText,
): Pick<EndpointObject, 'setIdentifier' | 'providerSpecific'> {
  const { setIdentifier, weight, geoCodes, isDefault, location } = steering
  const properties: { name: string; value: string }[] = []
  if (weight !== undefined) properties.push({ name: 'weight', value: String(weight) })
  if (geoCodes.length > 0) properties.push({ name: 'geo-code', value: geoCodes.join(',') })
  else if (isDefault) properties.push({ name: 'geo-code', value: '*' })
  const isImplied = geoCodes.length === 0 || setIdentifier === DEFAULT_SET_IDENTIFIER
  if (isDefault && !isImplied) properties.push({ name: 'default', value: 'true' })
  if (location !== undefined) properties.push({ name: 'location', value: location })
  return {
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    ...(properties.length === 0 ? {} : { providerSpecific: properties }),
  }
}
