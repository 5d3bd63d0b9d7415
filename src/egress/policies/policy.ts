import type { PortProtocol } from '../rules/port-range.ts'
import type { DnsRule, EgressRule } from '../rules/rule.ts'
import type { LabelSelector } from './label-selector.ts'
import type { PolicyProblem } from './policy-field.ts'
import type { QueryRule } from './query-rules.ts'

/** The Pods that a policy is for. */
export interface PolicySubject {
  /** '' = all namespaces. */
  readonly namespace: string
  readonly namespaces: LabelSelector
  readonly pods: LabelSelector
  /** Which labels `pods` is about: those of the Pod, or those of its Cilium endpoint. */
  readonly labels: 'pod' | 'endpoint'
}

/** What a policy of Cilium says about queries, for Pods whose egress it restricts. */
interface DnsPermission {
  readonly allowed: readonly DnsRule[]
  /** Protocols on whose port 53 no query is allowed, whatever other policies allow. */
  readonly denied: readonly PortProtocol[]
}

/** What an object says about the egress of its Pods. */
export interface Policy {
  /** Differs between all policies; their order within a stage and priority. */
  readonly key: string
  /**
   *     admin, policy, baseline  tiers of the first list
   *     firewall                 the second list
   */
  readonly stage: 'admin' | 'policy' | 'baseline' | 'firewall'
  /** Lower = decides earlier, in `admin` and `baseline`. */
  readonly priority: number
  readonly subject: PolicySubject
  /** In order in `admin`, `baseline` and `firewall`. In `policy`, denials decide before the others. */
  readonly rules: readonly EgressRule[]
  /** True if, in `policy`, what no rule accepts is denied. */
  readonly isolates: boolean
  /** Undefined = the language says nothing about queries. */
  readonly dns: DnsPermission | undefined
  /** In `admin` and `baseline`: what rules for port 53 say about queries, in order. */
  readonly queries?: readonly QueryRule[]
}

/** Which object policies are from. */
export interface PolicyIdentity {
  /** '' = the kind has no namespaces. */
  readonly namespace: string
  readonly name: string
  /** `CiliumNetworkPolicy a/web`. */
  readonly origin: string
  /** As `origin`, with the API group: two APIs may have kinds of one name. */
  readonly key: string
}

/** The policies of one object: those that have an effect on egress. */
export interface ScannedPolicies {
  readonly policies: readonly Policy[]
  readonly problems: readonly PolicyProblem[]
}

/** How `*` in Cilium's patterns is read. */
export type CiliumDialect = 'cilium-1.16' | 'cilium-1.19'

export interface PolicyOptions {
  readonly dialect: CiliumDialect
  /** True: Pods that no policy selects are clients too, with `OPEN_RULES`. */
  readonly everyPod?: boolean
}

export const DEFAULT_POLICY_OPTIONS: PolicyOptions = { dialect: 'cilium-1.19' }

/** True if the policy does more than select Pods. */
export function hasEffect({ rules, isolates, dns, queries = [] }: Policy): boolean {
  const deniesQueries = queries.some(({ action }) => action === 'deny')
  return rules.length > 0 || isolates || deniesQueries || (dns?.denied.length ?? 0) > 0
}

/** True if the policy says anything. One that only accepts queries makes no client, but decides before others. */
export function hasContent(policy: Policy): boolean {
  return hasEffect(policy) || (policy.queries?.length ?? 0) > 0
}

/**
 * The policy without what it accepts, for an object whose subject or order is invalid. Its subject is
 * then all Pods that it could select: so it allows nothing to Pods that it is not for, and lets no Pod
 * go that it is for.
 */
export function closePolicy(policy: Policy): Policy {
  const { rules, dns, queries = [] } = policy
  return {
    ...policy,
    queries: queries.filter(({ action }) => action === 'deny'),
    rules: rules.filter(({ action }) => action === 'deny'),
    dns: dns === undefined ? undefined : { ...dns, allowed: [] },
  }
}
