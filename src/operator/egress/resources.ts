import type { ApiResource } from '../../kube/api.ts'

/** EgressFirewalls of OVN-Kubernetes. */
export const EGRESS_FIREWALLS: ApiResource = {
  group: 'k8s.ovn.org',
  version: 'v1',
  plural: 'egressfirewalls',
}
/** DNSNameResolvers of OpenShift. */
export const DNS_NAME_RESOLVERS: ApiResource = {
  group: 'network.openshift.io',
  version: 'v1alpha1',
  plural: 'dnsnameresolvers',
}
