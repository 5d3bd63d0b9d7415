import { printTarget } from '../../dnsrecord/print-endpoint.ts'
import type { ApiObject } from '../../kube/api.ts'
import type { Publishing } from '../plan/decide.ts'
import { selectWorking } from '../plan/own.ts'
import { itemsOf, mappingOf } from '../record/object.ts'

/**
 * Endpoints that a record delegates, in the form of its spec. Targets that are down are left out
 * while others remain.
 */
export function composeContribution(
  { object, record }: Publishing,
  down: readonly string[],
): readonly ApiObject[] {
  const given = itemsOf(mappingOf(object, 'spec'), 'endpoints')
  if (down.length === 0) return given
  return selectWorking(record.endpoints, down).flatMap((rdata, i) => {
    const endpoint = record.endpoints[i]!
    if (rdata.length === 0) return []
    if (rdata.length === endpoint.rdata.length) return [given[i]!]
    const targets = rdata.map((one) => printTarget(endpoint.type, one))
    return [{ ...given[i]!, targets }]
  })
}
