import { printType } from '../../src/dns/iana/types.ts'
import type { Endpoint } from '../../src/dnsrecord/dns-record.ts'
import {
  type EndpointObject,
  printHost,
  printSteered,
  printTarget,
} from '../../src/dnsrecord/print-endpoint.ts'

/** Prints a validated endpoint as in the spec of a DNSRecord. */
export function printEndpoint(endpoint: Endpoint): EndpointObject {
  const { owner, type, rdata, codes } = endpoint
  return printSteered({
    ...endpoint,
    dnsName: printHost(owner),
    recordType: printType(type),
    targets: rdata.map((target) => printTarget(type, target)),
    geoCodes: codes.map((code) => code.text),
  })
}
