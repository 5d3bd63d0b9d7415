import type { ApiObject } from '../../kube/api.ts'
import { recordId } from '../../records/record-source.ts'
import { SITES_ANNOTATION } from '../../records/site-facts.ts'
import type { Write } from '../plan/write.ts'
import { isSame } from '../record/fields.ts'
import { ZONE_LABEL } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { composeSitesAnnotation, describeLacks } from '../record/sites-annotation.ts'
import { readSpecEndpoints, type SpecEndpoint } from '../record/spec-endpoint.ts'
import {
  authoritativeHost,
  authoritativeKey,
  authoritativeName,
  composeAuthoritative,
} from './authoritative-record.ts'
import type { OwnerFacts } from './contribution.ts'
import { sortTargets } from './endpoint-states.ts'
import { type EndpointPlan, isSameSet, planEndpoints } from './plan-endpoints.ts'
import {
  drainEndMs,
  findRest,
  type OwnedPart,
  readOwnedParts,
  readWholeEndpoints,
  restoreWhole,
  selectServed,
} from './whole.ts'

/** What one delegating record wants in its authoritative record. */
export interface DelegatedEndpoints {
  /** Empty = its endpoints are removed. */
  readonly endpoints: readonly SpecEndpoint[]
  readonly facts: OwnerFacts
  /** Short id of the record's cluster; '' = this one. */
  readonly cluster: string
  /** Group of the record's cluster; '' = none. */
  readonly group: string
}

/** The authoritative record after a change: what is in service, and the facts of all owners. */
interface AuthoritativePlan {
  /** New `spec.endpoints`; empty = the record is to be deleted. */
  readonly endpoints: readonly ApiObject[]
  /** The annotation with the facts; '' = none. */
  readonly annotation: string
  readonly isChanged: boolean
  /** What of any owner had no room: as in `SitesAnnotation`. */
  readonly note: string
  readonly isWhole: boolean
}

/** An authoritative record after one owner has contributed to it. */
export interface ContributionPlan
  extends AuthoritativePlan,
    Pick<EndpointPlan, 'conflicts' | 'disputes' | 'owners'> {
  /** Number of endpoints with registry notes, also of those that are out of service. */
  readonly count: number
}

/** Where and when a plan is made. */
interface PlanScene {
  /** Our own site; '' = that of the present annotation. */
  readonly site: string
  /** Time of day: drains end. */
  readonly timeMs: number
}

/** All endpoints of an authoritative record, in service or not, and what its owners contribute. */
interface Whole {
  readonly endpoints: readonly SpecEndpoint[]
  readonly parts: readonly OwnedPart[]
}

/** `authoritative` after `record` has contributed to it. */
export function planContribution(
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  { endpoints, facts, cluster, group }: DelegatedEndpoints,
  scene: PlanScene,
): ContributionPlan {
  const { ownerId, rootHost } = record
  const present = readWhole(authoritative)
  const plan = planEndpoints(present.endpoints, {
    owner: ownerId,
    group,
    cluster,
    rootHost,
    desired: endpoints,
    previous: record.publishedEndpoints,
  })
  const owner = { id: ownerId, cluster, group }
  const contributed = plan.contributed.map(({ object }) => object)
  // What was decided about another cluster holds until it is decided again.
  const decided = present.parts.find((one) => one.owner.id === ownerId)?.decided
  const kept = cluster === '' || decided === undefined ? {} : { decided }
  const part: OwnedPart = { ...facts, endpoints: contributed, owner, ...kept }
  const others = present.parts.filter((one) => one.owner.id !== ownerId)
  const parts = contributed.length === 0 ? others : [...others, part]
  const { conflicts, disputes, owners } = plan
  const settled = settle(record, authoritative, { endpoints: plan.endpoints, parts }, scene)
  return { ...settled, conflicts, disputes, owners, count: plan.endpoints.length }
}

/** An owner that is removed, and what it had when it last succeeded; empty = not known. */
export interface Departure {
  readonly owner: string
  readonly previous: readonly SpecEndpoint[]
}

/** `authoritative` without what these owners contributed. */
export function planRemoval(
  authoritative: DnsRecordView,
  departures: readonly Departure[],
  scene: PlanScene,
): AuthoritativePlan {
  const { rootHost } = authoritative
  const { endpoints, parts } = readWhole(authoritative)
  let left = endpoints
  for (const departure of departures) {
    const removal = { ...departure, group: '', cluster: '', rootHost, desired: [] }
    left = readSpecEndpoints(planEndpoints(left, removal).endpoints)
  }
  const owners = new Set(departures.map(({ owner }) => owner))
  const whole = {
    endpoints: left.map(({ object }) => object),
    parts: parts.filter((part) => !owners.has(part.owner.id)),
  }
  return settle(authoritative, authoritative, whole, scene)
}

/** `authoritative` with what was decided about the addresses of its owners. `decidedOf`: as in `SitePart`. */
export function planDecided(
  authoritative: DnsRecordView,
  decidedOf: (part: OwnedPart) => OwnedPart['decided'],
  scene: PlanScene,
): AuthoritativePlan {
  const parts = readOwnedParts(authoritative)
  const decided = parts.map(decidedOf)
  const hasEnded = parts.map(drainEndMs).some((ms) => ms > -Infinity && ms <= scene.timeMs)
  if (!hasEnded && parts.every((part, i) => isSame(part.decided, decided[i]))) {
    const annotation = authoritative.annotation(SITES_ANNOTATION)
    const endpoints = authoritative.endpointObjects
    return { endpoints, annotation, isChanged: false, note: describeLacks(parts), isWhole: true }
  }
  const whole = {
    endpoints: restoreWhole(authoritative, parts).map(({ object }) => object),
    parts: parts.map(({ decided: _, ...part }, i): OwnedPart => {
      return decided[i] === undefined ? part : { ...part, decided: decided[i] }
    }),
  }
  return settle(authoritative, authoritative, whole, scene)
}

function readWhole(authoritative: DnsRecordView | undefined): Whole {
  if (authoritative === undefined) return { endpoints: [], parts: [] }
  const parts = readOwnedParts(authoritative)
  return { endpoints: restoreWhole(authoritative, parts), parts }
}

/** Chooses what is in service, and describes the rest. */
function settle(
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  whole: { readonly endpoints: readonly ApiObject[]; readonly parts: readonly OwnedPart[] },
  { site, timeMs }: PlanScene,
): AuthoritativePlan {
  const host = authoritativeHost(record.rootHost)
  const parts = whole.parts
    .map((part) => ({ ...part, endpoints: part.endpoints.map(toPlainForm) }))
    .sort(compareParts)
  const all = readWholeEndpoints(whole.endpoints)
  const served = selectServed(all, parts, host, timeMs)
  const present = authoritative?.endpointObjects ?? []
  const isSame = isSameSet(served, present)
  const endpoints = isSame ? present : served
  const writer = site === '' ? siteOf(authoritative) : site
  if (writer === '' || endpoints.length === 0) {
    return { endpoints, annotation: '', isChanged: !isSame, note: '', isWhole: true }
  }
  const rest = findRest(all, parts)
  const unowned = {
    site: writer,
    id: recordId(authoritativeKey(record)),
    name: '',
    createdSeconds: Math.floor((Date.parse(authoritative?.created ?? '') || 0) / 1000),
    settings: {},
    endpoints: rest,
    down: {},
  }
  const facts = { site: writer, parts: rest.length === 0 ? parts : [unowned, ...parts] }
  const composed = composeSitesAnnotation(facts, endpoints, identityOf, authoritative)
  const { text: annotation, note, isWhole } = composed
  const isAnnotated = (authoritative?.annotation(SITES_ANNOTATION) ?? '') === annotation
  return { endpoints, annotation, isChanged: !isSame || !isAnnotated, note, isWhole }
}

/** The site that wrote the present annotation; '' = it is not valid. */
function siteOf(authoritative: DnsRecordView | undefined): string {
  const facts = authoritative?.siteFacts ?? ''
  return typeof facts === 'string' ? '' : facts.site
}

/** Older records first; those of unknown age last. */
function compareParts(a: OwnedPart, b: OwnedPart): number {
  const keyOf = ({ createdSeconds, site, id, owner }: OwnedPart) => {
    return [createdSeconds || Infinity, site, id, owner.id]
  }
  const [one, other] = [keyOf(a), keyOf(b)]
  const differing = one.findIndex((value, i) => value !== other[i])
  if (differing === -1) return 0
  return one[differing]! < other[differing]! ? -1 : 1
}

/** The same text for endpoints that are the same for clients. */
function identityOf(object: ApiObject): string {
  return JSON.stringify(toPlainForm(object))
}

/** An endpoint without labels and order of targets, which depend on the other owners. */
function toPlainForm(object: ApiObject): ApiObject {
  const [endpoint] = readSpecEndpoints([object]) as [SpecEndpoint]
  const { dnsName, recordType, setIdentifier, targets, ttlSeconds, providerSpecific } = endpoint
  return {
    dnsName,
    recordType,
    targets: sortTargets(targets),
    ...(ttlSeconds === 0 ? {} : { recordTTL: ttlSeconds }),
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    ...(providerSpecific.length === 0 ? {} : { providerSpecific }),
  }
}

/**
 * The write that makes the authoritative record for `record` as planned, if it changes. Without endpoints it is
 * deleted. `zone`: '' = unchanged.
 */
export function writeAuthoritative(
  { namespace, rootHost }: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  { endpoints, annotation, isChanged }: AuthoritativePlan,
  zone = '',
): Write[] {
  if (endpoints.length === 0) {
    return authoritative === undefined ? [] : [{ kind: 'drop', record: authoritative }]
  }
  if (!isChanged) return []
  const identity = {
    namespace,
    rootHost,
    provider: authoritative?.providerName ?? '',
    // Server-side apply removes fields that were ours and are missing from the new object.
    zone: zone === '' ? (authoritative?.label(ZONE_LABEL) ?? '') : zone,
  }
  const record = composeAuthoritative(identity, endpoints, annotation)
  return [{ kind: 'put', record, over: authoritative }]
}

/** Why the existing object must not be written to; '' = it may be. */
export function findObstacle(
  { rootHost }: DnsRecordView,
  authoritative: DnsRecordView | undefined,
): string {
  if (authoritative === undefined) return ''
  const isAuthoritative = authoritative.role === 'authoritative'
  const isOfHost = authoritative.rootHost === authoritativeHost(rootHost)
  if (isAuthoritative && isOfHost) return ''
  const name = authoritativeName(rootHost)
  return isAuthoritative
    ? `DNSRecord ${name} belongs to the host ${authoritative.rootHost}, which has the same hash`
    : `DNSRecord ${name} exists and was not created for delegating records; rename it`
}
