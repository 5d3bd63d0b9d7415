import type { PortProtocol } from '../rules/port-range.ts'
import type { ClientRules, DnsRule, EgressRule, RuleTier, TierList } from '../rules/rule.ts'
import { withoutDenied } from './cilium/cilium-ports.ts'
import type { Policy } from './policy.ts'
import { DNS_PROTOCOLS, queryActionOf } from './query-rules.ts'

/** Orders policies as they decide. Policies of one stage and priority are in the order of their keys. */
export function comparePolicies(a: Policy, b: Policy): number {
  if (a.priority !== b.priority) return a.priority - b.priority
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0
}

/** Returns what policies say together about their Pods. They are sorted by `comparePolicies`. */
export function compileRules(policies: readonly Policy[]): ClientRules {
  const lists: TierList[] = [
    [tierOf(policies, 'admin'), policyTier(policies), tierOf(policies, 'baseline')],
    [tierOf(policies, 'firewall')],
  ]
  return {
    lists: lists.map((list) => list.filter(decides)).filter((list) => list.length > 0),
    dns: compileDns(policies),
  }
}

/** The union of the policies that accept: a denial of one decides before whatever another accepts. */
function policyTier(policies: readonly Policy[]): RuleTier {
  const { rules } = tierOf(policies, 'policy')
  const isDenial = ({ action }: EgressRule): boolean => action === 'deny'
  const isIsolated = policies.some(({ isolates }) => isolates)
  return {
    rules: [...rules.filter(isDenial), ...rules.filter((rule) => !isDenial(rule))],
    otherwise: isIsolated ? 'deny' : 'pass',
  }
}

function tierOf(policies: readonly Policy[], stage: Policy['stage']): RuleTier {
  const rules = policies.filter((policy) => policy.stage === stage).flatMap(({ rules }) => rules)
  return { rules, otherwise: 'pass' }
}

function decides({ rules, otherwise }: RuleTier): boolean {
  return rules.length > 0 || otherwise === 'deny'
}

function compileDns(policies: readonly Policy[]): readonly DnsRule[] | undefined {
  const isIsolated = policies.some(({ isolates, dns }) => isolates && dns !== undefined)
  const permissions = policies.flatMap(({ dns }) => dns ?? [])
  const allowed = isIsolated ? permissions.flatMap((one) => one.allowed) : undefined
  const denied = new Set(permissions.flatMap((one) => one.denied))
  for (const protocol of DNS_PROTOCOLS) {
    if (isDenied(policies, protocol, isIsolated)) denied.add(protocol)
  }
  return withoutDenied(allowed, denied)
}

/** True if an administrator denies queries. `isDecided`: the policies between `admin` and `baseline` decide. */
function isDenied(
  policies: readonly Policy[],
  protocol: PortProtocol,
  isDecided: boolean,
): boolean {
  const actionIn = (stage: Policy['stage']): EgressRule['action'] | undefined => {
    const own = policies.filter((policy) => policy.stage === stage)
    return queryActionOf(
      own.flatMap(({ queries = [] }) => queries),
      protocol,
    )
  }
  const action = actionIn('admin') ?? 'pass'
  if (action !== 'pass' || isDecided) return action === 'deny'
  return actionIn('baseline') === 'deny'
}
