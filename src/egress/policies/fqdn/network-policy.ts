/** `spec` of a FQDNNetworkPolicy. */
export interface FqdnPolicySpec {
  readonly podSelector: object
  /** Undefined = the types of the rules. */
  readonly policyTypes: readonly string[] | undefined
  readonly egress: readonly FqdnRule[] | undefined
  readonly ingress: readonly FqdnRule[] | undefined
}

export interface FqdnRule {
  /** The domain names of all peers, as written. */
  readonly fqdns: readonly string[]
  readonly ports: readonly object[] | undefined
}

/** `spec` of a NetworkPolicy. */
export interface NetworkPolicySpec {
  readonly podSelector: object
  readonly policyTypes: readonly string[]
  readonly egress?: readonly {
    readonly to: readonly IpPeer[]
    readonly ports?: readonly object[]
  }[]
  readonly ingress?: readonly {
    readonly from: readonly IpPeer[]
    readonly ports?: readonly object[]
  }[]
}

interface IpPeer {
  readonly ipBlock: { readonly cidr: string }
}

/** Returns the names of all rules, as written, without repetitions. */
export function fqdnsOf({ egress = [], ingress = [] }: FqdnPolicySpec): ReadonlySet<string> {
  return new Set([...egress, ...ingress].flatMap(({ fqdns }) => fqdns))
}

/**
 * Returns the NetworkPolicy that a FQDNNetworkPolicy stands for, in a fixed order. `cidrsOf`: the
 * addresses that a name has now. A rule without any address is omitted: an empty list of peers would
 * allow everything. The policy types are always written, because the API would otherwise derive them
 * from the rules that are left.
 */
export function networkPolicySpec(
  spec: FqdnPolicySpec,
  cidrsOf: (fqdn: string) => Iterable<string>,
): NetworkPolicySpec {
  const rulesOf = (rules: readonly FqdnRule[] = []) =>
    rules.flatMap(({ fqdns, ports }) => {
      const cidrs = new Set(fqdns.flatMap((fqdn) => [...cidrsOf(fqdn)]))
      const peers: readonly IpPeer[] = [...cidrs].sort().map((cidr) => ({ ipBlock: { cidr } }))
      return peers.length === 0 ? [] : [{ peers, ...(ports === undefined ? {} : { ports }) }]
    })
  const policyTypes = typesOf(spec)
  const egress = rulesOf(spec.egress).map(({ peers, ...rest }) => ({ to: peers, ...rest }))
  const ingress = rulesOf(spec.ingress).map(({ peers, ...rest }) => ({ from: peers, ...rest }))
  return {
    podSelector: spec.podSelector,
    policyTypes,
    ...(policyTypes.includes('Egress') ? { egress } : {}),
    ...(policyTypes.includes('Ingress') ? { ingress } : {}),
  }
}

/** The types as written, or those of the rules of the FQDNNetworkPolicy; `Ingress` if it has none. */
function typesOf({ policyTypes = [], egress, ingress }: FqdnPolicySpec): readonly string[] {
  if (policyTypes.length > 0) return policyTypes
  if (egress === undefined) return ['Ingress']
  return ingress === undefined ? ['Egress'] : ['Ingress', 'Egress']
}
