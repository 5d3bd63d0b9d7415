import type { JsonValue } from '../../kube/api.ts'
import type { PortProtocol } from '../rules/port-range.ts'
import type { EgressRule } from '../rules/rule.ts'
import type { Ports } from './peers.ts'
import type { PolicyField } from './policy-field.ts'

const DNS_PORT = 53
export const DNS_PROTOCOLS = ['udp', 'tcp'] as const

const NAMED_PORTS: ReadonlyMap<string, readonly PortProtocol[]> = new Map([
  ['dns', ['udp']],
  ['dns-tcp', ['tcp']],
])

/** What an administrator's rule says about DNS queries. The first one decides. */
export interface QueryRule {
  readonly action: EgressRule['action']
  readonly protocols: readonly PortProtocol[]
}

/** The parts of a rule of an AdminNetworkPolicy or ClusterNetworkPolicy that decide about queries. */
interface RuleParts {
  readonly action: EgressRule['action']
  readonly peers: readonly PolicyField[]
  readonly ports: Ports
}

/**
 * Returns what a rule says about queries; undefined = nothing. The server answers in place of the DNS servers that
 * clients ask, so it does not know which of them a rule for port 53 is about:
 *
 *              port 53 is in its list            all ports
 *     deny     all networks, Pods, unknown       says nothing: clients must be able to resolve names
 *     others   any network, Pods                 any network, namespaces
 */
export function queryRuleOf({ action, peers, ports }: RuleParts): QueryRule | undefined {
  const { ranges, isUnknown } = ports
  const isListed = ranges !== undefined || isUnknown
  const isSelected = peers.some((peer) => isAboutServers(peer, action, isListed))
  if (!isSelected || (action === 'deny' && !isListed)) return undefined
  const protocols = DNS_PROTOCOLS.filter((protocol) => {
    if (ranges === undefined || (isUnknown && action === 'deny')) return true
    return ranges.some((range) => {
      return range.protocol === protocol && range.first <= DNS_PORT && DNS_PORT <= range.last
    })
  })
  return protocols.length === 0 ? undefined : { action, protocols }
}

/** The ports of a named port, as the DNS of a cluster names them. Other names are other ports. */
export function namedDnsPort(name: JsonValue): Ports {
  const protocols = NAMED_PORTS.get(String(name)) ?? []
  const ranges = protocols.map((protocol) => ({ protocol, first: DNS_PORT, last: DNS_PORT }))
  return { ranges, isUnknown: false }
}

function isAboutServers(
  peer: PolicyField,
  action: EgressRule['action'],
  isListed: boolean,
): boolean {
  const [name, ...others] = peer.names()
  if (others.length > 0) return action === 'deny'
  switch (name) {
    case 'domainNames':
      return false
    case 'pods':
      return isListed
    case 'networks':
      return action !== 'deny' || peer.at('networks').silent().items().some(isEverywhere)
    case 'namespaces':
    case 'nodes':
      return true
    default:
      return action === 'deny'
  }
}

function isEverywhere({ value }: PolicyField): boolean {
  return typeof value === 'string' && value.endsWith('/0')
}

/** Decides by the rules of one tier, in order; undefined = none is about this protocol. */
export function queryActionOf(
  rules: readonly QueryRule[],
  protocol: PortProtocol,
): QueryRule['action'] | undefined {
  return rules.find(({ protocols }) => protocols.includes(protocol))?.action
}
