import type { ApiResource } from '../../kube/api.ts'

export {
  DNS_NAME_RESOLVERS,
  EGRESS_FIREWALL_DNS_NAMES,
  NAME_KINDS,
  type NameKind,
} from '../../egress/policies/openshift/name-kinds.ts'

/** EgressFirewalls of OVN-Kubernetes. */
export const EGRESS_FIREWALLS: ApiResource = {
  group: 'k8s.ovn.org',
  version: 'v1',
  plural: 'egressfirewalls',
}
