import type { ApiObject } from '../../../kube/api.ts'
import type { PortProtocol } from '../../rules/port-range.ts'
import type { EgressRule } from '../../rules/rule.ts'
import { EVERYTHING, type LabelSelector, scanLabelSelector } from '../label-selector.ts'
import {
  allPortsOf,
  composeRule,
  isEmpty,
  joinPeers,
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
import {
  closePolicy,
  hasContent,
  type Policy,
  type PolicyIdentity,
  type PolicySubject,
  type ScannedPolicies,
} from '../policy.ts'
import { PolicyField, type PolicyProblem, quoteValue } from '../policy-field.ts'
import { namedDnsPort, type QueryRule, queryRuleOf } from '../query-rules.ts'

/** Bounds of the API definitions. */
const NAMES_MAX = 25
const PRIORITY_MAX = 1000
/** The pattern of `domainNames`: as in v1alpha2, with `_` in front as older definitions allow it. */
const DOMAIN_NAME =
  /^(\*\.)?([a-z0-9_]([-a-z0-9_]*[a-z0-9])?\.)+[a-z0-9_]([-a-z0-9_]*[a-z0-9])?\.?$/i
/** Longer names are invalid whatever the pattern says. */
const NAME_LENGTH_MAX = 255

interface AdminForm {
  /** The fields of `spec` that say where the policy is in the order. */
  readonly place: readonly string[]
  /** How the API calls the action that accepts. */
  readonly accept: 'Allow' | 'Accept'
  readonly mayPass: boolean
  /** False in the tier Baseline. */
  readonly mayName: boolean
  readonly ports: 'ports' | 'protocols'
  readonly scanPort: (field: PolicyField) => Ports
}

type Place = Pick<Policy, 'stage' | 'priority'> & { readonly isValid: boolean }

const PEERS = ['namespaces', 'pods', 'nodes', 'networks', 'domainNames']

const V1ALPHA1: AdminForm = {
  place: ['priority'],
  accept: 'Allow',
  mayPass: true,
  mayName: true,
  ports: 'ports',
  scanPort: scanNumberedPort,
}

const V1ALPHA2: AdminForm = {
  place: ['tier', 'priority'],
  accept: 'Accept',
  mayPass: true,
  mayName: true,
  ports: 'protocols',
  scanPort: scanProtocolPort,
}

/** Reads an AdminNetworkPolicy (policy.networking.k8s.io/v1alpha1). */
export function scanAdminNetworkPolicy(
  object: ApiObject,
  identity: PolicyIdentity,
): ScannedPolicies {
  return scanWith(V1ALPHA1, object, identity, (spec) => {
    const priority = spec.at('priority').integer(0, PRIORITY_MAX)
    return { stage: 'admin', priority: priority ?? 0, isValid: priority !== undefined }
  })
}

/** Reads a BaselineAdminNetworkPolicy (policy.networking.k8s.io/v1alpha1). */
export function scanBaselineAdminNetworkPolicy(
  object: ApiObject,
  identity: PolicyIdentity,
): ScannedPolicies {
  const form = { ...V1ALPHA1, place: [], mayPass: false }
  return scanWith(form, object, identity, () => {
    return { stage: 'baseline', priority: PRIORITY_MAX + 1, isValid: true }
  })
}

/** Reads a ClusterNetworkPolicy (policy.networking.k8s.io/v1alpha2 and v1beta1). */
export function scanClusterNetworkPolicy(
  object: ApiObject,
  identity: PolicyIdentity,
): ScannedPolicies {
  return scanWith(V1ALPHA2, object, identity, (spec) => {
    const tier = spec.at('tier')
    const isKnown = tier.value === 'Admin' || tier.value === 'Baseline'
    if (!isKnown) tier.report(`must be Admin or Baseline, not ${quoteValue(tier.value)}`)
    const priority = spec.at('priority').integer(0, PRIORITY_MAX)
    const stage = tier.value === 'Baseline' ? 'baseline' : 'admin'
    return { stage, priority: priority ?? 0, isValid: isKnown && priority !== undefined }
  })
}

function scanWith(
  ofKind: AdminForm,
  object: ApiObject,
  { key, origin }: PolicyIdentity,
  placeOf: (spec: PolicyField) => Place,
): ScannedPolicies {
  const problems: PolicyProblem[] = []
  const spec = PolicyField.root(origin, object, problems).at('spec')
  if (spec.isPresent) spec.hasOnly([...ofKind.place, 'subject', 'egress', 'ingress'])
  const { isValid, ...place } = placeOf(spec)
  const form = { ...ofKind, mayName: place.stage !== 'baseline' }
  const subject = scanSubject(spec.at('subject'))
  const queries: QueryRule[] = []
  const policy: Policy = {
    key,
    ...place,
    subject: subject ?? subjectOf(EVERYTHING, EVERYTHING),
    rules: scanRuleList(spec.at('egress'), origin, (rule) => scanRule(rule, form, origin, queries)),
    isolates: false,
    dns: undefined,
    queries,
  }
  const isWhole = isValid && subject !== undefined
  return { policies: [isWhole ? policy : closePolicy(policy)].filter(hasContent), problems }
}

function subjectOf(namespaces: LabelSelector, pods: LabelSelector): PolicySubject {
  return { namespace: '', namespaces, pods, labels: 'pod' }
}

function scanSubject(field: PolicyField): PolicySubject | undefined {
  if (field.isPresent && !field.hasOnly(['namespaces', 'pods'])) return undefined
  const names = field.names()
  const known = names.length === 1 ? names[0] : undefined
  if (known === 'namespaces') {
    const namespaces = scanLabelSelector(field.at('namespaces'))
    return namespaces === undefined ? undefined : subjectOf(namespaces, EVERYTHING)
  }
  if (known !== 'pods') {
    field.report('must have one of namespaces and pods')
    return undefined
  }
  const both = field.at('pods')
  const isKnown = both.hasOnly(['namespaceSelector', 'podSelector'])
  const namespaces = scanLabelSelector(both.at('namespaceSelector'))
  const pods = scanLabelSelector(both.at('podSelector'))
  if (!isKnown || namespaces === undefined || pods === undefined) return undefined
  return subjectOf(namespaces, pods)
}

/** Adds to `queries` what the rule says about DNS queries. */
function scanRule(
  rule: PolicyField,
  form: AdminForm,
  origin: string,
  queries: QueryRule[],
): EgressRule | undefined {
  const isKnown = rule.hasOnly(['name', 'action', 'to', form.ports])
  const action = scanAction(rule.at('action'), form)
  const to = rule.at('to')
  const items = to.items()
  if (items.length === 0) to.report('must have at least one item')
  const isOpen = !isKnown || items.length === 0
  const peers = joinPeers([
    isOpen ? UNKNOWN_PEERS : NO_PEERS,
    ...items.map((item) => scanPeer(item, form)),
  ])
  if (action !== 'accept' && peers.isNamed) {
    to.report(`domainNames can only be accepted: the rule denies all addresses`)
  }
  const queryPorts = scanPortList(rule.at(form.ports).silent(), (port) => {
    const name = port.at('namedPort').value ?? port.at('destinationNamedPort').value
    return name === undefined ? form.scanPort(port) : namedDnsPort(name)
  })
  const query = queryRuleOf({ action, peers: items, ports: queryPorts })
  if (query !== undefined) queries.push(query)
  // Ports of Pods alone may have names.
  if (isEmpty(peers)) return undefined
  const ports = scanPortList(rule.at(form.ports), form.scanPort)
  return composeRule(peers, ports, { action, lasts: 'ttl', origin })
}

function scanAction(field: PolicyField, { accept, mayPass }: AdminForm): EgressRule['action'] {
  if (field.value === accept) return 'accept'
  if (field.value === 'Pass' && mayPass) return 'pass'
  if (field.value !== 'Deny') {
    const words = mayPass ? `${accept}, Deny or Pass` : `${accept} or Deny`
    field.report(`must be ${words}, not ${quoteValue(field.value)}: the rule denies`)
  }
  return 'deny'
}

function scanPeer(field: PolicyField, { mayName }: AdminForm): Peers {
  if (!field.hasOnly(PEERS)) return UNKNOWN_PEERS
  const names = field.names()
  switch (names.length === 1 ? names[0] : undefined) {
    case 'namespaces':
    case 'pods':
    case 'nodes':
      // These are in networks of the cluster.
      return NO_PEERS
    case 'networks':
      return scanPeerList(field.at('networks'), (item) => scanNetwork(item))
    case 'domainNames': {
      if (!mayName) {
        field.at('domainNames').report('only policies of the tier Admin may have names')
        return UNKNOWN_PEERS
      }
      const peers = scanPeerList(field.at('domainNames'), scanDomainName)
      return { ...peers, isNamed: true }
    }
    default:
      field.report('must have one of namespaces, pods, nodes, networks and domainNames')
      return UNKNOWN_PEERS
  }
}

function scanPeerList(field: PolicyField, scan: (item: PolicyField) => Peers): Peers {
  const items = field.items()
  if (items.length === 0 || items.length > NAMES_MAX) {
    field.report(`must have 1 to ${NAMES_MAX} items`)
    return UNKNOWN_PEERS
  }
  return joinPeers(items.map(scan))
}

function scanDomainName(field: PolicyField): Peers {
  const { value } = field
  const isText = typeof value === 'string' && value.length <= NAME_LENGTH_MAX
  if (!isText || DOMAIN_NAME.test(value)) return scanNamePeer(field, 'npep')
  const form = 'write www.example.com, or *.example.com for all names below it'
  field.report(`invalid name ${quoteValue(value)}: ${form}`)
  return { ...NO_PEERS, isNamed: true }
}

/** A port of v1alpha1. */
function scanNumberedPort(field: PolicyField): Ports {
  if (!field.hasOnly(['portNumber', 'portRange', 'namedPort'])) return UNKNOWN_PORTS
  const names = field.names()
  const known = names.length === 1 ? names[0] : undefined
  if (known === 'namedPort') return refuseName(field.at(known))
  if (known !== 'portNumber' && known !== 'portRange') {
    field.report('must have one of portNumber and portRange')
    return UNKNOWN_PORTS
  }
  const port = field.at(known)
  const isNumber = known === 'portNumber'
  if (!port.hasOnly(['protocol', ...(isNumber ? ['port'] : ['start', 'end'])])) return UNKNOWN_PORTS
  const given = port.at('protocol')
  const protocol = given.isPresent ? scanProtocol(given) : 'tcp'
  const first = port.at(isNumber ? 'port' : 'start')
  return scanPortNumbers(protocol, first, isNumber ? first : port.at('end'))
}

/** A protocol of v1alpha2. */
function scanProtocolPort(field: PolicyField): Ports {
  if (!field.hasOnly(['tcp', 'udp', 'sctp', 'destinationNamedPort'])) return UNKNOWN_PORTS
  const names = field.names()
  const known = names.length === 1 ? names[0] : undefined
  if (known === 'destinationNamedPort') return refuseName(field.at(known))
  if (!isProtocol(known)) {
    field.report('must have one of tcp, udp and sctp')
    return UNKNOWN_PORTS
  }
  const protocol = field.at(known)
  const port = protocol.at('destinationPort')
  if (!protocol.hasOnly(['destinationPort'])) return UNKNOWN_PORTS
  if (!port.isPresent) return { ranges: [allPortsOf(known)], isUnknown: false }
  if (!port.hasOnly(['number', 'range'])) return UNKNOWN_PORTS
  const range = port.at('range')
  if (!range.isPresent) return scanPortNumbers(known, port.at('number'))
  if (!port.at('number').isPresent) {
    if (!range.hasOnly(['start', 'end'])) return UNKNOWN_PORTS
    return scanPortNumbers(known, range.at('start'), range.at('end'))
  }
  port.report('must have one of number and range')
  return UNKNOWN_PORTS
}

function isProtocol(name: string | undefined): name is PortProtocol {
  return name === 'tcp' || name === 'udp' || name === 'sctp'
}

function refuseName(field: PolicyField): Ports {
  field.report(`named port ${quoteValue(field.value)} is not supported: write its number`)
  return UNKNOWN_PORTS
}
