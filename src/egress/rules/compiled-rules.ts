import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { Address } from '../../dns/text/address.ts'
import type { Selector } from '../selectors/selector.ts'
import { type IndexedSelector, SelectorIndex } from '../selectors/selector-index.ts'
import type { Allowance } from './allowance.ts'
import type { Connection, MatchedName } from './connection.ts'
import { NetworkIndex } from './network-index.ts'
import {
  ENDED,
  endOf,
  type ListMatches,
  NEVER,
  type RuleMatch,
  segmentsOf,
} from './port-segments.ts'
import type { EgressRule, TierList } from './rule.ts'

interface PlacedRule {
  readonly rule: EgressRule
  readonly list: number
  readonly tier: number
}

/** What names allow for an address in these networks. */
interface Decided {
  readonly names: readonly MatchedName[]
  /** Places of rules. */
  readonly networks: readonly number[]
  readonly nowMs: number
  readonly allowances: readonly Allowance[]
}

/**
 * The lists of a client, prepared for answers: the rules of a name or of an address are found without
 * reading all rules. In each list, the first rule that matches decides.
 */
export class CompiledRules {
  readonly #lists: readonly TierList[]
  readonly #rules: readonly PlacedRule[]
  /** Each rule with names is an owner, whose object is its place in `#rules`. */
  readonly #selectors = new SelectorIndex()
  readonly #networks = new NetworkIndex<number>()
  readonly #found: IndexedSelector[] = []
  /** What was decided last: the addresses of an answer mostly have the same names. */
  #last: Decided = { names: [], networks: [], nowMs: ENDED, allowances: [] }

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
    if (names.length === 0) return []
    const networks: number[] = []
    this.#networks.find(address, (place) => networks.push(place))
    const last = this.#last
    const isSame = last.nowMs === nowMs && isSameList(last.networks, networks, Object.is)
    if (isSame && isSameList(last.names, names, isSameName)) return last.allowances
    const allowances = this.#decide(names, networks, nowMs)
    this.#last = { names, networks, nowMs, allowances }
    return allowances
  }

  #decide(
    names: readonly MatchedName[],
    networks: readonly number[],
    nowMs: number,
  ): readonly Allowance[] {
    const ends = this.#endsOf(names, nowMs)
    if (ends.size === 0) return []
    for (const place of networks) ends.set(place, NEVER)
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

  /** `places`: the rules that select a name of the address, whatever its end. */
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

  #matchesOf(ends: ReadonlyMap<number, number>): ListMatches {
    const lists = this.#lists.map((tiers) =>
      tiers.map(({ otherwise }) => ({ matches: [] as RuleMatch[], otherwise })),
    )
    for (const place of [...ends.keys()].sort((a, b) => a - b)) {
      const { rule, list, tier } = this.#rules[place]!
      lists[list]![tier]!.matches.push({ rule, endMs: ends.get(place)! })
    }
    return lists
  }
}

function isSameList<T>(a: readonly T[], b: readonly T[], isSame: (a: T, b: T) => boolean): boolean {
  return a.length === b.length && a.every((one, i) => isSame(one, b[i]!))
}

function isSameName(a: MatchedName, b: MatchedName): boolean {
  return a.rules === b.rules && a.endMs === b.endMs && a.isZombie === b.isZombie
}
