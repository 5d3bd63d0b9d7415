import { RRType } from '../dns/iana/types.ts'
import { printQuoted } from '../dns/rdata/strings.ts'
import type { Endpoint } from './dns-record.ts'
import { type EndpointObject, printEndpoint } from './print-endpoint.ts'

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Endpoints of the zone kdrnt as they stand in a DNSRecord that is labelled for it: there the targets
 * of a TXT endpoint are the strings of one record, so every record is an endpoint of its own.
 */
export function printLocalEndpoints(endpoints: readonly Endpoint[]): EndpointObject[] {
  return endpoints.flatMap((endpoint) => {
    if (endpoint.type !== RRType.TXT) return [printEndpoint(endpoint)]
    const printed = printEndpoint({ ...endpoint, rdata: [] })
    return endpoint.rdata.map((rdata) => ({ ...printed, targets: printStrings(rdata) }))
  })
}

/** Each string as it is, which is how others serve it; quoted where it would be taken for something else. */
function printStrings(rdata: Uint8Array): string[] {
  const targets: string[] = []
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    const string = rdata.subarray(at + 1, at + 1 + rdata[at]!)
    targets.push(printString(string))
  }
  return targets
}

function printString(string: Uint8Array): string {
  const text = decode(string)
  return text === undefined || text.startsWith('"') ? printQuoted(string) : text
}

/** Undefined if it is not UTF-8. */
function decode(octets: Uint8Array): string | undefined {
  try {
    return UTF8.decode(octets)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return undefined
  }
}
