import type { ApiObject } from '../../kube/api.ts'
import { listTargets } from '../../peering/peer-endpoint.ts'
import { printProbed, toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import { recordId } from '../../records/record-source.ts'
import { SITES_ANNOTATION, scanSiteFacts } from '../../records/site-facts.ts'
import type { Publishing } from '../plan/decide.ts'
import type { OwnHealth } from '../plan/own.ts'
import { downOf, ownPart } from '../plan/site-parts.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { composeSitesAnnotation, type SitesAnnotation } from '../record/sites-annotation.ts'
import { endpointKey, readSpecEndpoints, type SpecEndpoint } from '../record/spec-endpoint.ts'
import { authoritativeKey } from './authoritative-record.ts'
import type { FollowedClusters } from './cluster-health.ts'
import { type OwnedPart, readOwnedParts } from './whole.ts'

/** Addresses that a message lists. */
const NAMED_MAX = 5

/** What a delegating record contributes, apart from its endpoints and its owner. */
export type OwnerFacts = Omit<OwnedPart, 'endpoints' | 'owner'>

/** What an operator finds of a delegating record of its own cluster. */
interface OwnFindings {
  readonly health: OwnHealth
  /** True = the clock of the API server is wrong. */
  readonly isUndated: boolean
}

/** The facts of a delegating record of this cluster. */
export function composeOwnFacts(
  publishing: Publishing,
  site: string,
  { health, isUndated }: OwnFindings,
): OwnerFacts {
  return ownPart(publishing, { site, health, isUndated, drain: undefined })
}

/**
 * Marks the facts of a record as partial while endpoints that its failover list names may be missing, because other
 * clusters have not contributed yet. A list that was complete once is not marked again. Otherwise each restart would
 * write twice.
 */
export function markPartial(
  facts: OwnerFacts,
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  { hasAll }: Pick<FollowedClusters, 'hasAll'>,
): OwnerFacts {
  const { failover } = facts.settings
  if (failover === undefined || hasAll(authoritativeKey(record))) return facts
  const before = partOf(record, authoritative)
  const wasWhole = before?.settings.failover === failover && before.isPartial !== true
  return wasWhole ? facts : { ...facts, isPartial: true }
}

/** Returns what a delegating record contributes at present; undefined = nothing, or not known. */
export function partOf(
  { ownerId }: DnsRecordView,
  authoritative: DnsRecordView | undefined,
): OwnedPart | undefined {
  const parts = authoritative === undefined ? [] : readOwnedParts(authoritative)
  return parts.find(({ owner }) => owner.id === ownerId)
}

interface ForeignScene {
  /** Short id of the other cluster. */
  readonly cluster: string
  /** The site of this cluster. The other one can't have its name, nor those of `sites`. */
  readonly ownSite: string
  /** Of the clusters that contribute, too. */
  readonly sites: ReadonlySet<string>
  /** True = this cluster finds that the clock of the other API server is wrong. */
  readonly isUndated: boolean
}

/**
 * The facts of a delegating record of another cluster: with what its own operator found, if that is Sextant.
 * `fault`: of the other operator's annotation; '' = none.
 */
export function composeForeignFacts(
  publishing: Publishing,
  { cluster, ownSite, sites, isUndated }: ForeignScene,
): { readonly facts: OwnerFacts; readonly fault: string } {
  const { record } = publishing
  const text = record.annotation(SITES_ANNOTATION)
  const found = text === '' ? 'is missing' : scanSiteFacts(text, [])
  const health = { down: [], up: [], probes: [] }
  const own = ownPart(publishing, { site: cluster, health, isUndated, drain: undefined })
  // A leader that cannot read the record must know that its addresses were checked.
  const checked = record.healthCheck === undefined ? {} : { isChecked: true }
  const foreign = { ...own, ...checked, name: '' }
  if (typeof found === 'string') {
    const fault = text === '' ? '' : `annotation ${SITES_ANNOTATION} of its operator ${found}`
    return { facts: foreign, fault }
  }
  const isTaken = found.site === ownSite || sites.has(found.site)
  const whose = found.site === ownSite ? 'this cluster' : 'another cluster'
  const [reported] = found.parts
  const { down, strays } = splitDown(publishing, reported?.down ?? {})
  const fault = isTaken
    ? `its operator uses the site name ${found.site}, the name of ${whose}; give each cluster its own --site`
    : strays.length > 0
      ? `its operator reports health of addresses that the record lacks: ${strays.slice(0, NAMED_MAX).join(', ')}; these reports are ignored`
      : ''
  const isKnown = { isUndated: isUndated || reported?.isUndated === true }
  const of = isTaken ? cluster : found.site
  return { facts: { ...foreign, ...isKnown, site: of, down }, fault }
}

/** Separates the addresses of a record from others. */
function splitDown(
  { record, content }: Publishing,
  reported: Readonly<Record<string, string>>,
): { readonly down: Record<string, string>; readonly strays: readonly string[] } {
  const about = { site: '', key: record.key, down: [], up: [], sinceSeconds: 0 }
  const known = new Set(listTargets(toPeerEndpoints(content, about)))
  const isKnown = ([address]: [string, string]): boolean => known.has(printProbed([address])[0]!)
  const all = Object.entries(reported)
  const strays = all.filter((one) => !isKnown(one)).map(([address]) => address)
  return { down: Object.fromEntries(all.filter(isKnown)), strays }
}

/** The annotation with which an operator reports to other clusters what it found of a delegating record. */
export function composeReport(
  record: DnsRecordView,
  site: string,
  { health, isUndated }: OwnFindings,
): SitesAnnotation {
  const down = downOf(health)
  const part = { site, id: recordId(record.key), name: '', createdSeconds: 0, isUndated }
  const parts =
    health.down.length === 0 && !isUndated ? [] : [{ ...part, settings: {}, endpoints: [], down }]
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
