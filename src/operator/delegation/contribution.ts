import { recordId } from '../../dnsrecord/record-source.ts'
import { SITES_ANNOTATION, scanSiteFacts } from '../../dnsrecord/site-facts.ts'
import type { ApiObject } from '../../kube/api.ts'
import type { Publishing } from '../plan/decide.ts'
import type { OwnHealth } from '../plan/own.ts'
import { downOf, ownPart } from '../plan/site-parts.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { composeSitesAnnotation, type SitesAnnotation } from '../record/sites-annotation.ts'
import { endpointKey, readSpecEndpoints, type SpecEndpoint } from '../record/spec-endpoint.ts'
import type { OwnedPart } from './whole.ts'

/** What a delegating record contributes, apart from its endpoints and its owner. */
export type OwnerFacts = Omit<OwnedPart, 'endpoints' | 'owner'>

/** The facts of a delegating record of this cluster. */
export function composeOwnFacts(
  publishing: Publishing,
  site: string,
  health: OwnHealth,
): OwnerFacts {
  return ownPart(publishing, { site, health, drain: undefined })
}

/**
 * The facts of a delegating record of another cluster: with what its own operator found, if that is Sextant.
 * `ownSite`: of this cluster; another one can't have its name. `fault`: of the other operator's annotation; '' = none.
 */
export function composeForeignFacts(
  publishing: Publishing,
  cluster: string,
  ownSite: string,
): { readonly facts: OwnerFacts; readonly fault: string } {
  const { record } = publishing
  const text = record.annotation(SITES_ANNOTATION)
  const found = text === '' ? 'is missing' : scanSiteFacts(text, [])
  const health = { down: [], up: [], probes: [] }
  const own = ownPart(publishing, { site: cluster, health, drain: undefined })
  if (typeof found === 'string') {
    const fault = text === '' ? '' : `annotation ${SITES_ANNOTATION} of its operator ${found}`
    return { facts: { ...own, name: '' }, fault }
  }
  const site = found.site === ownSite ? cluster : found.site
  const down = found.parts[0]?.down ?? {}
  return { facts: { ...own, name: '', site, down }, fault: '' }
}

/** The annotation with which an operator reports to other clusters what it found of a delegating record. */
export function composeReport(
  record: DnsRecordView,
  site: string,
  health: OwnHealth,
): SitesAnnotation {
  const down = downOf(health)
  const part = { site, id: recordId(record.key), name: '', createdSeconds: 0 }
  const parts = health.down.length === 0 ? [] : [{ ...part, settings: {}, endpoints: [], down }]
  return composeSitesAnnotation({ site, parts }, [], () => '', record)
}

/** The endpoints of an owner that are in service. `served`: endpoints of its authoritative record. */
export function selectPublished(
  wanted: readonly SpecEndpoint[],
  served: readonly ApiObject[],
): readonly ApiObject[] {
  const targets = new Map<string, readonly string[]>()
  for (const endpoint of readSpecEndpoints(served)) {
    targets.set(endpointKey(endpoint), endpoint.targets)
  }
  return wanted.flatMap((endpoint) => {
    const present = targets.get(endpointKey(endpoint)) ?? []
    const left = endpoint.targets.filter((target) => present.includes(target))
    if (left.length === endpoint.targets.length) return [endpoint.object]
    return left.length === 0 ? [] : [{ ...endpoint.object, targets: left }]
  })
}
