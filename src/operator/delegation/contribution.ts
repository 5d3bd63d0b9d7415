import { printTarget } from '../../dnsrecord/print-endpoint.ts'
import type { ApiObject } from '../../kube/api.ts'
import type { Publishing } from '../plan/decide.ts'
import { selectWorking } from '../plan/own.ts'
import { readSpecEndpoints, type SpecEndpoint } from '../record/spec-endpoint.ts'

/** Endpoints that a record delegates. Targets that are down are left out while others remain. */
export function composeContribution(
  { record, content }: Publishing,
  down: readonly string[],
): readonly SpecEndpoint[] {
  if (down.length === 0) return record.endpoints
  const given = record.endpointObjects
  const working = selectWorking(content.endpoints, down).flatMap((rdata, i): ApiObject[] => {
    const endpoint = content.endpoints[i]!
    if (rdata.length === 0) return []
    if (rdata.length === endpoint.rdata.length) return [given[i]!]
    const targets = rdata.map((one) => printTarget(endpoint.type, one))
    return [{ ...given[i]!, targets }]
  })
  return readSpecEndpoints(working)
}
