import type { StoredAnswer } from '../cache/stored-answer.ts'
import type { Origin } from '../publish/explainable.ts'
import { WEIGHT_DEFAULT } from '../steering/candidate.ts'
import type {
  ExplainedCandidate,
  ExplainedChoice,
  ExplainedDraw,
  ExplainedEndpoint,
  ExplainedFailover,
  ExplainedLocation,
  ExplainedRung,
  ExplainedStep,
  Explanation,
} from './explanation.ts'

/** Returns the explanation as lines of text. Control characters are not escaped. */
export function printExplanation(explanation: Explanation): string[] {
  const { name, type, client, server, stored, location } = explanation
  const { steps, end, answer, scope, seed } = explanation
  const view = server.view === '' ? '' : `, view ${server.view}`
  const block = server.zone === '' ? 'none' : `${server.zone} at ${server.address}${view}`
  const directive = server.directive === '' ? '' : `, answered by ${server.directive}`
  return [
    `${name} ${type} for ${client.address}: ${printRcode(explanation)}`,
    `client: ${client.address}, from the ${client.source}: ${client.reason}`,
    ...printLocation(location),
    `server block: ${block}${directive}`,
    ...(stored === undefined ? [] : [`stored answer: ${printStored(stored)}`]),
    ...steps.flatMap((step, i) => ['', ...printStep(step, i + 1)]),
    '',
    `end: ${end.text}`,
    ...answer.map((record) => `answer: ${record.replaceAll('\t', ' ')}`),
    ...(scope === undefined ? [] : [`ECS scope: /${scope.bits}: ${scope.reason}`]),
    `seed: ${seed}`,
  ]
}

function printStored({ ageSeconds, lifetimeSeconds }: StoredAnswer): string {
  const left = lifetimeSeconds - ageSeconds
  const stored = `${ageSeconds} s old, valid for ${lifetimeSeconds} s`
  if (left > 0) return `${stored}: ${left} s left`
  return `${stored}: expired, and sent while the server asks for a new one (serve_stale)`
}

function printRcode({ rcode, end }: Explanation): string {
  if (rcode !== '') return rcode
  return end.kind === 'other directive' ? 'not known' : 'no reply'
}

function printLocation(location: ExplainedLocation | undefined): string[] {
  if (location === undefined) return ['location: not looked up']
  const { databases, net, asn, subdivisions, country, continent, coordinates } = location
  const all = [net, asn, ...subdivisions, country, continent, coordinates]
  const places = all.filter((text) => text !== '')
  const lines = [`location: ${places.length === 0 ? 'unknown' : places.join(', ')}`]
  for (const { file, type, built, prefix, isIgnored } of databases) {
    const age = built === '' ? '' : `, built ${built.slice(0, 10)}`
    const matched = isIgnored
      ? `not asked for ${prefix}, a special prefix`
      : `matched prefix ${prefix}`
    lines.push(`  database: ${file} (${type}${age}), ${matched}`)
  }
  return lines
}

function printStep(step: ExplainedStep, number: number): string[] {
  const { name, owner, type, zone, serial, rdata, endpoints, choice, notes } = step
  const wildcard = owner.toLowerCase() === name.toLowerCase() ? '' : `, from ${owner}`
  const version = serial === undefined ? '' : `, serial ${serial}`
  const where = zone === '' ? '' : ` (zone ${zone}${version})`
  const lines = [`step ${number}: ${name} ${type}${wildcard}${where}`]
  for (const note of notes) lines.push(`  note: ${note}`)
  for (const [i, endpoint] of (endpoints ?? []).entries()) lines.push(...printEndpoint(endpoint, i))
  if (choice !== undefined) {
    lines.push('  ladder:')
    for (const rung of choice.rungs) lines.push(...printRung(rung, endpoints ?? []))
    if (choice.failover !== undefined)
      lines.push(`  failover list: ${printFailover(choice.failover)}`)
    lines.push(...printDraws(choice, endpoints ?? []))
  }
  if (rdata.length === 0) return lines
  lines.push(`  served: ${rdata.join(', ')}`, `  TTL: ${step.ttlSeconds} s: ${step.ttlReason}`)
  return lines
}

/** Returns one line per draw. */
function printDraws(
  { draw, picks, stickyPrefix }: ExplainedChoice,
  endpoints: readonly ExplainedEndpoint[],
): string[] {
  const none =
    stickyPrefix === undefined ? 'not needed' : `none: sticky, by a hash of ${stickyPrefix}`
  if (picks === undefined) return [`  draw: ${draw === undefined ? none : printDraw(draw)}`]
  const lines = picks.map(({ endpoint, draw: drawn }, i) => {
    const id = idOf(endpoints[endpoint]!, endpoint)
    return `  draw ${i + 1} of ${picks.length}: ${drawn === undefined ? none : printDraw(drawn)}: ${id}`
  })
  return lines
}

function printDraw({ value, below }: ExplainedDraw): string {
  return `${value} of 0..${below - 1}`
}

function printFailover({ order, serving, isClosed }: ExplainedFailover): string {
  const list = order.join(', ')
  if (serving !== '') return `${list}: ${serving} serves`
  return `${list}: exhausted${isClosed ? ', and all-down is closed: NODATA' : ''}`
}

function printEndpoint(endpoint: ExplainedEndpoint, index: number): string[] {
  const { codes, weight, targets, alias, dropped, out, record } = endpoint
  const geo = codes.length === 0 ? '' : `, geo ${codes.join(' ')}`
  const weighing = weight === undefined ? '' : `, weight ${weight}`
  const where = printWhere(endpoint)
  const place = where === '' ? '' : `,${where}`
  const mark = endpoint.isChosen ? '*' : '-'
  const source = printOrigin(endpoint.origin)
  const origin = record === '' ? source : `${record} (${source})`
  const from = alias === undefined ? '' : ` from alias ${alias}`
  const lines = [
    `  ${mark} ${idOf(endpoint, index)}: ${targets.join(', ')}${from}${geo}${place}${weighing}; ${origin}`,
  ]
  if (dropped !== '') lines.push(`      dropped: ${dropped}`)
  for (const { target, reason } of out) lines.push(`      ${target} is ${reason}`)
  return lines
}

/** ` at 52.52,13.40 (12 km)`; '' = the endpoint has no location. */
function printWhere({ location, distanceKm }: ExplainedEndpoint): string {
  if (location === '') return ''
  const distance = distanceKm === undefined ? '' : ` (${distanceKm} km)`
  return ` at ${location}${distance}`
}

function idOf({ setIdentifier }: ExplainedEndpoint, index: number): string {
  return setIdentifier === '' ? `endpoint ${index + 1}` : setIdentifier
}

function printOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'manifest':
      return `${origin.file}:${origin.line}`
    case 'cluster':
      return 'cluster'
    case 'peers': {
      const peers = origin.peers.map(({ peer, site, ageSeconds }) => {
        return `${peer} of ${site}, ${ageSeconds} s ago`
      })
      // No peer reports a record of a site that is silent since a restart.
      return peers.join('; ') || `of ${origin.site}`
    }
    case 'corefile':
      return 'Corefile'
    default:
      return 'default of the server'
  }
}

function printRung(
  { rung, code, outcome, nearest, nearer = [], candidates }: ExplainedRung,
  endpoints: readonly ExplainedEndpoint[],
): string[] {
  const parts = [rung, code, nearest === undefined ? '' : printNearest(rung, nearest)]
  const label = parts.filter((part) => part !== '').join(' ')
  const members = candidates.map((candidate) => printCandidate(candidate, endpoints))
  const list = members.length === 0 ? '' : `: ${members.join(', ')}`
  return [
    `    ${label}: ${outcome}${list}`,
    ...nearer.map(({ endpoint, reason }) => {
      const of = endpoints[endpoint]!
      return `      nearer: ${idOf(of, endpoint)}${printWhere(of)}: ${reason}`
    }),
  ]
}

function printCandidate(
  { endpoint, weight, share, isStandby, rank }: ExplainedCandidate,
  endpoints: readonly ExplainedEndpoint[],
): string {
  const of = endpoints[endpoint]!
  const id = idOf(of, endpoint)
  if (isStandby) return `${id} (weight 0, standby)`
  const facts: string[] = []
  if (weight !== undefined) {
    const full = of.weight ?? WEIGHT_DEFAULT
    facts.push(`weight ${weight}${weight < full ? ` of ${full}, slow start` : ''}`)
  }
  if (rank !== undefined) facts.push(`rank ${rank}`)
  return `${id} ${percent(share)}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`
}

function printNearest(rung: string, nearest: string): string {
  return rung === 'nearest' ? nearest : `nearest ${nearest}`
}

function percent(share: number): string {
  return `${Math.round(share * 1000) / 10}%`
}
