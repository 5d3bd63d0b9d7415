import { createHash } from 'node:crypto'
import type { PortProtocol, PortRange } from '../../rules/port-range.ts'
import type { EgressRule, NetworkPeer, RuleTier, TierList } from '../../rules/rule.ts'
import { printCidr, printPeers } from './address-spans.ts'
import { type Chain, CLIENT_CHAIN, DROP } from './chain.ts'

/** What the networks of rules decide, as chains. Clients with equal ones share a profile. */
export interface Profile {
  /** Also the name of the chain where it begins. Differs between two profiles. */
  readonly name: string
  readonly chains: readonly Chain[]
}

/** How the names of chains of profiles begin. */
export const PROFILE_PREFIX = 'profile_'

/** A tier as statements. */
interface TierChain {
  readonly name: string
  readonly rules: readonly string[]
}

/**
 * Makes the chains of the lists. What names allow is in sets, which come first. The first chain jumps
 * to one chain for each tier:
 *
 *     deny    drop
 *     pass    return: the next tier
 *     accept  accept; or, while another list is left, what comes behind this list
 */
export function profileOf(lists: readonly TierList[]): Profile {
  const text = JSON.stringify(chainsOf(lists, ''))
  const name = `${PROFILE_PREFIX}${digestOf(text)}`
  return { name, chains: chainsOf(lists, name) }
}

/** Identifies what rules say, with names: equal rules have equal digests. */
export function rulesDigest(lists: readonly TierList[]): string {
  const values = lists.map((tiers) =>
    tiers.map(({ rules, otherwise }) => [
      otherwise,
      rules.map(({ action, networks, names, ports, lasts }) => [
        action,
        networks.map(({ network, except }) => [network, ...except].map(printCidr)),
        names.map(({ key }) => key),
        ports?.map(({ protocol, first, last }) => [protocol, first, last]),
        lasts,
      ]),
    ]),
  )
  return digestOf(JSON.stringify(values))
}

/** 16 hexadecimal digits. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function chainsOf(lists: readonly TierList[], name: string): readonly Chain[] {
  // A list of one tier needs no way around the tiers behind it.
  const ordered = [...lists].sort((a, b) => a.length - b.length)
  const chains: Chain[] = []
  /** Adds a chain with the lists from `first` on; returns its name. */
  const chainFrom = (first: number): string => {
    const own = first === 0 ? name : `${name}_from_${first}`
    if (chains.some((chain) => chain.name === own)) return own
    const rules = first === 0 ? [`jump ${CLIENT_CHAIN}`] : []
    const tiers: TierChain[] = []
    for (let list = first; list < ordered.length; list++) {
      const isLast = list === ordered.length - 1
      for (const [i, tier] of ordered[list]!.entries()) {
        const isLastTier = i === ordered[list]!.length - 1
        const accept = isLast ? 'accept' : isLastTier ? 'return' : `goto ${name}_from_${list + 1}`
        tiers.push({ name: `${name}_${list}_${i}`, rules: tierRules(tier, accept) })
      }
    }
    chains.push({ name: own, base: '', rules })
    for (const tier of tiers) {
      if (tier.rules.length === 0) continue
      rules.push(`jump ${tier.name}`)
      if (!chains.some((chain) => chain.name === tier.name)) chains.push({ ...tier, base: '' })
    }
    rules.push('accept')
    return own
  }
  chainFrom(0)
  for (const [list, tiers] of ordered.entries()) {
    if (list < ordered.length - 1 && tiers.length > 1) chainFrom(list + 1)
  }
  return chains
}

function tierRules({ rules, otherwise }: RuleTier, accept: string): readonly string[] {
  const statements: string[] = []
  for (const run of runsOf(rules)) {
    const action = run[0]!.action
    const verdict = action === 'deny' ? DROP : action === 'pass' ? 'return' : accept
    // The order of rules with one action does not matter.
    const byPorts = new Map<string, { ports: EgressRule['ports']; networks: NetworkPeer[] }>()
    for (const { ports, networks } of run) {
      const key = JSON.stringify(ports ?? 'all')
      const group = byPorts.get(key) ?? { ports, networks: [] }
      group.networks.push(...networks)
      byPorts.set(key, group)
    }
    for (const { ports, networks } of byPorts.values()) {
      for (const to of networkMatches(networks)) {
        for (const on of portMatches(ports)) statements.push(`${to}${on} ${verdict}`)
      }
    }
  }
  if (otherwise === 'deny') statements.push(DROP)
  return statements
}

/** Rules with networks; neighbours with the same action are in one run. */
function runsOf(rules: readonly EgressRule[]): readonly (readonly EgressRule[])[] {
  const runs: EgressRule[][] = []
  for (const rule of rules) {
    if (rule.networks.length === 0) continue
    const run = runs.at(-1)
    if (run !== undefined && run[0]!.action === rule.action) run.push(rule)
    else runs.push([rule])
  }
  return runs
}

function networkMatches(networks: readonly NetworkPeer[]): readonly string[] {
  const matches: string[] = []
  for (const [family, ip, protocol] of [
    [1, 'ip', 'ipv4'],
    [2, 'ip6', 'ipv6'],
  ] as const) {
    const spans = printPeers(networks, family)
    if (spans === 'all') matches.push(`meta nfproto ${protocol}`)
    else if (spans.length > 0) matches.push(`${ip} daddr ${printSet(spans)}`)
  }
  return matches
}

/** What follows the match of networks; none if the rule has no port. */
function portMatches(ports: readonly PortRange[] | undefined): readonly string[] {
  if (ports === undefined) return ['']
  const matches: string[] = []
  for (const protocol of ['tcp', 'udp', 'sctp'] as const) {
    const ranges = joinRanges(ports, protocol)
    if (ranges.length > 0) matches.push(` ${protocol} dport ${printSet(ranges)}`)
  }
  return matches
}

/** The ranges of a protocol, sorted. The kernel refuses ranges that overlap. */
function joinRanges(ports: readonly PortRange[], protocol: PortProtocol): readonly string[] {
  const joined: { first: number; last: number }[] = []
  const own = ports.filter((range) => range.protocol === protocol && range.first <= range.last)
  for (const { first, last } of own.sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1)
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last)
    else joined.push({ first, last })
  }
  return joined.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`))
}

function printSet(members: readonly string[]): string {
  return members.length === 1 ? members[0]! : `{ ${members.join(', ')} }`
}
