import type { ApiObject } from '../../../kube/api.ts'
import type { EgressRule } from '../../rules/rule.ts'
import { EVERYTHING } from '../label-selector.ts'
import {
  composeRule,
  NO_PEERS,
  type Peers,
  type Ports,
  scanNamePeer,
  scanNetwork,
  scanPortList,
  scanPortNumbers,
  scanProtocol,
  scanRuleList,
  UNKNOWN_PEERS,
  UNKNOWN_PORTS,
} from '../peers.ts'
import { hasEffect, type Policy, type PolicyIdentity, type ScannedPolicies } from '../policy.ts'
import { PolicyField, type PolicyProblem, quoteValue } from '../policy-field.ts'

/** The only name that OVN-Kubernetes reads: so a namespace has at most one. */
const NAME = 'default'

/** Reads an EgressFirewall (k8s.ovn.org/v1). The first rule that matches decides. */
export function scanEgressFirewall(object: ApiObject, identity: PolicyIdentity): ScannedPolicies {
  const problems: PolicyProblem[] = []
  const root = PolicyField.root(identity.origin, object, problems)
  if (identity.name !== NAME) {
    root
      .at('metadata')
      .at('name')
      .report(`ignored: the name must be ${quoteValue(NAME)}`)
    return { policies: [], problems }
  }
  const spec = root.at('spec')
  if (spec.isPresent) spec.hasOnly(['egress'])
  const rules = scanRuleList(spec.at('egress'), identity.origin, scanRule)
  const policy: Policy = {
    key: identity.key,
    stage: 'firewall',
    priority: 0,
    subject: {
      namespace: identity.namespace,
      namespaces: EVERYTHING,
      pods: EVERYTHING,
      labels: 'pod',
    },
    rules,
    isolates: false,
    dns: undefined,
  }
  return { policies: [policy].filter(hasEffect), problems }
}

function scanRule(rule: PolicyField, origin: string): EgressRule | undefined {
  const isKnown = rule.hasOnly(['type', 'ports', 'to'])
  const type = rule.at('type')
  const action = type.value === 'Allow' ? 'accept' : 'deny'
  if (action === 'deny' && type.value !== 'Deny') {
    type.report(`must be Allow or Deny, not ${quoteValue(type.value)}`)
  }
  const to = rule.at('to')
  const peers = isKnown ? scanDestination(to) : UNKNOWN_PEERS
  if (action === 'deny' && peers.names.length > 0) {
    to.at('dnsName').report('a name cannot be denied: the rule denies all addresses')
  }
  const ports = scanPortList(rule.at('ports'), scanPort)
  return composeRule(peers, ports, { action, lasts: 'ttl', origin })
}

function scanDestination(to: PolicyField): Peers {
  if (!to.hasOnly(['cidrSelector', 'dnsName', 'nodeSelector'])) return UNKNOWN_PEERS
  const [field, ...others] = to.names()
  if (others.length === 0) {
    switch (field) {
      case 'cidrSelector':
        return scanNetwork(to.at(field))
      case 'dnsName':
        return scanNamePeer(to.at(field), 'openshift')
      case 'nodeSelector':
        // Nodes are in networks of the cluster.
        return NO_PEERS
    }
  }
  to.report('must have one of cidrSelector, dnsName and nodeSelector')
  return UNKNOWN_PEERS
}

function scanPort(field: PolicyField): Ports {
  const isKnown = field.hasOnly(['protocol', 'port'])
  const ports = scanPortNumbers(scanProtocol(field.at('protocol')), field.at('port'))
  return isKnown ? ports : UNKNOWN_PORTS
}
