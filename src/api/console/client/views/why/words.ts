import { printAge, printPercent } from '../../shell/format.ts'
import type {
  WhyCandidate,
  WhyChoice,
  WhyDatabase,
  WhyDraw,
  WhyEndpoint,
  WhyExplanation,
  WhyLocation,
  WhyRung,
  WhyStep,
} from './explanation.ts'

/** Candidates that a sentence names; the table has all. */
const CANDIDATES_MAX = 20
/** Of an endpoint without a weight, beside others that have one. */
const WEIGHT_DEFAULT = 120

/** The result in one line. */
export function printResult({ name, type, client, rcode, end }: WhyExplanation): string {
  const unknown = end.kind === 'other directive' ? 'not known' : 'no reply'
  return `${name} ${type} for ${client.address}: ${rcode || unknown}`
}

export function printClient({ client }: WhyExplanation): string {
  const { address, source, reason } = client
  return `The server chooses for ${address}, from the ${source}: ${reason}.`
}

/** '' = the query has no client subnet. */
export function printScope({ scope }: WhyExplanation): string {
  if (scope === undefined) return ''
  const { bits, reason } = scope
  const who = bits === 0 ? 'all clients' : `clients with the same first ${bits} bits`
  return `A resolver may give this answer to ${who} (scope /${bits}): ${reason}.`
}

export function printPlace(location: WhyLocation | undefined): string {
  if (location === undefined)
    return 'The server did not look up the location: the answer does not depend on it.'
  const { net, asn, subdivisions, country, continent, coordinates } = location
  const places = [net, asn, ...subdivisions, country, continent, coordinates]
  const known = places.filter((place) => place !== '')
  return known.length === 0
    ? 'The location of the client is unknown.'
    : `The client is in ${known.join(', ')}.`
}

export function printDatabase({ file, type, built, prefix, isIgnored }: WhyDatabase): string {
  const age = built === '' ? '' : `, built ${built.slice(0, 10)}`
  const matched = isIgnored
    ? `not used for ${prefix}, which is reserved for special purposes`
    : `matched prefix ${prefix}`
  return `${file} (${type}${age}): ${matched}`
}

export function printServer({ server }: WhyExplanation): string {
  const { address, zone, view, directive } = server
  if (zone === '') return 'No server block serves the name.'
  const of = view === '' ? '' : ` with the view ${view}`
  const by = directive === '' ? '' : `; the directive ${directive} answers`
  return `The server block ${zone} at ${address}${of} receives the query${by}.`
}

/** '' = no cache answers. */
export function printStored({ stored }: WhyExplanation): string {
  if (stored === undefined) return ''
  const { ageSeconds, lifetimeSeconds } = stored
  const start = `The cache sends an answer that is ${printAge(ageSeconds)} old`
  const left = lifetimeSeconds - ageSeconds
  if (left > 0) return `${start}, and valid for ${printAge(left)} more.`
  return `${start}. It has expired, and is sent while the server asks for a new one (serve_stale).`
}

/** Title of a step. */
export function printStep({ name, owner, type, zone, serial }: WhyStep): string {
  const wildcard = owner.toLowerCase() === name.toLowerCase() ? '' : `, from ${owner}`
  const version = serial === undefined ? '' : `, serial ${serial}`
  return `${name} ${type}${wildcard}${zone === '' ? '' : ` (zone ${zone}${version})`}`
}

/** '' = the step serves nothing. */
export function printServed({ rdata, ttlSeconds, ttlReason }: WhyStep): string {
  return rdata.length === 0 ? '' : `Served: ${rdata.join(', ')}. TTL ${ttlSeconds} s: ${ttlReason}.`
}

/** Returns a name of an endpoint; `index`: among those of the step. */
export function idOf(endpoint: WhyEndpoint | undefined, index: number): string {
  return endpoint?.setIdentifier || `endpoint ${index + 1}`
}

/** Where the endpoint is configured, to copy. */
export function printOrigin({ record, origin }: WhyEndpoint): string {
  const place = placeOf(origin)
  return record === '' ? place : `${record} ${place}`
}

function placeOf({ kind, file = '', line, site = '', peers = [] }: WhyEndpoint['origin']): string {
  if (kind === 'manifest') return `${file}:${line}`
  if (kind === 'corefile') return 'Corefile'
  if (kind === 'default') return 'default of the server'
  if (kind !== 'peers') return kind
  const reports = peers.map(
    (peer) => `${peer.peer} of ${peer.site}, ${printAge(peer.ageSeconds)} ago`,
  )
  return reports.join('; ') || `of ${site}`
}

/** ` (12 km)` after a location; '' = no location. */
export function printDistance({ location, distanceKm }: WhyEndpoint): string {
  return distanceKm === undefined ? location : `${location} (${distanceKm} km)`
}

/** Why an endpoint serves or does not. */
export function printFate({ isChosen, dropped, share }: WhyEndpoint): string {
  if (isChosen) return 'in this answer'
  if (dropped !== '') return `dropped: ${dropped}`
  return share > 0 ? 'possible, not drawn' : 'not for this client'
}

const OUTCOMES: Readonly<Record<string, string>> = {
  'no code': 'the client has no code here',
  'no endpoint': 'no endpoint has this code',
  'passed over': 'its endpoints are standbys (weight 0), and a later rung has others',
  decided: 'these endpoints serve',
  'not reached': 'not needed: a rung before it decided',
  'not matched': 'the location database has changed, and the groups are not rebuilt yet',
  'no coordinates': 'the coordinates of the client are unknown',
}

export function printOutcome({ outcome }: WhyRung): string {
  return OUTCOMES[outcome] ?? outcome
}

export function printRung({ rung, code, nearest }: WhyRung): string {
  const near = nearest === undefined ? '' : rung === 'nearest' ? nearest : `nearest ${nearest}`
  return [rung, code, near].filter((part) => part !== '').join(' ')
}

export function printCandidates(
  { candidates }: WhyRung,
  endpoints: readonly WhyEndpoint[],
): string {
  const shown = candidates.slice(0, CANDIDATES_MAX).map((one) => printCandidate(one, endpoints))
  const more = candidates.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

function printCandidate(
  { endpoint, weight, share, isStandby, rank }: WhyCandidate,
  endpoints: readonly WhyEndpoint[],
): string {
  const id = idOf(endpoints[endpoint], endpoint)
  if (isStandby) return `${id} (weight 0, standby)`
  const full = endpoints[endpoint]?.weight ?? WEIGHT_DEFAULT
  const facts: string[] = []
  if (weight !== undefined) {
    facts.push(`weight ${weight}${weight < full ? ` of ${full}, slow start` : ''}`)
  }
  if (rank !== undefined) facts.push(`rank ${rank}`)
  return `${id} ${printPercent(share)}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`
}

/** Returns why nearer endpoints do not serve. */
export function printNearer({ nearer = [] }: WhyRung, endpoints: readonly WhyEndpoint[]): string[] {
  return nearer.map(({ endpoint, reason }) => {
    const of = endpoints[endpoint]
    const at = of === undefined ? '' : ` at ${printDistance(of)}`
    return `${idOf(of, endpoint)}${at} is nearer, but does not serve: ${reason}`
  })
}

/** '' = no failover list decided. */
export function printFailover({ failover }: WhyChoice): string {
  if (failover === undefined) return ''
  const { order, serving, isClosed } = failover
  const list = `Failover list ${order.join(', ')}`
  if (serving !== '') return `${list}: ${serving} serves.`
  return `${list}: exhausted${isClosed ? ', and all-down is closed: the answer is empty' : ''}.`
}

/** Returns a sentence for each draw. */
export function printDraws(
  { draw, picks, stickyPrefix }: WhyChoice,
  endpoints: readonly WhyEndpoint[],
): string[] {
  const how = (drawn: WhyDraw | undefined): string => {
    if (drawn !== undefined) return `the draw is ${drawn.value} of 0 to ${drawn.below - 1}`
    if (stickyPrefix === undefined) return 'no draw is needed: one outcome is possible'
    return `no draw: all clients in ${stickyPrefix} get the same (sticky)`
  }
  if (picks === undefined) return [`${how(draw)}.`]
  return picks.map(({ endpoint, draw: drawn }, i) => {
    const id = idOf(endpoints[endpoint], endpoint)
    return `${i + 1} of ${picks.length}, ${id}: ${how(drawn)}.`
  })
}
