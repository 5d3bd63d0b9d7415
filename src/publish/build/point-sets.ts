import type { PointSet } from '../../geo/classes/point-orders.ts'
import type { Point } from '../../geo/point.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import type { Contribution } from './owner-set.ts'
import { type Conflict, conflictAt } from './record-conflicts.ts'

/** Returns the point sets of an RRset, and notes an endpoint without a location that competes with located ones. */
export function settlePoints(
  members: readonly Contribution[],
  label: () => string,
  conflicts: Conflict[],
): readonly PointSet[] | undefined {
  if (!members.some(({ endpoint }) => isLocated(endpoint))) return undefined
  const endpoints = members.map(({ endpoint }) => endpoint)
  const unlocated = findUnlocated(endpoints)
  const odd = members.find(({ endpoint }) => unlocated.has(endpoint))
  if (odd !== undefined) {
    const text = `${label()}: an endpoint (${odd.place}) has no location, but others have: it gets no clients whose coordinates are known; add a location`
    conflicts.push(conflictAt(odd, text))
  }
  return pointSetsOf(endpoints)
}

/**
 * Returns the points that compete for the clients of one rung of the ladder: those of the endpoints
 * of one geo code, of those without a code, and of all. Endpoints that are out of service count too, so
 * that a change of health makes no new distinctions. A single point where all endpoints of a rung are
 * has no effect.
 */
function pointSetsOf(endpoints: readonly Endpoint[]): readonly PointSet[] {
  const sets = [...rungsOf(endpoints), endpoints].flatMap((rung) => {
    const points = new Map<string, Point>()
    for (const { point } of rung) if (point !== undefined) points.set(point.text, point)
    const isAlike = points.size === 1 && rung.every(isLocated) && !isPartlyDefault(rung)
    if (points.size === 0 || isAlike) return []
    return [[...points.values()].sort((a, b) => (a.text < b.text ? -1 : 1))]
  })
  const byText = new Map(sets.map((set) => [set.map(({ text }) => text).join(' '), set]))
  return [...byText.values()]
}

/**
 * Returns the endpoints without a location that share a rung of the ladder with located ones. A default
 * endpoint may be without one: it is for clients whose coordinates are unknown.
 */
function findUnlocated(endpoints: readonly Endpoint[]): ReadonlySet<Endpoint> {
  const found = new Set<Endpoint>()
  for (const rung of rungsOf(endpoints)) {
    if (!rung.some(isLocated)) continue
    for (const one of rung) if (!isLocated(one) && !one.isDefault) found.add(one)
  }
  return found
}

/** Groups endpoints by geo code; one group has those that can serve clients without a matching code. */
function rungsOf(endpoints: readonly Endpoint[]): Iterable<readonly Endpoint[]> {
  const rungs = new Map<string, Endpoint[]>()
  for (const endpoint of endpoints) {
    const codes = endpoint.codes.map(({ text }) => text)
    if (codes.length === 0 || endpoint.isDefault) codes.push('')
    for (const code of codes) {
      const rung = rungs.get(code)
      if (rung === undefined) rungs.set(code, [endpoint])
      else rung.push(endpoint)
    }
  }
  return rungs.values()
}

/** True if some clients get the default endpoints of a rung, and others all. */
function isPartlyDefault(rung: readonly Endpoint[]): boolean {
  return rung.some(({ isDefault }) => isDefault) && rung.some(({ isDefault }) => !isDefault)
}

function isLocated({ point }: Endpoint): boolean {
  return point !== undefined
}
