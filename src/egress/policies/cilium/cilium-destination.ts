import { type LabelSelector, scanLabelSelector, selectsLabels } from '../label-selector.ts'
import {
  ALL_IPV4,
  ALL_IPV6,
  ALL_PEERS,
  joinPeers,
  NO_PEERS,
  type Peers,
  scanNamePeer,
  scanNetwork,
  scanNetworkText,
  UNKNOWN_PEERS,
} from '../peers.ts'
import type { CiliumDialect } from '../policy.ts'
import { type PolicyField, quoteValue } from '../policy-field.ts'

/**
 * Which rules that allow a destination also allow queries, since all queries of a client get to
 * this server, whatever server they are for:
 *
 *     any    all that include port 53: the destination is the cluster's DNS, or includes it
 *     ports  those with ports that include 53: Pods, which may be the cluster's DNS
 *     exact  those with port 53 itself: another DNS server, outside of the cluster
 *     never
 */
export type DnsScope = 'any' | 'ports' | 'exact' | 'never'

/** What the fields `to…` of a rule say. */
interface CiliumDestination {
  readonly peers: Peers
  readonly dns: DnsScope
}

const NOTHING: CiliumDestination = { peers: NO_PEERS, dns: 'never' }
export const UNKNOWN_DESTINATION: CiliumDestination = { peers: UNKNOWN_PEERS, dns: 'never' }
const EVERYWHERE: CiliumDestination = { peers: ALL_PEERS, dns: 'any' }
const WORLD: CiliumDestination = { peers: ALL_PEERS, dns: 'exact' }

/** Entities (Cilium, "Entities Based"). Those without addresses here are in networks of the cluster. */
const ENTITIES: ReadonlyMap<string, CiliumDestination> = new Map([
  ['all', EVERYWHERE],
  ['world', WORLD],
  ['world-ipv4', { peers: { ...NO_PEERS, networks: [ALL_IPV4] }, dns: 'exact' }],
  ['world-ipv6', { peers: { ...NO_PEERS, networks: [ALL_IPV6] }, dns: 'exact' }],
  ['cluster', { peers: NO_PEERS, dns: 'any' }],
  // A DNS cache of the node.
  ['host', { peers: NO_PEERS, dns: 'any' }],
  ...['remote-node', 'ingress', 'init', 'health', 'unmanaged', 'none'].map(
    (name) => [name, NOTHING] as const,
  ),
])
/** If it is outside of the networks of the cluster, only a network allows it. */
const API_SERVER = 'kube-apiserver'

export const POD_NAMESPACE = 'io.kubernetes.pod.namespace'
export const NAMESPACE_LABELS = 'io.cilium.k8s.namespace.labels.'

const PREFIX = /^(?:k8s|any):/
/** Labels whose source is not Kubernetes, such as `reserved:world`. */
const OTHER_SOURCE = /^(?!k8s:|any:)[a-z][\w-]*:|^reserved\./

/** Labels of the Pods of the cluster's DNS, as kubeadm and most others set them. */
const CLUSTER_DNS: ReadonlyMap<string, string> = new Map([
  [POD_NAMESPACE, 'kube-system'],
  [`${NAMESPACE_LABELS}kubernetes.io/metadata.name`, 'kube-system'],
  ['k8s-app', 'kube-dns'],
])

/** Key of a label without the prefix that says that its source is Kubernetes. */
export function endpointKey(key: string): string {
  return key.replace(PREFIX, '')
}

/** Reads the destination of an egress rule. */
export class DestinationScanner {
  readonly #namespace: string
  readonly #dialect: CiliumDialect

  /** `namespace`: of the policy; '' = it has none. */
  constructor(namespace: string, dialect: CiliumDialect) {
    this.#namespace = namespace
    this.#dialect = dialect
  }

  /** `isDenied`: the rule is one of `egressDeny`, which has no names. */
  scan(rule: PolicyField, isDenied: boolean): CiliumDestination {
    const present = Object.keys(this.#readers).filter((name) => rule.at(name).isPresent)
    const lists = present.map((name) => rule.at(name))
    if (lists.some(({ value }) => !Array.isArray(value))) {
      for (const list of lists) list.items()
      return UNKNOWN_DESTINATION
    }
    const used = present.filter((name) => rule.at(name).items().length > 0)
    if (used.length > 1) {
      rule.report(`combining ${used.join(' and ')} in one rule is not supported`)
      return UNKNOWN_DESTINATION
    }
    const [name] = used
    // A list that is empty selects nothing; without one, the ports are allowed everywhere.
    if (present.length > 0) {
      if (name === undefined || used.length < present.length) return NOTHING
      const read = this.#readers[name]!
      return join(
        rule
          .at(name)
          .items()
          .map((item) => read(item, isDenied)),
      )
    }
    return rule.at('toPorts').items().length > 0 ? EVERYWHERE : NOTHING
  }

  readonly #readers: Readonly<
    Record<string, (item: PolicyField, isDenied: boolean) => CiliumDestination>
  > = {
    toEndpoints: (item) => this.#scanEndpoints(item),
    toEntities: scanEntity,
    toCIDR: (item) => ({ peers: scanNetwork(item, true), dns: 'exact' }),
    toCIDRSet: (item) => ({ peers: scanNetworkSet(item), dns: 'exact' }),
    toFQDNs: (item) => ({ peers: scanFqdnSelector(item, this.#dialect), dns: 'never' }),
    // Nodes are in networks of the cluster; one may have a DNS cache.
    toNodes: () => ({ peers: NO_PEERS, dns: 'ports' }),
    toServices: refuse,
    toGroups: refuse,
  }

  #scanEndpoints(item: PolicyField): CiliumDestination {
    const selector = scanLabelSelector(item, endpointKey)
    if (selector === undefined) return UNKNOWN_DESTINATION
    if (selector.some(({ key }) => OTHER_SOURCE.test(key))) {
      item.report('only labels of Pods and Namespaces are supported: use toEntities')
      return UNKNOWN_DESTINATION
    }
    const dns = selectsLabels(this.#within(selector), CLUSTER_DNS) ? 'any' : 'ports'
    return { peers: NO_PEERS, dns }
  }

  /** Without a namespace, a selector is for the namespace of its policy. */
  #within(selector: LabelSelector): LabelSelector {
    const isForeign = selector.some(({ key }) => {
      return key === POD_NAMESPACE || key.startsWith(NAMESPACE_LABELS)
    })
    if (isForeign || this.#namespace === '') return selector
    return [...selector, { key: POD_NAMESPACE, operator: 'In', values: new Set([this.#namespace]) }]
  }
}

function join(all: readonly CiliumDestination[]): CiliumDestination {
  const scopes = ['any', 'ports', 'exact'] as const
  const dns = scopes.find((scope) => all.some((one) => one.dns === scope)) ?? 'never'
  return { peers: joinPeers(all.map(({ peers }) => peers)), dns }
}

function scanEntity(item: PolicyField, isDenied: boolean): CiliumDestination {
  const entity = item.text()
  const known = ENTITIES.get(entity)
  if (known !== undefined) return known
  if (entity === API_SERVER && !isDenied) return NOTHING
  const cause = entity === API_SERVER ? 'its addresses are not known' : 'unknown entity'
  item.report(`${quoteValue(entity)} is not supported: ${cause}`)
  return UNKNOWN_DESTINATION
}

function scanNetworkSet(item: PolicyField): Peers {
  if (!item.hasOnly(['cidr', 'except'], ['cidrGroupRef', 'cidrGroupSelector'])) return UNKNOWN_PEERS
  const network = scanNetworkText(item.at('cidr'))
  const except = item
    .at('except')
    .items()
    .map((field) => scanNetworkText(field))
  const isList = !item.at('except').isPresent || Array.isArray(item.at('except').value)
  if (network === undefined || !isList || except.includes(undefined)) return UNKNOWN_PEERS
  const known = except.filter((one) => one !== undefined)
  return { ...NO_PEERS, networks: [{ network, except: known }] }
}

/** A FQDNSelector. An invalid one selects nothing. */
export function scanFqdnSelector(item: PolicyField, dialect: CiliumDialect): Peers {
  const names = item.hasOnly(['matchName', 'matchPattern']) ? item.names() : []
  if (names.length === 1) {
    const [name = ''] = names
    return scanNamePeer(item.at(name), name === 'matchName' ? 'name' : dialect)
  }
  item.report('must have one of matchName and matchPattern')
  return { ...NO_PEERS, isNamed: true }
}

function refuse(item: PolicyField): CiliumDestination {
  item.report('toServices and toGroups are not supported: use toCIDR')
  return UNKNOWN_DESTINATION
}
