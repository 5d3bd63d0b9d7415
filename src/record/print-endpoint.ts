import { printType, RRType } from '../dns/iana/types.ts'
import { printRdata } from '../dns/rdata/index.ts'
import type { Endpoint } from './dns-record.ts'
import { printLatin1 } from './latin1.ts'

/** An endpoint as external-dns has it in JSON, as far as a DNSRecord needs it. */
export interface EndpointObject {
  readonly dnsName: string
  readonly recordType: string
  readonly targets: readonly string[]
  readonly recordTTL: number
  readonly setIdentifier?: string
  readonly labels?: { readonly [name: string]: string }
  readonly providerSpecific?: readonly { readonly name: string; readonly value: string }[]
}

/** What an endpoint says of who it is for, in text. */
export interface SteeringText {
  readonly setIdentifier: string
  readonly weight: number | undefined
  readonly geoCodes: readonly string[]
  readonly isDefault: boolean
}

/** Its geo codes make an endpoint with this set identifier the default as well. */
export const DEFAULT_SET_IDENTIFIER = 'default'
/** Text that stands for itself in a TXT target: printable ASCII without quotes and backslashes. */
const PLAIN_TEXT = /^[ !#-[\]-~]+$/

/** A name as DNSRecords have it: without its final dot. `name`: one that `scanHost` made. */
export function printHost(name: Uint8Array): string {
  const text = printLatin1(name)
  let host = ''
  for (let at = 0; text.charCodeAt(at) > 0; at += text.charCodeAt(at) + 1) {
    host += `${at === 0 ? '' : '.'}${text.slice(at + 1, at + 1 + text.charCodeAt(at))}`
  }
  return host
}

/** One target as DNSRecords have it; `scanTarget` reads it back. */
export function printTarget(type: number, rdata: Uint8Array): string {
  switch (type) {
    case RRType.CNAME:
    case RRType.NS:
    case RRType.PTR:
      return printHost(rdata)
    case RRType.TXT:
      return printText(rdata)
    default:
      return printRdata(type, rdata)
  }
}

/** A single plain string as it is, which is what other providers take; else quoted strings. */
function printText(rdata: Uint8Array): string {
  const isSingle = rdata.length > 1 && rdata[0] === rdata.length - 1
  const text = isSingle ? printLatin1(rdata.subarray(1)) : ''
  return PLAIN_TEXT.test(text) ? text : printRdata(RRType.TXT, rdata)
}

/** An endpoint in text, whoever tells it. */
export interface EndpointText extends SteeringText {
  readonly dnsName: string
  readonly recordType: string
  readonly ttlSeconds: number
  readonly targets: readonly string[]
}

/** The same as it stands in the spec of a DNSRecord. */
export function printSteered(endpoint: EndpointText): EndpointObject {
  const { dnsName, recordType, targets, ttlSeconds: recordTTL } = endpoint
  return { dnsName, recordType, targets, recordTTL, ...printSteering(endpoint) }
}

/** The endpoint as it would stand in a DNSRecord; equal ones print equally, in all but order. */
export function printEndpoint(endpoint: Endpoint): EndpointObject {
  const { owner, type, ttlSeconds, rdata, codes } = endpoint
  const steering = { ...endpoint, geoCodes: codes.map((code) => code.text) }
  return {
    dnsName: printHost(owner),
    recordType: printType(type),
    targets: rdata.map((target) => printTarget(type, target)),
    recordTTL: ttlSeconds,
    ...printSteering(steering),
  }
}

/** The fields that say who an endpoint is for; absent where they would say nothing. */
export function printSteering(
  steering: SteeringText,
): Pick<EndpointObject, 'setIdentifier' | 'providerSpecific'> {
  const { setIdentifier, weight, geoCodes, isDefault } = steering
  const properties: { name: string; value: string }[] = []
  if (weight !== undefined) properties.push({ name: 'weight', value: String(weight) })
  if (geoCodes.length > 0) properties.push({ name: 'geo-code', value: geoCodes.join(',') })
  else if (isDefault) properties.push({ name: 'geo-code', value: '*' })
  const isImplied = geoCodes.length === 0 || setIdentifier === DEFAULT_SET_IDENTIFIER
  if (isDefault && !isImplied) properties.push({ name: 'default', value: 'true' })
  return {
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    ...(properties.length === 0 ? {} : { providerSpecific: properties }),
  }
}
