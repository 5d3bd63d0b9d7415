import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { Address } from '../../dns/text/address.ts'
import type { Selector } from '../selectors/selector.ts'
import { type IndexedSelector, SelectorIndex } from '../selectors/selector-index.ts'
import type { Allowance } from './allowance.ts'
import { type Connection, includesPort, type MatchedName } from './connection.ts'
import { NetworkIndex } from './network-index.ts'
import type { PortProtocol } from './port-range.ts'
import type { EgressRule, TierList } from './rule.ts'

const PROTOCOLS: readonly PortProtocol[] = ['tcp', 'udp', 'sctp']
const PORTS = 65_536
/** The end of what networks allow. */
const NEVER = Number.POSITIVE_INFINITY
/** The end of what nothing allows. */
const ENDED = Number.NEGATIVE_INFINITY

interface PlacedRule {
  readonly rule: EgressRule
  readonly list: number
  readonly tier: number
}

/** A rule that matches the address, on some ports. */
interface Match {
  readonly rule: EgressRule
  /** Until when: the end of its last name, or NEVER for a network. */
  readonly endMs: number
}

/** The rules of a tier that match the address, in order. */
interface TierMatches {
  readonly matches: Match[]
  readonly otherwise: 'deny' | 'pass'
}

/** Ports of one protocol for which the same rules match. */
interface Segment {
  readonly protocol: PortProtocol
  readonly first: number
  readonly last: number
  /** Until when connections are allowed. */
  readonly endMs: number
}

/**
 * The lists of a client, prepared for answers: the rules of a name or of an address are found without
 * reading all rules. It decides as `verdictOf`.
 */
export class CompiledRules {
  readonly #lists: readonly TierList[]
  readonly #rules: readonly PlacedRule[]
  /** Each rule with names is an owner, whose object is its place in `#rules`. */
  readonly #selectors = new SelectorIndex()
  readonly #networks = new NetworkIndex<number>()
  readonly #found: IndexedSelector[] = []

  constructor(lists: readonly TierList[]) {
    this.#lists = lists
    this.#rules = lists.flatMap((tiers, list) =>
      tiers.flatMap(({ rules }, tier) => rules.map((rule) => ({ rule, list, tier }))),
    )
    for (const [place, { rule }] of this.#rules.entries()) {
      for (const peer of rule.networks) this.#networks.add(peer, place)
      if (rule.action !== 'accept' || rule.names.length === 0) continue
      this.#selectors.set({ consumer: '', namespace: '', object: String(place) }, rule.names)
    }
  }

  /**
   * Returns what names allow in addition to the networks of the rules: the ports of the address that
   * the client may connect to, each until the last of its names ends, none twice with the same end.
   * Protocols without ports are allowed only along with all ports. More names never allow less.
   */
  allowancesOf(
    address: Address,
    names: readonly MatchedName[],
    nowMs: number,
  ): readonly Allowance[] {
    const ends = this.#endsOf(names, nowMs)
    if (ends.size === 0) return []
    this.#networks.find(address, (place) => ends.set(place, NEVER))
    const lists = this.#matchesOf(ends)
    const restMs = endOf(lists, 'other', 0)
    const segments = segmentsOf(lists)
    let allMs = restMs
    for (const { endMs } of segments) allMs = Math.min(allMs, endMs)
    const isAll = restMs < NEVER && allMs >= nowMs
    const laterMs = isAll ? allMs : ENDED
    const allowances: Allowance[] = isAll ? [{ ports: undefined, endMs: allMs }] : []
    for (const { protocol, first, last, endMs } of segments) {
      if (endMs < nowMs || endMs <= laterMs || endMs === NEVER) continue
      allowances.push({ ports: { protocol, first, last }, endMs })
    }
    return allowances
  }

  /** Decides as `verdictOf`. `places`: the rules that select a name of the address, whatever its end. */
  accepts({ address, protocol, port }: Connection, places: Iterable<number>): boolean {
    const ends = new Map<number, number>()
    for (const place of places) ends.set(place, NEVER)
    this.#networks.find(address, (place) => ends.set(place, NEVER))
    return endOf(this.#matchesOf(ends), protocol, port) === NEVER
  }

  /** The selectors of the rules that select the name. */
  selectorsOf(name: HashedName): readonly Selector[] {
    this.#found.length = 0
    this.#selectors.find(name, this.#found)
    return this.#found.map(({ selector }) => selector)
  }

  /** The places of the rules that select the name. */
  rulesOf(name: HashedName): readonly number[] {
    this.#found.length = 0
    this.#selectors.find(name, this.#found)
    const places = new Set<number>()
    for (const { owners } of this.#found) {
      for (const { object } of owners) places.add(Number(object))
    }
    return [...places]
  }

  /** The rules that select one of the names, by their place, each with the end of its last name. */
  #endsOf(names: readonly MatchedName[], nowMs: number): Map<number, number> {
    const ends = new Map<number, number>()
    for (const { rules, endMs, isZombie } of names) {
      if (endMs < nowMs) continue
      for (const place of rules) {
        if (isZombie && this.#rules[place]!.rule.lasts === 'ttl') continue
        ends.set(place, Math.max(endMs, ends.get(place) ?? ENDED))
      }
    }
    return ends
  }

  #matchesOf(ends: ReadonlyMap<number, number>): readonly (readonly TierMatches[])[] {
    const lists = this.#lists.map((tiers) =>
      tiers.map(({ otherwise }) => ({ matches: [] as Match[], otherwise })),
    )
    for (const place of [...ends.keys()].sort((a, b) => a - b)) {
      const { rule, list, tier } = this.#rules[place]!
      lists[list]![tier]!.matches.push({ rule, endMs: ends.get(place)! })
    }
    return lists
  }
}

/** The segments of all ports, in order. Neighbours of one protocol differ in their end. */
function segmentsOf(lists: readonly (readonly TierMatches[])[]): readonly Segment[] {
  const segments: Segment[] = []
  for (const protocol of PROTOCOLS) {
    const starts = startsOf(lists, protocol)
    for (const [i, first] of starts.entries()) {
      const last = (starts[i + 1] ?? PORTS) - 1
      const endMs = endOf(lists, protocol, first)
      const before = segments.at(-1)
      if (before?.protocol === protocol && before.endMs === endMs) {
        segments[segments.length - 1] = { ...before, last }
      } else segments.push({ protocol, first, last, endMs })
    }
  }
  return segments
}

/** The ports at which other rules begin to match, sorted. The first is 0. */
function startsOf(
  lists: readonly (readonly TierMatches[])[],
  protocol: PortProtocol,
): readonly number[] {
  const starts = new Set([0])
  for (const { matches } of lists.flat()) {
    for (const { rule } of matches) {
      for (const range of rule.ports ?? []) {
        if (range.protocol !== protocol) continue
        starts.add(range.first)
        if (range.last + 1 < PORTS) starts.add(range.last + 1)
      }
    }
  }
  return [...starts].sort((a, b) => a - b)
}

/** Until when connections to a port are allowed by all lists. */
function endOf(
  lists: readonly (readonly TierMatches[])[],
  protocol: Connection['protocol'],
  port: number,
): number {
  let endMs = NEVER
  for (const tiers of lists) endMs = Math.min(endMs, endOfList(tiers, protocol, port))
  return endMs
}

function endOfList(
  tiers: readonly TierMatches[],
  protocol: Connection['protocol'],
  port: number,
): number {
  let namesMs = ENDED
  for (const { matches, otherwise } of tiers) {
    let action: EgressRule['action'] = otherwise
    for (const { rule, endMs } of matches) {
      if (!includesPort(rule.ports, protocol, port)) continue
      if (endMs < NEVER) {
        // When its names have ended, the rules behind it decide.
        namesMs = Math.max(namesMs, endMs)
        continue
      }
      action = rule.action
      break
    }
    if (action === 'deny') return namesMs
    if (action === 'accept') return NEVER
  }
  return NEVER
}
