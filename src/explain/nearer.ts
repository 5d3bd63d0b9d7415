import { WHOLE_SET_MAX } from '../geo/classes/point-orders.ts'
import type { GeoCode } from '../geo/code.ts'
import { type Coordinates, distanceKm, type Point } from '../geo/point.ts'
import type { Endpoint } from '../records/dns-record.ts'
import type { Candidate } from '../steering/candidate.ts'
import { type FailoverList, servingGroup } from '../steering/failover.ts'
import { type BuiltSet, printDrop } from './endpoints.ts'
import type { NearerEndpoint } from './explanation.ts'
import { membersOfTier, passedOverAt, type ReportedTiers } from './reported-tiers.ts'

/** Places whose distances differ by less, a millimetre, are at the same distance. */
const EQUAL_KM = 1e-6

interface NearerParts extends Pick<BuiltSet, 'set' | 'endpoints'> {
  readonly reported: ReportedTiers
  /** The tier that decided. */
  readonly tier: number
  /** Undefined = unknown. */
  readonly client: Coordinates | undefined
  /** Index of the endpoint that a candidate was built from. */
  indexOf(candidate: Candidate): number
}

/**
 * Returns the endpoints that would serve by their distance if they were in service: those of the tier that decided
 * whose location is nearer than the location that serves. If the endpoints that serve have no location, any location
 * is nearer. The nearest comes first.
 */
export function findNearer(parts: NearerParts): NearerEndpoint[] {
  const { endpoints, client } = parts
  const limitKm = client === undefined ? undefined : limitOf(parts, client)
  if (client === undefined || limitKm === undefined) return []
  const found = new Map<number, { readonly km: number; readonly reason: string }>()
  const add = (endpoint: number, reason: string): void => {
    const { point } = endpoints[endpoint]!.contribution.endpoint
    if (point === undefined || found.has(endpoint)) return
    const km = distanceKm(client, point)
    if (km < limitKm - EQUAL_KM) found.set(endpoint, { km, reason })
  }
  const competes = competitorsOf(parts)
  for (const [i, { contribution, dropped }] of endpoints.entries()) {
    // An equal endpoint represents a merged one.
    if (dropped === undefined || dropped.kind === 'merged') continue
    if (competes(contribution.endpoint)) add(i, printDrop(dropped))
  }
  for (const standby of standbysOf(parts)) add(parts.indexOf(standby), 'weight 0, standby')
  for (const candidate of rivalsOf(parts)) add(parts.indexOf(candidate), reasonInService(parts))
  return [...found]
    .sort(([, a], [, b]) => a.km - b.km)
    .map(([endpoint, { reason }]) => ({ endpoint, reason }))
}

/** The code of the tier that decided; undefined = it is for clients that no code matches. */
function codeOf({ reported, tier }: NearerParts): GeoCode | undefined {
  return reported.keys[tier]?.code
}

/**
 * Kilometres from the client to the location that serves; infinity = the endpoints that serve have no location.
 * Undefined = the distance did not matter.
 */
function limitOf({ reported, tier }: NearerParts, client: Coordinates): number | undefined {
  const members = membersOfTier(reported, tier)
  const points = new Map<string, Point>()
  for (const { point } of members) if (point !== undefined) points.set(point.text, point)
  // If one location is left, its tier has no point: it serves clients without coordinates too.
  const [only, ...others] = points.values()
  const serving = reported.keys[tier]?.point ?? (others.length === 0 ? only : undefined)
  if (serving !== undefined) return distanceKm(client, serving)
  return points.size === 0 ? Number.POSITIVE_INFINITY : undefined
}

/** Returns a function that is true for endpoints whose distance would count in the tier that decided. */
function competitorsOf(parts: NearerParts): (endpoint: Endpoint) => boolean {
  const { reported, tier } = parts
  const list = reported.lists.get(tier)
  if (list !== undefined) return competitorsOfList(list)
  const code = codeOf(parts)
  if (code !== undefined) return ({ codes }) => codes.some(({ text }) => text === code.text)
  const members = membersOfTier(reported, tier)
  // Endpoints without a code compete first, then those of the last tier.
  const isLast = tier === reported.keys.length || !members.every(isWithoutCode)
  const areDefaults = reported.hasDefault && passedOverAt(reported, '').length === 0
  return ({ codes, isDefault }) => {
    return codes.length === 0 || (isLast && (isDefault || !areDefaults))
  }
}

/** The endpoints of the entry that serves. Those of the entries before it are passed over by the list. */
function competitorsOfList(list: FailoverList): (endpoint: Endpoint) => boolean {
  const { name, isIdentifier } = servingGroup(list) ?? {}
  // A set identifier is one endpoint.
  if (name === undefined || isIdentifier === true) return () => false
  return ({ codes, isDefault }) => {
    return name === '*' ? isDefault : codes.some(({ text }) => text === name)
  }
}

function isWithoutCode({ code }: Candidate): boolean {
  return code === undefined
}

/** The standbys at other locations of the tier that decided. */
function standbysOf(parts: NearerParts): Candidate[] {
  const code = codeOf(parts)?.text
  return parts.reported.passedOver.flatMap(({ key, members }) => {
    return key?.point !== undefined && key.code?.text === code ? members : []
  })
}

/** The candidates at other locations of the tier that decided, if the distance decided. */
function rivalsOf(parts: NearerParts): Candidate[] {
  const { reported, tier } = parts
  const decided = reported.keys[tier]
  if (decided?.point === undefined) return []
  return reported.keys.flatMap(({ code, point }, i) => {
    const isRival = i !== tier && point !== undefined && code?.text === decided.code?.text
    return isRival ? membersOfTier(reported, i) : []
  })
}

/** Why an endpoint in service does not serve although it is nearer. */
function reasonInService({ set }: NearerParts): string {
  const isLarge = (set?.pointSets ?? []).some(({ length }) => length > WHOLE_SET_MAX)
  return isLarge
    ? `in service, but the order of more than ${WHOLE_SET_MAX} locations is approximate`
    : 'in service, but the GEO classes do not have the coordinates of the database yet'
}
