import type { DnsNameResolverSettings } from '../operator/egress/dnsnameresolver/dns-name-resolver-session.ts'
import type { FqdnSettings } from '../operator/egress/fqdnnetworkpolicy/settings.ts'
import type { OvnSettings } from '../operator/egress/ovn/ovn-settings.ts'
import { BadValue, type Flag, type Get } from './flag-values.ts'
import { FQDN_FLAGS, readDnsService, readFqdnSettings } from './fqdn-flags.ts'
import { OVN_FLAGS, readOvnArgs } from './ovn-args.ts'

/** The names of the operator's controllers, for `--controllers`. */
export const CONTROLLERS = [
  'dnsrecord',
  'dnsnameresolver',
  'egressfirewall',
  'ovn',
  'fqdnnetworkpolicy',
] as const

/** Settings of the controllers for egress policies. */
export interface EgressArgs extends DnsNameResolverSettings {
  readonly ovn: OvnSettings
  readonly fqdn: FqdnSettings
}

/** Flags of the controllers for egress policies, in the order of the help. */
export const EGRESS_FLAGS: readonly Flag[] = [
  {
    name: 'egress-namespace',
    value: 'ovn-kubernetes',
    help: 'namespace of the DNSNameResolvers; OpenShift: openshift-ovn-kubernetes',
  },
  {
    name: 'cluster-cidr',
    value: '',
    help: 'comma list of networks of nodes, Pods and Services: no DNS answer allows them',
  },
  {
    name: 'egress-allow',
    value: '',
    help: 'comma list of networks that DNS answers may allow although they are denied by default, for example loopback',
  },
  ...OVN_FLAGS,
  ...FQDN_FLAGS,
]

/** A DNS label (RFC 1123 section 2.1). */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** Reads the values of EGRESS_FLAGS. Throws BadValue. */
export function readEgressArgs(get: Get): EgressArgs {
  const namespace = get('egress-namespace')
  if (!NAMESPACE.test(namespace)) {
    throw new BadValue('egress-namespace', namespace, 'the name of a namespace')
  }
  return {
    namespace,
    service: readDnsService(get),
    ovn: readOvnArgs(get, namespace),
    fqdn: readFqdnSettings(get),
  }
}
