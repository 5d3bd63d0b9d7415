import { scanAddress } from '../../dns/text/address.ts'

/** `spec.egress[]` and `spec.ingress[]` of a FQDNNetworkPolicy, and the rest of its `spec`. */
export interface FqdnPolicySpec {
  readonly podSelector: object
  readonly policyTypes?: readonly string[]
  readonly egress?: readonly {
    readonly to: readonly FqdnPeer[]
    readonly ports?: readonly object[]
  }[]
  readonly ingress?: readonly {
    readonly from: readonly FqdnPeer[]
    readonly ports?: readonly object[]
  }[]
}

export interface FqdnPeer {
  readonly fqdns: readonly string[]
}

/** What is known of one name; it is stored in `status.cache`. Times in milliseconds since 1970. */
export interface FqdnState {
  /** When the name is resolved again. */
  readonly nextLookupMs: number
  /** When each address is removed unless it is seen again, by CIDR: `192.0.2.1/32`. */
  readonly expiryMs: ReadonlyMap<string, number>
}

/** What one server answered for a name. */
export interface FqdnAnswer {
  readonly addresses: readonly string[]
  /** The lowest TTL of the addresses; undefined = no answer, or one without addresses. */
  readonly ttlSeconds: number | undefined
}

export interface FqdnOptions {
  /** How long an address stays after it was seen last (`-ip-expiration-period`). */
  readonly expirationMs: number
  /** Longest time between two lookups of a name (`-next-sync-period`). */
  readonly syncPeriodMs: number
  /** Time until the next lookup of a name without an address, and the shortest time between two lookups. */
  readonly retryMs: number
}

/**
 * Time after the end of the TTL at which a name is resolved again: by then, the caches between us and its
 * name server have dropped the old answer.
 */
const AFTER_TTL_MS = 800

/** Returns the names of all rules, as written, without repetitions. */
export function namesOf(spec: FqdnPolicySpec): ReadonlySet<string> {
  const to = (spec.egress ?? []).flatMap((rule) => rule.to)
  const from = (spec.ingress ?? []).flatMap((rule) => rule.from)
  return new Set([...to, ...from].flatMap(({ fqdns }) => fqdns))
}

/**
 * Returns the state of a name after its servers answered. Every address that any of them knows is kept until
 * `expirationMs` after it was seen last. `known`: the state before; undefined = the name is new.
 */
export function stateAfter(
  known: FqdnState | undefined,
  answers: readonly FqdnAnswer[],
  nowMs: number,
  options: FqdnOptions,
): FqdnState {
  const expiryMs = new Map(unexpired(known, nowMs))
  for (const cidr of answers.flatMap(({ addresses }) => addresses.map(cidrOf))) {
    // An expiry that was computed with a longer period stays.
    const before = expiryMs.get(cidr) ?? 0
    expiryMs.set(cidr, Math.max(before, nowMs + options.expirationMs))
  }
  const ttls = answers.flatMap(({ ttlSeconds }) => (ttlSeconds === undefined ? [] : [ttlSeconds]))
  const ttlMs = ttls.length === 0 ? 0 : Math.min(...ttls) * 1000 + AFTER_TTL_MS
  const waitMs = Math.min(Math.max(ttlMs, options.retryMs), options.syncPeriodMs + AFTER_TTL_MS)
  return { nextLookupMs: nowMs + waitMs, expiryMs }
}

/** True if a name has to be resolved now. */
export function isDue(state: FqdnState | undefined, nowMs: number): boolean {
  return state === undefined || state.nextLookupMs <= nowMs
}

/** The `spec` of the NetworkPolicy that a FQDNNetworkPolicy stands for. */
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

export interface IpPeer {
  readonly ipBlock: { readonly cidr: string }
}

/**
 * Returns the policy with the addresses that the names have now, in a fixed order. A rule without any
 * address is left out: an empty list of peers would allow everything. The policy types are always
 * written, because the API would otherwise derive them from the rules that are left.
 */
export function networkPolicySpec(
  spec: FqdnPolicySpec,
  states: ReadonlyMap<string, FqdnState>,
  nowMs: number,
): NetworkPolicySpec {
  const peersOf = (peers: readonly FqdnPeer[]): IpPeer[] => {
    const names = peers.flatMap(({ fqdns }) => fqdns)
    const cidrs = names.flatMap((name) => unexpired(states.get(name), nowMs).map(([cidr]) => cidr))
    return [...new Set(cidrs)].sort().map((cidr) => ({ ipBlock: { cidr } }))
  }
  const egress = (spec.egress ?? []).flatMap(({ to, ...rest }) => {
    const peers = peersOf(to)
    return peers.length === 0 ? [] : [{ to: peers, ...rest }]
  })
  const ingress = (spec.ingress ?? []).flatMap(({ from, ...rest }) => {
    const peers = peersOf(from)
    return peers.length === 0 ? [] : [{ from: peers, ...rest }]
  })
  const { podSelector } = spec
  const policyTypes = typesOf(spec)
  return {
    podSelector,
    policyTypes,
    ...(policyTypes.includes('Egress') ? { egress } : {}),
    ...(policyTypes.includes('Ingress') ? { ingress } : {}),
  }
}

/** The policy types as written, or those of the rules of the FQDNNetworkPolicy itself. */
function typesOf({ policyTypes, egress, ingress }: FqdnPolicySpec): readonly string[] {
  if (policyTypes !== undefined && policyTypes.length > 0) return policyTypes
  return [
    ...(ingress === undefined ? [] : ['Ingress']),
    ...(egress === undefined ? [] : ['Egress']),
  ]
}

function unexpired(state: FqdnState | undefined, nowMs: number): [string, number][] {
  return [...(state?.expiryMs ?? [])].filter(([, endMs]) => endMs > nowMs)
}

/** `192.0.2.1/32`, `2001:db8::1/128`. */
function cidrOf(address: string): string {
  return `${address}/${scanAddress(address)?.family === 1 ? 32 : 128}`
}
