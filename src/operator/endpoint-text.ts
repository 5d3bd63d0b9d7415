import { printType, RRType } from '../dns/iana/types.ts'
import { printRdata } from '../dns/rdata/index.ts'
import { printAddress } from '../dns/text/address.ts'
import type { ApiObject } from '../kube/api.ts'
import type { SharedEndpoint } from '../peering/shared-endpoint.ts'
import type { Endpoint } from '../record/dns-record.ts'

/** What a plain string of a TXT record is made of: anything else is written as in a zone file. */
const PLAIN_STRING = /^[!#-[\]-~][ -~]*$/

/** Endpoints of the gateway-local form, as `spec.endpoints` has them. */
export function printLocalEndpoints(endpoints: readonly Endpoint[]): ApiObject[] {
  return endpoints.flatMap((endpoint) => {
    const { type, rdata } = endpoint
    // There the targets of a TXT endpoint are the strings of one record.
    if (type === RRType.TXT) return rdata.map((one) => printLocal(endpoint, printStrings(one)))
    return [
      printLocal(
        endpoint,
        rdata.map((one) => printTarget(type, one)),
      ),
    ]
  })
}

function printLocal(endpoint: Endpoint, targets: readonly string[]): ApiObject {
  const { owner, type, ttlSeconds, setIdentifier } = endpoint
  return {
    dnsName: printHost(owner),
    recordType: printType(type),
    recordTTL: ttlSeconds,
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    targets,
  }
}

/** A merged endpoint as `spec.endpoints` has it. */
export function printShared(endpoint: SharedEndpoint): ApiObject {
  const { dnsName, recordType, ttlSeconds, setIdentifier, targets } = endpoint
  const providerSpecific = printSteering(endpoint)
  return {
    dnsName,
    recordType,
    recordTTL: ttlSeconds,
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    targets,
    ...(providerSpecific.length === 0 ? {} : { providerSpecific }),
  }
}

function printSteering({ weight, geoCodes, isDefault }: SharedEndpoint): ApiObject[] {
  const properties: ApiObject[] = []
  if (weight !== undefined) properties.push({ name: 'weight', value: String(weight) })
  for (const value of geoCodes) properties.push({ name: 'geo-code', value })
  if (isDefault && geoCodes.length === 0) properties.push({ name: 'geo-code', value: '*' })
  else if (isDefault) properties.push({ name: 'default', value: 'true' })
  return properties
}

/** The text of a name of a DNSRecord, which needs no escapes, without its final dot. */
export function printHost(name: Uint8Array): string {
  const labels: string[] = []
  for (let at = 0; name[at] !== 0 && at < name.length; at += name[at]! + 1) {
    labels.push(Buffer.from(name.subarray(at + 1, at + 1 + name[at]!)).toString('latin1'))
  }
  return labels.join('.')
}

function printTarget(type: number, rdata: Uint8Array): string {
  switch (type) {
    case RRType.A:
      return printAddress(rdata, 1)
    case RRType.AAAA:
      return printAddress(rdata, 2)
    case RRType.CNAME:
    case RRType.PTR:
      return printHost(rdata)
    default:
      return printRdata(type, rdata)
  }
}

/** Of TXT rdata one target per string, or all in one where a string needs escapes. */
function printStrings(rdata: Uint8Array): string[] {
  const strings: string[] = []
  for (let at = 0; at < rdata.length; at += 1 + rdata[at]!) {
    strings.push(Buffer.from(rdata.subarray(at + 1, at + 1 + rdata[at]!)).toString('latin1'))
  }
  return strings.every((text) => PLAIN_STRING.test(text))
    ? strings
    : [printRdata(RRType.TXT, rdata)]
}
