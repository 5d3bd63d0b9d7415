import type { ApiObject } from '../../kube/api.ts'
import {
  outOf,
  printSiteFacts,
  SITES_ANNOTATION,
  type SiteFacts,
  type SitePart,
} from '../../records/site-facts.ts'
import { mappingOf, metadataOf, textsOf } from './fields.ts'
import type { DnsRecordView } from './record-view.ts'

/** Octets of all annotations of an object together, which the API allows. */
const ANNOTATIONS_OCTETS_MAX = 262_144

const NO_ROOM = `the annotation ${SITES_ANNOTATION} has no room for`

/** The annotation with the facts of all sites. */
export interface SitesAnnotation {
  /** '' = it has no room. */
  readonly text: string
  /** What had no room, now or before, for people; '' = nothing. */
  readonly note: string
  /** True = the text has all facts that were given. */
  readonly isWhole: boolean
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
  if (Buffer.byteLength(text) <= room)
    return { text, note: describeLacks(facts.parts), isWhole: true }
  const present = new Set(specEndpoints.map(identityOf))
  const parts = facts.parts.map((part) => {
    const isKept = (one: ApiObject): boolean => present.has(identityOf(one)) || !isDown(one, part)
    const endpoints = part.endpoints.filter(isKept)
    if (endpoints.length === part.endpoints.length) return part
    return { ...part, endpoints, lacks: part.lacks ?? ('endpoints' as const) }
  })
  const shorter = printSiteFacts({ ...facts, parts }, specEndpoints, identityOf)
  if (Buffer.byteLength(shorter) <= room)
    return { text: shorter, note: describeLacks(parts), isWhole: false }
  const without = new Set<string>()
  for (const site of sitesBySettings(facts)) {
    without.add(site)
    const reduced = parts.map((part) => (without.has(part.site) ? withDrainOnly(part) : part))
    const text = printSiteFacts({ ...facts, parts: reduced }, specEndpoints, identityOf)
    if (Buffer.byteLength(text) <= room)
      return { text, note: describeLacks(reduced), isWhole: false }
  }
  const note = `${NO_ROOM} health and settings of all sites, which are not served`
  return { text: '', note, isWhole: false }
}

/** What had no room when these parts were printed, for people; '' = nothing. */
export function describeLacks(parts: readonly SitePart<ApiObject>[]): string {
  const lacking = parts.filter(({ lacks }) => lacks === 'settings').map(({ site }) => site)
  if (lacking.length > 0) return `${NO_ROOM} the settings of ${[...new Set(lacking)].join(', ')}`
  const isShort = parts.some(({ lacks }) => lacks !== undefined)
  return isShort ? `${NO_ROOM} all endpoints that are down` : ''
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
  const all = Object.entries(part.settings)
  const kept = all.filter(([key]) => key.startsWith('drain'))
  if (kept.length === all.length) return part
  return { ...part, settings: Object.fromEntries(kept), lacks: 'settings' }
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
