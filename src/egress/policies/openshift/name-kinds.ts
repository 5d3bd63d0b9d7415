import type { ApiResource } from '../../../kube/api.ts'

/** A kind of objects with a DNS name in `spec.name`, whose status has the addresses. */
export interface NameKind {
  readonly kind: 'DNSNameResolver' | 'EgressFirewallDNSName'
  readonly resource: ApiResource
}

/** DNSNameResolvers of OpenShift. */
export const DNS_NAME_RESOLVERS: ApiResource = {
  group: 'network.openshift.io',
  version: 'v1alpha1',
  plural: 'dnsnameresolvers',
}

/** EgressFirewallDNSNames, the first design of DNSNameResolvers. */
export const EGRESS_FIREWALL_DNS_NAMES: ApiResource = {
  group: 'dns.openshift.io',
  version: 'v1alpha1',
  plural: 'egressfirewalldnsnames',
}

/** The first one is the default. */
export const NAME_KINDS: readonly [NameKind, ...NameKind[]] = [
  { kind: 'DNSNameResolver', resource: DNS_NAME_RESOLVERS },
  { kind: 'EgressFirewallDNSName', resource: EGRESS_FIREWALL_DNS_NAMES },
]
