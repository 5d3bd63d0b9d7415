import { printLatin1 } from '../../base/latin1.ts'
import { RRType } from '../../dns/iana/types.ts'
import { printRdata } from '../../dns/rdata/index.ts'
import type { ApiObject } from '../../kube/api.ts'
import type { PeerEndpoint } from '../../peering/peer-endpoint.ts'
import { type Endpoint, TARGETS_MAX } from '../../records/dns-record.ts'
import {
  printHost,
  printRecordType,
  printSteered,
  printTarget,
} from '../../records/print-endpoint.ts'

/**
 * A string of a TXT record that is written without quotes and escapes. Other strings are written as
 * in a zone file.
 */
const PLAIN_STRING = /^[!#-[\]-~][ -~]*$/

/** Endpoints of the gateway-local form, as `spec.endpoints` stores them. */
export function printLocalEndpoints(endpoints: readonly Endpoint[]): ApiObject[] {
  return endpoints.flatMap((endpoint) => {
    const { type, rdata } = endpoint
    // In that form the targets of a TXT endpoint are the strings of one record.
    if (type === RRType.TXT) return rdata.map((one) => printLocal(endpoint, printStrings(one)))
    const targets = rdata.map((one) => printTarget(type, one))
    return [printLocal(endpoint, targets)]
  })
}

function printLocal(endpoint: Endpoint, targets: readonly string[]): ApiObject {
  const { owner, type, ttlSeconds, setIdentifier } = endpoint
  return {
    dnsName: printHost(owner),
    recordType: printRecordType(type),
    // A TTL of 0 is omitted, as in records that were written in 2025.
    ...(ttlSeconds === 0 ? {} : { recordTTL: ttlSeconds }),
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    targets,
  }
}

/**
 * Returns one target per string of TXT rdata, or one target with all strings if one of them needs
 * escapes, or if there are more than an endpoint may have.
 */
function printStrings(rdata: Uint8Array): string[] {
  const strings: string[] = []
  for (let at = 0; at < rdata.length; at += 1 + rdata[at]!) {
    strings.push(printLatin1(rdata.subarray(at + 1, at + 1 + rdata[at]!)))
  }
  return strings.length <= TARGETS_MAX && strings.every((text) => PLAIN_STRING.test(text))
    ? strings
    : [printRdata(RRType.TXT, rdata)]
}

/** An endpoint as `spec.endpoints` stores it. */
export function printSpecEndpoint({ endpoint }: Pick<PeerEndpoint, 'endpoint'>): ApiObject {
  return { ...printSteered(endpoint) }
}
