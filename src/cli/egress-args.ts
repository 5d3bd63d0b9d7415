import { NAME_KINDS } from '../egress/policies/openshift/name-kinds.ts'
import type { DnsNameResolverSettings } from '../operator/egress/dnsnameresolver/dns-name-resolver-session.ts'
import type { EgressFirewallSettings } from '../operator/egress/egressfirewall/egress-firewall-session.ts'
import type { FqdnSettings } from '../operator/egress/fqdnnetworkpolicy/settings.ts'
import type { OvnSettings } from '../operator/egress/ovn/ovn-settings.ts'
import { flagsOf } from './args.ts'
import { BadValue, type Get } from './flag-values.ts'
import { FQDN_FLAGS, readDnsService, readFqdnSettings } from './fqdn-flags.ts'
import { OVN_FLAGS, readOvnArgs } from './ovn-args.ts'

/** The names of the operator's controllers, for `--controllers`. */
export const CONTROLLERS = [
  'dnsrecord',
  'dnsnameresolver',
  'egressfirewall',
  'ovn',
  'fqdnnetworkpolicy',
  'policystatus',
] as const

/** Settings of the controllers for egress policies. */
export interface EgressArgs extends DnsNameResolverSettings, EgressFirewallSettings {
  readonly ovn: OvnSettings
  readonly fqdn: FqdnSettings
}

/** Flags of the controllers for egress policies, in the order of the help. */
export const EGRESS_FLAGS = [
  ...flagsOf(`
    --egress-namespace NAME | ovn-kubernetes | namespace of the objects for DNS names; OpenShift: openshift-ovn-kubernetes
    --egress-kind KIND | ${NAME_KINDS[0].kind} | kind of the objects for DNS names: ${NAME_KINDS.map(({ kind }) => kind).join(' or ')}, which is the first design of DNSNameResolver
    --cluster-cidr LIST | | comma-separated list of networks of nodes, Pods and Services: no DNS answer allows them
    --egress-allow LIST | | comma-separated list of networks that DNS answers may allow although they are denied by default, for example loopback
  `),
  ...OVN_FLAGS,
  ...FQDN_FLAGS,
]

/** A DNS label (RFC 1123 section 2.1). */
export const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** Reads the values of EGRESS_FLAGS. Throws BadValue. */
export function readEgressArgs(get: Get): EgressArgs {
  const namespace = get('egress-namespace')
  if (!NAMESPACE.test(namespace)) {
    throw new BadValue('egress-namespace', namespace, 'the name of a namespace')
  }
  const text = get('egress-kind')
  const nameKind = NAME_KINDS.find(({ kind }) => kind === text)
  if (nameKind === undefined) {
    throw new BadValue('egress-kind', text, NAME_KINDS.map(({ kind }) => kind).join(' or '))
  }
  return {
    namespace,
    nameKind,
    service: readDnsService(get),
    ovn: readOvnArgs(get, { namespace, nameKind }),
    fqdn: readFqdnSettings(get),
  }
}
