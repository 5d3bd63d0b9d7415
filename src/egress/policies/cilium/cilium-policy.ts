import type { ApiObject } from '../../../kube/api.ts'
import type { PortProtocol } from '../../rules/port-range.ts'
import type { DnsRule, EgressRule } from '../../rules/rule.ts'
import { EVERYTHING, type LabelSelector, scanLabelSelector } from '../label-selector.ts'
import { composeRule, isEmpty } from '../peers.ts'
import {
  closePolicy,
  hasEffect,
  type Policy,
  type PolicyIdentity,
  type PolicyOptions,
  type ScannedPolicies,
} from '../policy.ts'
import { PolicyField, type PolicyProblem, quoteValue } from '../policy-field.ts'
import {
  DestinationScanner,
  endpointKey,
  POD_NAMESPACE,
  UNKNOWN_DESTINATION,
} from './cilium-destination.ts'
import {
  connectionPorts,
  deniedProtocols,
  dnsRulesOf,
  hasDnsRules,
  scanToPorts,
} from './cilium-ports.ts'

const SPEC_FIELDS = [
  ...['endpointSelector', 'nodeSelector', 'ingress', 'ingressDeny', 'egress', 'egressDeny'],
  ...['labels', 'enableDefaultDeny', 'description', 'log'],
]
const DENY_FIELDS = [
  ...['toEndpoints', 'toEntities', 'toCIDR', 'toCIDRSet', 'toNodes', 'toServices', 'toGroups'],
  'toPorts',
]
const RULE_FIELDS = [...DENY_FIELDS, 'toFQDNs', 'authentication']
const UNSUPPORTED_FIELDS = ['icmps', 'toRequires']

/**
 * Reads a CiliumNetworkPolicy or CiliumClusterwideNetworkPolicy (cilium.io/v2). Denials decide before
 * whatever any of these policies accepts.
 */
export function scanCiliumPolicy(
  object: ApiObject,
  identity: PolicyIdentity,
  options: PolicyOptions,
): ScannedPolicies {
  const problems: PolicyProblem[] = []
  const root = PolicyField.root(identity.origin, object, problems)
  const specs = [root.at('spec'), ...root.at('specs').items()].filter(({ isPresent }) => isPresent)
  if (specs.length === 0) root.at('spec').report('is missing')
  const policies = specs
    .map((spec, i) => new SpecScanner(identity, options).scan(spec, `${identity.key} ${i}`))
    .filter((policy) => policy !== undefined)
  return { policies: policies.filter(hasEffect), problems }
}

/** Reads one rule of Cilium: a `spec`, or an item of `specs`. */
class SpecScanner {
  readonly #identity: PolicyIdentity
  readonly #options: PolicyOptions
  readonly #destinations: DestinationScanner
  readonly #rules: EgressRule[] = []
  readonly #allowed: DnsRule[] = []
  readonly #denied = new Set<PortProtocol>()

  constructor(identity: PolicyIdentity, options: PolicyOptions) {
    this.#identity = identity
    this.#options = options
    this.#destinations = new DestinationScanner(identity.namespace, options.dialect)
  }

  /** Undefined = the rule is for nodes. */
  scan(spec: PolicyField, key: string): Policy | undefined {
    spec.hasOnly(SPEC_FIELDS)
    if (spec.at('nodeSelector').isPresent && !spec.at('endpointSelector').isPresent)
      return undefined
    const pods = this.#scanSubject(spec.at('endpointSelector'))
    const lists = [spec.at('egressDeny'), spec.at('egress')] as const
    const [denials, rules] = lists.map((list) => list.items())
    for (const rule of denials!) this.#deny(rule)
    for (const rule of rules!) this.#accept(rule)
    const defaults = spec.at('enableDefaultDeny')
    if (defaults.isPresent) defaults.hasOnly(['egress', 'ingress'])
    const given = defaults.at('egress')
    const isOff = given.value === false
    if (given.isPresent && typeof given.value !== 'boolean') given.report('must be true or false')
    const isUsed = lists.some(({ value }) => value !== undefined && !isEmptyList(value))
    const policy: Policy = {
      key,
      stage: 'policy',
      priority: 0,
      subject: {
        namespace: this.#identity.namespace,
        namespaces: EVERYTHING,
        pods: pods ?? EVERYTHING,
        labels: 'endpoint',
      },
      rules: this.#rules,
      isolates: given.value === true || (isUsed && !isOff),
      dns: { allowed: this.#allowed, denied: [...this.#denied] },
    }
    return pods === undefined ? closePolicy(policy) : policy
  }

  #scanSubject(field: PolicyField): LabelSelector | undefined {
    const selector = scanLabelSelector(field, endpointKey)
    const { namespace } = this.#identity
    if (selector === undefined || namespace === '') return selector
    // Cilium ignores this label here: the policy is for its own namespace.
    return selector.filter(({ key, operator, values }) => {
      const isIgnored = key === POD_NAMESPACE && operator === 'In' && values.size === 1
      if (isIgnored && !values.has(namespace)) {
        field.report(`namespace ${quoteValue([...values][0])} is ignored: it is ${namespace}`)
      }
      return !isIgnored
    })
  }

  #accept(rule: PolicyField): void {
    const isKnown = rule.hasOnly(RULE_FIELDS, UNSUPPORTED_FIELDS)
    const mode = rule.at('authentication').at('mode')
    const isPlain = !rule.at('authentication').isPresent || mode.value === 'disabled'
    if (!isPlain) mode.report('authentication is not supported')
    const isWhole = isKnown && isPlain
    const { peers, dns } = isWhole ? this.#destinations.scan(rule, false) : UNKNOWN_DESTINATION
    if (peers.isUnknown) return
    const toPorts = rule.at('toPorts')
    // What is not supported here does not matter for destinations in the cluster.
    const isLeft = isEmpty(peers) && !hasDnsRules(toPorts)
    const ports = scanToPorts(isLeft ? toPorts.silent() : toPorts, this.#options.dialect)
    const { origin } = this.#identity
    const action = { action: 'accept', lasts: 'connections', origin } as const
    const accepted = composeRule(peers, connectionPorts(ports), action)
    if (accepted !== undefined) this.#rules.push(accepted)
    this.#allowed.push(...dnsRulesOf(ports, dns))
  }

  #deny(rule: PolicyField): void {
    const isKnown = rule.hasOnly(DENY_FIELDS, UNSUPPORTED_FIELDS)
    const { peers, dns } = isKnown ? this.#destinations.scan(rule, true) : UNKNOWN_DESTINATION
    const toPorts = isEmpty(peers) ? rule.at('toPorts').silent() : rule.at('toPorts')
    const ports = connectionPorts(scanToPorts(toPorts, this.#options.dialect))
    const { origin } = this.#identity
    const denied = composeRule(peers, ports, { action: 'deny', lasts: 'connections', origin })
    if (denied !== undefined) this.#rules.push(denied)
    if (!peers.isUnknown && dns !== 'any') return
    for (const protocol of deniedProtocols(ports)) this.#denied.add(protocol)
  }
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
