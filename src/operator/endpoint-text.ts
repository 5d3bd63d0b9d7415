import { printType, RRType } from '../dns/iana/types.ts'
import { printRdata } from '../dns/rdata/index.ts'
import type { ApiObject } from '../kube/api.ts'
import type { Endpoint } from '../record/dns-record.ts'
import { printLatin1 } from '../record/latin1.ts'
import {
  type EndpointText,
  printHost,
  printSteered,
  printTarget,
} from '../record/print-endpoint.ts'

/** What a plain string of a TXT record is made of: anything else is written as in a zone file. */
const PLAIN_STRING = /^[!#-[\]-~][ -~]*$/

/** Endpoints of the gateway-local form, as `spec.endpoints` has them. */
export function printLocalEndpoints(endpoints: readonly Endpoint[]): ApiObject[] {
  return endpoints.flatMap((endpoint) => {
    const { type, rdata } = endpoint
    // There the targets of a TXT endpoint are the strings of one record.
    if (type === RRType.TXT) return rdata.map((one) => printLocal(endpoint, printStrings(one)))
    const targets = rdata.map((one) => printTarget(type, one))
    return [printLocal(endpoint, targets)]
  })
}

function printLocal(endpoint: Endpoint, targets: readonly string[]): ApiObject {
  const { owner, type, ttlSeconds, setIdentifier } = endpoint
  return {
    dnsName: printHost(owner),
    recordType: printType(type),
    // Zero goes without saying, as in what was written in 2025.
    ...(ttlSeconds === 0 ? {} : { recordTTL: ttlSeconds }),
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    targets,
  }
}

/** Of TXT rdata one target per string, or all in one where a string needs escapes. */
function printStrings(rdata: Uint8Array): string[] {
  const strings: string[] = []
  for (let at = 0; at < rdata.length; at += 1 + rdata[at]!) {
    strings.push(printLatin1(rdata.subarray(at + 1, at + 1 + rdata[at]!)))
  }
  return strings.every((text) => PLAIN_STRING.test(text))
    ? strings
    : [printRdata(RRType.TXT, rdata)]
}

/** An endpoint as `spec.endpoints` has it. */
export function printSpecEndpoint(endpoint: EndpointText): ApiObject {
  return { ...printSteered(endpoint) }
}
