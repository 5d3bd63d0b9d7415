import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanType } from '../../dns/iana/index.ts'
import { printName } from '../../dns/name/name.ts'
import { type Cidr, isWithin, scanCidr } from '../../dns/text/address.ts'
import { AddressSet, ALL_ADDRESSES } from '../../dns/text/address-set.ts'
import { scanZoneArgsOrBlock } from '../../plugin/arguments/zones.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler } from '../../plugin/handler.ts'
import { LIMITS_CLIENTS } from '../../plugin/reply-limiter.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { Acl, AclAction, type AclPolicy, type AclRule, QtypeSet } from './acl.ts'

const ACTIONS: ReadonlyMap<string, AclAction> = new Map([
  ['allow', AclAction.Allow],
  ['block', AclAction.Block],
  ['filter', AclAction.Filter],
  ['drop', AclAction.Drop],
])

/** `acl [ZONES...] { ACTION [type QTYPE...] [net SOURCE...] }`: which clients may send which queries. */
export const acl: Directive = {
  name: 'acl',
  setup(c) {
    const rules: AclRule[] = []
    while (c.dispenser.next()) rules.push(scanRule(c, c.dispenser))
    const limitsClients = rules.some(({ policies }) => policies.some(isForOthers))
    c.block.shared.provide(LIMITS_CLIENTS, limitsClients)
    const slots = c.counters()
    let acl: Acl | undefined
    const handler = (next: Handler): Handler => {
      acl = new Acl(next, rules, slots)
      return acl
    }
    const changesAnswers = rules.some(({ policies }) => policies.some(isFilter))
    return [{ handler, seesNotify: true, changesAnswers }, exportCounts(c, () => acl)]
  },
}

/** True for a policy that keeps all clients from an answer, of those that no policy before it allowed. */
function isForOthers({ action, qtypes, sources }: AclPolicy): boolean {
  return action !== AclAction.Allow && qtypes === undefined && sources === undefined
}

function isFilter({ action }: AclPolicy): boolean {
  return action === AclAction.Filter
}

/** A policy as written. */
interface ScannedPolicy extends Omit<AclPolicy, 'sources'> {
  /** Undefined = all sources. */
  readonly networks: readonly Cidr[] | undefined
  readonly line: number
}

function scanRule(c: SetupContext, d: Dispenser): AclRule {
  const zones = scanZoneArgsOrBlock(d, d.remainingArgs(), c.block)
  const scanned: ScannedPolicy[] = []
  d.eachProperty(() => {
    const policy = scanPolicy(d)
    const other = scanned.find((one) => one.action !== policy.action && covers(one, policy))
    if (other !== undefined) {
      const message = `acl: this policy never applies, because the policy of line ${other.line} matches all of its queries: move this one above it`
      c.warn(message, d.position())
    }
    scanned.push(policy)
  })
  const policies = scanned.map(({ action, qtypes, networks }): AclPolicy => {
    return { action, qtypes, sources: networks && new AddressSet(networks) }
  })
  return { zones: new ZoneSet(zones), zoneTexts: zones.map((zone) => printName(zone)), policies }
}

/** True if the first policy matches all queries that the second one matches. */
function covers({ qtypes, networks }: ScannedPolicy, other: ScannedPolicy): boolean {
  if (qtypes !== undefined) return false
  if (networks === undefined) return true
  const inside = ({ bits, bytes, family }: Cidr): boolean =>
    networks.some((one) => one.bits <= bits && isWithin(one, bytes, family))
  return other.networks?.every(inside) ?? false
}

function scanPolicy(d: Dispenser): ScannedPolicy {
  const { line } = d.position()
  const action = ACTIONS.get(d.value().toLowerCase())
  if (action === undefined) {
    const token = JSON.stringify(d.value())
    throw d.error(`unexpected token ${token}; expect 'allow', 'block', 'filter' or 'drop'`)
  }
  let qtypes: QtypeSet | undefined
  let networks: Cidr[] | undefined
  for (const { keyword, values } of scanSections(d)) {
    if (keyword === 'type') qtypes = scanQtypes(d, values, qtypes ?? new QtypeSet())
    else networks = [...(networks ?? []), ...values.flatMap((value) => scanNetworks(d, value))]
    // All addresses need no set.
    if (networks?.includes(ALL_ADDRESSES[0]!)) networks = undefined
  }
  return { action, qtypes, networks, line }
}

/** Splits a line into its `type …` and `net …` parts. */
function scanSections(d: Dispenser): { keyword: string; values: string[] }[] {
  const sections: { keyword: string; values: string[] }[] = []
  for (const arg of d.remainingArgs()) {
    const keyword = arg.toLowerCase()
    const section = sections.at(-1)
    if (keyword === 'type' || keyword === 'net') sections.push({ keyword, values: [] })
    else if (section !== undefined) section.values.push(arg)
    else throw d.error(`unexpected token ${JSON.stringify(arg)}; expect 'type | net'`)
  }
  const empty = sections.find(({ values }) => values.length === 0)
  if (empty !== undefined) throw d.error(`no token specified in "${empty.keyword}" section`)
  return sections
}

function scanQtypes(d: Dispenser, tokens: readonly string[], qtypes: QtypeSet): QtypeSet {
  for (const token of tokens) {
    if (token === '*') {
      qtypes.addAll()
      continue
    }
    // Lower case is rejected, so that a type is never confused with another argument.
    const type = token === token.toUpperCase() ? scanType(token) : undefined
    if (type === undefined) {
      throw d.error(`unexpected token ${JSON.stringify(token)}; expect legal QTYPE`)
    }
    qtypes.add(type)
  }
  return qtypes
}

function scanNetworks(d: Dispenser, token: string): readonly Cidr[] {
  if (token === '*') return ALL_ADDRESSES
  const whole = token.includes(':') ? '/128' : '/32'
  const text = token.includes('/') ? token : token + whole
  const network = scanCidr(text)
  if (network === undefined) throw d.error(`illegal CIDR notation ${JSON.stringify(text)}`)
  return [network]
}

/** Copies the handler's counts to the metrics page at each scrape. */
function exportCounts(c: SetupContext, handlerOf: () => Acl | undefined): DirectivePart {
  const labels = ['server', 'zone', 'view']
  const counter = (verb: string, names: readonly string[]) =>
    c.metrics.counter(
      `coredns_acl_${verb}_requests_total`,
      `Counter of DNS requests being ${verb}.`,
      names,
    )
  const allowed = counter('allowed', ['server', 'view'])
  const rejected = new Map<AclAction, typeof allowed>([
    [AclAction.Block, counter('blocked', labels)],
    [AclAction.Filter, counter('filtered', labels)],
    [AclAction.Drop, counter('dropped', labels)],
  ])
  return collectWhileServing(c, () =>
    handlerOf()?.takeCounts(({ action, server, zone, view, count }) => {
      if (action === AclAction.Allow) allowed.inc({ server, view }, count)
      else rejected.get(action)?.inc({ server, zone, view }, count)
    }),
  )
}
