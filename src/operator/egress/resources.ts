import { DNS_NAME_RESOLVER } from '../../egress/openshift/dns-name-resolver.ts'
import { EGRESS_FIREWALL_DNS_NAME } from '../../egress/openshift/egress-firewall-dns-name.ts'
import type { ApiResource } from '../../kube/api.ts'

/** EgressFirewalls of OVN-Kubernetes. */
export const EGRESS_FIREWALLS: ApiResource = {
  group: 'k8s.ovn.org',
  version: 'v1',
  plural: 'egressfirewalls',
}
/** DNSNameResolvers of OpenShift. */
export const DNS_NAME_RESOLVERS: ApiResource = DNS_NAME_RESOLVER.resource
/** EgressFirewallDNSNames, the first design of DNSNameResolvers. */
export const EGRESS_FIREWALL_DNS_NAMES: ApiResource = EGRESS_FIREWALL_DNS_NAME.resource
