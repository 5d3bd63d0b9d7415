import type { EndpointDrain } from '../../health/drain/drain.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import type { BuildReport, Contribution } from './owner-set.ts'
import { type Conflict, conflictAt, contrast } from './record-conflicts.ts'
import { equalRdata, isDrained, isTargetOut } from './target-indexes.ts'

const NONE: ReadonlySet<string> = new Set()

/**
 * Merges equal endpoints: a target is out of service if it is out in all of them. If a site uses one
 * set identifier for different endpoints, the first one is kept. Different sites may use the same.
 */
export function mergeEqual(
  members: readonly Contribution[],
  label: () => string,
  conflicts: Conflict[],
  report: BuildReport | undefined,
): readonly Contribution[] {
  if (members.length === 1) return members
  const identifiers = new Set(members.map((member) => member.endpoint.setIdentifier))
  if (identifiers.size === members.length) return members
  const contents = members.map(({ endpoint }) => contentKey(endpoint))
  const chosen = chooseContents(members, contents)
  const kept = new Map<string, Contribution>()
  for (const [i, member] of members.entries()) {
    const content = contents[i]!
    const namesake = chosen.get(nameOf(member))
    if (namesake !== undefined && contents[namesake] !== content) {
      const first = members[namesake]!
      conflicts.push({
        ...conflictAt(member, describeContradiction(label(), first, member)),
        isFault: true,
      })
      report?.dropped(member, { kind: 'contradicted', by: first.place })
      continue
    }
    const equal = kept.get(content)
    if (equal === undefined) kept.set(content, member)
    else {
      const isSilent = equal.isSilent && member.isSilent
      const units = mostUnits(equal, member)
      kept.set(content, { ...equal, ...joinOut(equal, member), units, isSilent })
      report?.dropped(member, { kind: 'merged', by: equal.place })
    }
  }
  return [...kept.values()]
}

/**
 * Returns the index of the endpoint that is served for each set identifier of a site: that of its first
 * record. Inside one record, the content decides, because other sites do not know the order there.
 */
function chooseContents(
  members: readonly Contribution[],
  contents: readonly string[],
): ReadonlyMap<string, number> {
  const chosen = new Map<string, number>()
  for (const [i, member] of members.entries()) {
    const name = nameOf(member)
    if (name === '') continue
    const known = chosen.get(name)
    const isInside = known !== undefined && members[known]!.key === member.key && member.site !== ''
    if (known === undefined || (isInside && contents[i]! < contents[known]!)) chosen.set(name, i)
  }
  return chosen
}

/** Returns the set identifier with the site; '' = there is no identifier. */
export function nameOf({ endpoint: { setIdentifier }, site }: Contribution): string {
  return setIdentifier === '' ? '' : JSON.stringify([setIdentifier, site])
}

/**
 * Returns the set identifiers that endpoints of several sites have, although the endpoints differ.
 * `sets`: of each type, without equal endpoints.
 */
export function findNamesakes(
  sets: readonly { readonly distinct: readonly Contribution[] }[],
): ReadonlySet<string> {
  let namesakes: Set<string> | undefined
  for (const { distinct } of sets) {
    const { site } = distinct[0]!
    if (distinct.every((member) => member.site === site)) continue
    const seen = new Set<string>()
    for (const { endpoint } of distinct) {
      const { setIdentifier } = endpoint
      if (setIdentifier === '') continue
      if (seen.has(setIdentifier)) (namesakes ??= new Set()).add(setIdentifier)
      seen.add(setIdentifier)
    }
  }
  return namesakes ?? NONE
}

/** Describes that one set identifier names two endpoints. */
export function describeContradiction(
  label: string,
  first: Contribution,
  other: Contribution,
): string {
  const [what, one, second] = difference(first.endpoint, other.endpoint)
  const id = JSON.stringify(first.endpoint.setIdentifier)
  const values = contrast([`${what} ${one}`, first], [second, other])
  return `${label}: set identifier ${id} with ${values}: the first is served, because an identifier names one endpoint; give each endpoint its own identifier`
}

/** Returns the first property in which two endpoints differ, and both values. */
export function difference(
  a: Endpoint,
  b: Endpoint,
): readonly [what: string, one: string, other: string] {
  for (const [what, print] of PROPERTIES) {
    const [one, other] = [print(a), print(b)]
    if (one !== other) return [what, one, other]
  }
  return ['targets', printTargets(a), printTargets(b)]
}

const PROPERTIES: readonly (readonly [what: string, print: (endpoint: Endpoint) => string])[] = [
  ['targets', printTargets],
  ['weight', ({ weight }) => `${weight ?? 'none'}`],
  ['geo codes', printCodes],
  ['location', ({ point }) => point?.text ?? 'none'],
]

function printTargets({ type, rdata }: Endpoint): string {
  return rdata
    .map((target) => printTarget(type, target))
    .sort()
    .join(', ')
}

function printCodes({ codes, isDefault }: Endpoint): string {
  const texts = codes.map(({ text }) => text).sort()
  return [...texts, ...(isDefault ? ['*'] : [])].join(', ') || 'none'
}

/** Everything that distinguishes an endpoint from the others of its name and type. */
export function contentKey(endpoint: Endpoint): string {
  const rdata = endpoint.rdata.map((r) => Buffer.from(r).toString('latin1')).sort()
  const codes = endpoint.codes.map((code) => code.text).sort()
  const { setIdentifier, weight, isDefault, point } = endpoint
  return JSON.stringify([setIdentifier, weight, isDefault, point?.text, codes, rdata])
}

/**
 * A target of two equal endpoints is out if it is out in both, and down if it is down in both. The
 * result has the indexes of `a`; the endpoints may have their targets in different orders.
 */
function joinOut(a: Contribution, b: Contribution): Pick<Contribution, 'down' | 'drained'> {
  const down = new Set<number>()
  const drained = new Map<number, EndpointDrain>()
  if (!hasOut(a) || !hasOut(b)) return { down, drained: undefined }
  for (const [i, target] of a.endpoint.rdata.entries()) {
    if (!isTargetOut(a, i)) continue
    const j = b.endpoint.rdata.findIndex((other) => equalRdata(other, target))
    if (!isTargetOut(b, j)) continue
    const ours = a.drained?.get(i)
    const theirs = b.drained?.get(j)
    const drain = ours ?? theirs
    const isDown = a.down.has(i) && b.down.has(j)
    if (isDown) down.add(i)
    if (drain !== undefined && (!isDown || (ours && theirs))) drained.set(i, drain)
  }
  return { down, drained: drained.size === 0 ? undefined : drained }
}

function hasOut(member: Contribution): boolean {
  return member.down.size > 0 || isDrained(member)
}

function mostUnits(one: Contribution, other: Contribution): number | undefined {
  if (one.units === undefined || other.units === undefined) return undefined
  return Math.max(one.units, other.units)
}
