import type { AnswerMap, MapGroup, MapPlace, MapShare } from '../../plugin/admin-map.ts'
import type { GraphNode, MapGraph } from './map-graph.ts'
import type { PlacedCell } from './placed-cells.ts'

/** Returns the tier that serves clients of a class. */
export type TierOf = (node: GraphNode, clientClass: number) => number

/** Probability of each answer. */
type Distribution = ReadonlyMap<number, number>

interface Parts {
  ipv4: number
  ipv6: number
}

/** Answers in a reply. */
export const ANSWERS_MAX = 5000
/** Shares of all groups in a reply: about 40 octets each. */
const SHARES_MAX = 20_000

/** Adds up which answers the clients of each place get. Offers a pause at each `yield`. */
export function* sumPlaces(
  graph: MapGraph,
  cells: readonly PlacedCell[],
  tierOf: TierOf,
): Generator<void, { groups: MapGroup[]; places: MapPlace[] }> {
  const distributions = new Distributions(graph, tierOf)
  const byPlace = new Map<string, Map<Distribution, Parts>>()
  for (const { clientClass, place, ipv4, ipv6 } of cells) {
    const distribution = distributions.of(clientClass)
    const parts = byPlace.get(place) ?? new Map<Distribution, Parts>()
    byPlace.set(place, parts)
    const sum = parts.get(distribution) ?? { ipv4: 0, ipv6: 0 }
    parts.set(distribution, sum)
    sum.ipv4 += ipv4
    sum.ipv6 += ipv6
    yield
  }
  const groups = new Groups()
  const places: MapPlace[] = []
  for (const [code, parts] of byPlace) {
    places.push({ code, group: groups.add(sharesOf(parts)) })
    yield
  }
  return { groups: groups.shortened(), places: places.sort((a, b) => (a.code < b.code ? -1 : 1)) }
}

/** The answers of clients by their class. Classes that no node distinguishes have one distribution. */
class Distributions {
  readonly #graph: MapGraph
  readonly #tierOf: TierOf
  readonly #byClass = new Map<number, Distribution>()
  readonly #byTiers = new Map<string, Distribution>()

  constructor(graph: MapGraph, tierOf: TierOf) {
    this.#graph = graph
    this.#tierOf = tierOf
  }

  of(clientClass: number): Distribution {
    const known = this.#byClass.get(clientClass)
    if (known !== undefined) return known
    const { nodes, root } = this.#graph
    const tiers = new Map(nodes.map((node) => [node, this.#tierOf(node, clientClass)]))
    const key = [...tiers.values()].join()
    const found = this.#byTiers.get(key) ?? distribute(root, tiers)
    this.#byTiers.set(key, found)
    this.#byClass.set(clientClass, found)
    return found
  }
}

function distribute(root: GraphNode, tiers: ReadonlyMap<GraphNode, number>): Distribution {
  const known = new Map<GraphNode, Distribution>()
  const visit = (node: GraphNode): Distribution => {
    const earlier = known.get(node)
    if (earlier !== undefined) return earlier
    const found = new Map<number, number>()
    // A loop of CNAMEs leads to no answer.
    known.set(node, found)
    const add = (answer: number, part: number): void => {
      found.set(answer, (found.get(answer) ?? 0) + part)
    }
    for (const { part, answers, next } of node.tiers[tiers.get(node)!]!) {
      for (const answer of answers) add(answer, part)
      if (next === undefined) continue
      for (const [answer, share] of visit(next)) add(answer, share * part)
    }
    return found
  }
  return visit(root)
}

/** A family without addresses at a place has the shares of the other one. */
function sharesOf(parts: ReadonlyMap<Distribution, Parts>): MapShare[] {
  const total = { ipv4: 0, ipv6: 0 }
  for (const { ipv4, ipv6 } of parts.values()) {
    total.ipv4 += ipv4
    total.ipv6 += ipv6
  }
  const shares = new Map<number, Parts>()
  for (const [distribution, { ipv4, ipv6 }] of parts) {
    const isOnly = parts.size === 1
    const part4 = isOnly ? 1 : total.ipv4 === 0 ? ipv6 / total.ipv6 : ipv4 / total.ipv4
    const part6 = isOnly ? 1 : total.ipv6 === 0 ? part4 : ipv6 / total.ipv6
    for (const [answer, share] of distribution) {
      const sum = shares.get(answer) ?? { ipv4: 0, ipv6: 0 }
      shares.set(answer, sum)
      sum.ipv4 += share * part4
      sum.ipv6 += share * part6
    }
  }
  return [...shares]
    .map(([answer, { ipv4, ipv6 }]) => ({ answer, ipv4: rounded(ipv4), ipv6: rounded(ipv6) }))
    .sort((a, b) => largest(b) - largest(a) || a.answer - b.answer)
}

function largest({ ipv4, ipv6 }: MapShare): number {
  return Math.max(ipv4, ipv6)
}

/** A share above 0 is never rounded to 0. */
function rounded(share: number): number {
  if (share === 0) return 0
  return Math.min(1, Math.max(1e-9, Math.round(share * 1e9) / 1e9))
}

/** Groups of equal shares. */
class Groups {
  readonly #groups: (readonly MapShare[])[] = []
  readonly #byKey = new Map<string, number>()

  /** Returns the number of the group. */
  add(shares: readonly MapShare[]): number {
    const key = JSON.stringify(shares)
    const number = this.#byKey.get(key) ?? this.#groups.push(shares) - 1
    this.#byKey.set(key, number)
    return number
  }

  shortened(): AnswerMap['groups'][number][] {
    const most = Math.max(8, Math.floor(SHARES_MAX / Math.max(1, this.#groups.length)))
    return this.#groups.map((shares) => {
      const listed = shares.filter(({ answer }) => answer < ANSWERS_MAX).slice(0, most)
      return { shares: listed, sharesOmitted: shares.length - listed.length }
    })
  }
}
