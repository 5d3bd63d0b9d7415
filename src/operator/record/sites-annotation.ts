import {
  outOf,
  printSiteFacts,
  SITES_ANNOTATION,
  type SiteFacts,
  type SitePart,
} from '../../dnsrecord/site-facts.ts'
import type { ApiObject } from '../../kube/api.ts'
import { mappingOf, metadataOf, textsOf } from './fields.ts'
import type { DnsRecordView } from './record-view.ts'

/** Octets of all annotations of an object together, which the API allows. */
const ANNOTATIONS_OCTETS_MAX = 262_144

/** The annotation with the facts of all sites. */
export interface SitesAnnotation {
  /** '' = it has no room. */
  readonly text: string
  /** What had no room, for people; '' = nothing. */
  readonly note: string
}

/**
 * Composes the annotation for a record with these endpoints. If there is no room for all, inline endpoints that are
 * down are left out. If that is not enough, so are settings of other sites, those of the site with the most first; then
 * everything. `existing`: the record whose other annotations are kept.
 */
export function composeSitesAnnotation(
  facts: SiteFacts<ApiObject>,
  specEndpoints: readonly ApiObject[],
  identityOf: (endpoint: ApiObject) => string,
  existing: DnsRecordView | undefined,
): SitesAnnotation {
  const room = roomOf(existing)
  const text = printSiteFacts(facts, specEndpoints, identityOf)
  if (Buffer.byteLength(text) <= room) return { text, note: '' }
  const present = new Set(specEndpoints.map(identityOf))
  const parts = facts.parts.map((part) => {
    const isKept = (one: ApiObject): boolean => present.has(identityOf(one)) || !isDown(one, part)
    return { ...part, endpoints: part.endpoints.filter(isKept) }
  })
  const shorter = printSiteFacts({ ...facts, parts }, specEndpoints, identityOf)
  const what = `the annotation ${SITES_ANNOTATION} has no room for`
  if (Buffer.byteLength(shorter) <= room) {
    return { text: shorter, note: `${what} all endpoints that are down` }
  }
  const without = new Set<string>()
  for (const site of sitesBySettings(facts)) {
    without.add(site)
    const reduced = parts.map((part) => (without.has(part.site) ? withDrainOnly(part) : part))
    const text = printSiteFacts({ ...facts, parts: reduced }, specEndpoints, identityOf)
    if (Buffer.byteLength(text) <= room) {
      return { text, note: `${what} the settings of ${[...without].join(', ')}` }
    }
  }
  return { text: '', note: `${what} health and settings of all sites, which are not served` }
}

/** The other sites, those with the longest settings first. */
function sitesBySettings({ site, parts }: SiteFacts<ApiObject>): string[] {
  const octets = new Map<string, number>()
  for (const { site: of, settings } of parts) {
    if (of !== site) octets.set(of, (octets.get(of) ?? 0) + JSON.stringify(settings).length)
  }
  return [...octets].sort(([, a], [, b]) => b - a).map(([one]) => one)
}

/** What a site drains stays out of service. */
function withDrainOnly(part: SitePart<ApiObject>): SitePart<ApiObject> {
  const kept = Object.entries(part.settings).filter(([key]) => key.startsWith('drain'))
  return { ...part, settings: Object.fromEntries(kept) }
}

/** The annotations of a record with these facts. */
export function annotationsOf(text: string): Readonly<Record<string, string>> {
  return text === '' ? {} : { [SITES_ANNOTATION]: text }
}

function roomOf(existing: DnsRecordView | undefined): number {
  const annotations = existing && mappingOf(metadataOf(existing.object), 'annotations')
  const others = Object.entries(annotations ?? {}).filter(([name]) => name !== SITES_ANNOTATION)
  const octets = others.reduce((sum, pair) => sum + Buffer.byteLength(pair.join('')), 0)
  return ANNOTATIONS_OCTETS_MAX - SITES_ANNOTATION.length - octets
}

function isDown(endpoint: ApiObject, part: SitePart<ApiObject>): boolean {
  const out = outOf(part)
  return textsOf(endpoint, 'targets').every((target) => Object.hasOwn(out, target.toLowerCase()))
}
