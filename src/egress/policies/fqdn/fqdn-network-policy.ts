import { printName } from '../../../dns/name/name.ts'
import type { ApiObject } from '../../../kube/api.ts'
import type { EgressRule } from '../../rules/rule.ts'
import { scanSelector } from '../../selectors/scan-selector.ts'
import type { Selector } from '../../selectors/selector.ts'
import { EVERYTHING, scanLabelSelector } from '../label-selector.ts'
import {
  allPortsOf,
  composeRule,
  NO_PEERS,
  type Ports,
  scanPortList,
  scanPortNumbers,
  scanProtocol,
  UNKNOWN_PORTS,
} from '../peers.ts'
import {
  closePolicy,
  hasEffect,
  type Policy,
  type PolicyIdentity,
  type ScannedPolicies,
} from '../policy.ts'
import { PolicyField, type PolicyProblem, quoteValue } from '../policy-field.ts'
import { scanFqdn } from './fqdn-name.ts'
import { FQDN_APIS, readPolicy } from './fqdn-policy.ts'
import { networkPolicySpec } from './network-policy.ts'

/** Reads the egress of a FQDNNetworkPolicy, of either API. It accepts, and isolates as a NetworkPolicy. */
export function scanFqdnNetworkPolicy(
  object: ApiObject,
  { namespace, key, origin }: PolicyIdentity,
): ScannedPolicies {
  const problems: PolicyProblem[] = []
  const spec = PolicyField.root(origin, object, problems).at('spec')
  if (spec.isPresent) spec.hasOnly(['podSelector', 'policyTypes', 'egress', 'ingress'])
  const pods = scanLabelSelector(spec.at('podSelector'))
  // The types do not depend on which of the APIs it is.
  const { policyTypes } = networkPolicySpec(readPolicy(FQDN_APIS[0]!, object).spec, () => [])
  const egress = spec.at('egress')
  const isMalformed = egress.isPresent && !Array.isArray(egress.value)
  const isolates = policyTypes.includes('Egress') || isMalformed
  const rules = egress.items().map((rule) => scanRule(rule, origin))
  const policy: Policy = {
    key,
    stage: 'policy',
    priority: 0,
    subject: { namespace, namespaces: EVERYTHING, pods: pods ?? EVERYTHING, labels: 'pod' },
    rules: isolates ? rules.filter((rule) => rule !== undefined) : [],
    isolates,
    dns: undefined,
  }
  const policies = [pods === undefined ? closePolicy(policy) : policy].filter(hasEffect)
  return { policies, problems }
}

function scanRule(rule: PolicyField, origin: string): EgressRule | undefined {
  const isKnown = rule.hasOnly(['to', 'ports'])
  const ports = scanPortList(rule.at('ports'), scanPort)
  const peers = rule.at('to').items()
  const isPlain = peers.map((peer) => peer.hasOnly(['fqdns'])).every((only) => only)
  const names = peers
    .flatMap((peer) => peer.at('fqdns').items().map(scanName))
    .filter((name) => name !== undefined)
  const isUnknown = !isKnown || !isPlain
  const action = { action: 'accept', lasts: 'ttl', origin } as const
  return composeRule({ ...NO_PEERS, names, isNamed: true, isUnknown }, ports, action)
}

/** Internationalised names are converted, as FQDNNetworkPolicies allow them. */
function scanName(field: PolicyField): Selector | undefined {
  const text = field.text()
  const wire = scanFqdn(text)
  const selector = wire === undefined ? undefined : scanSelector(printName(wire), 'name')
  if (selector === undefined || typeof selector === 'string') {
    field.report(`invalid name ${quoteValue(text)}: write a domain name without wildcards`)
    return undefined
  }
  return { ...selector, text }
}

/** The fields of a NetworkPolicyPort. */
function scanPort(field: PolicyField): Ports {
  const isKnown = field.hasOnly(['protocol', 'port', 'endPort'])
  const given = field.at('protocol')
  // delta10 reads an empty one as a missing one.
  const protocol = given.isPresent && given.value !== '' ? scanProtocol(given) : 'tcp'
  const port = field.at('port')
  if (typeof port.value === 'string') {
    port.report(`named port ${quoteValue(port.value)} is not supported: write its number`)
    return UNKNOWN_PORTS
  }
  if (!isKnown || protocol === undefined) return UNKNOWN_PORTS
  if (port.isPresent) return scanPortNumbers(protocol, port, field.at('endPort'))
  return { ranges: [allPortsOf(protocol)], isUnknown: false }
}
