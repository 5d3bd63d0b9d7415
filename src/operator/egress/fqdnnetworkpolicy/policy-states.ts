import type { Clock } from '../../../base/clock.ts'
import { nameKey } from '../../../dns/name/name.ts'
import { AddressRules } from '../../../egress/learned/address-rules.ts'
import type { AddressEnd } from '../../../egress/learned/learned-table.ts'
import {
  type FqdnGrants,
  fqdnGrants,
  restoreEnds,
} from '../../../egress/policies/fqdn/fqdn-grants.ts'
import type { FqdnPolicy } from '../../../egress/policies/fqdn/fqdn-policy.ts'
import {
  type CachedName,
  type NameCache,
  readCache,
} from '../../../egress/policies/fqdn/fqdn-status.ts'
import type { ApiObject } from '../../../kube/api.ts'
import type { Lookups } from './lookups.ts'
import type { FqdnSettings } from './settings.ts'

/**
 * How long the first write of a new NetworkPolicy waits for the names: so it is created with its
 * addresses. After a restart, a policy does not become pending before.
 */
export const FIRST_MS = 2000

/** What this process knows about a policy, besides the answers to its lookups. */
export interface PolicyState {
  readonly uid: string
  readonly firstMs: number
  /** When this process saw the policy first. */
  readonly firstGeneration: number
  /** By key of a name: what the status had at that time. Other policies do not see these addresses. */
  readonly restored: ReadonlyMap<string, readonly AddressEnd[]>
  /** Keys of the names that the status had at that time, also of those without a valid address. */
  readonly stored: ReadonlySet<string>
  /** By key of a name: when it was due at that time, in monotonic milliseconds. */
  readonly dueMs: ReadonlyMap<string, number>
  /** True once the NetworkPolicy was as the policy wants it. */
  isApplied: boolean
  /** Last reported state; '' = not reported yet. */
  reported: '' | 'Active' | 'Pending'
  /** Faults that Events have reported. */
  readonly faults: Set<string>
}

export interface Now {
  /** Monotonic milliseconds. */
  readonly nowMs: number
  /** The same time by the system clock, in milliseconds since 1970. */
  readonly wallMs: number
}

/** Reads what `status` has stored when a policy is seen for the first time. */
export function beginState(
  policy: FqdnPolicy,
  object: ApiObject,
  expirationMs: number,
  { nowMs, wallMs }: Now,
): PolicyState {
  const restored = new Map<string, readonly AddressEnd[]>()
  const stored = new Set<string>()
  const dueMs = new Map<string, number>()
  for (const [fqdn, entry] of readCache(object.status)) {
    const wire = policy.names.get(fqdn)
    if (wire === undefined) continue
    const key = nameKey(wire)
    stored.add(key)
    const ends = restoreEnds(entry, expirationMs, wallMs, nowMs)
    if (ends.length === 0) continue
    restored.set(key, [...(restored.get(key) ?? []), ...ends])
    dueMs.set(key, nowMs + entry.nextMs - wallMs)
  }
  return {
    uid: policy.uid,
    firstMs: nowMs,
    firstGeneration: policy.generation,
    restored,
    stored,
    dueMs,
    isApplied: false,
    reported: '',
    faults: new Set(),
  }
}

/** What a policy grants now, by the names as written. Invalid names are missing. */
export type PolicyGrants = ReadonlyMap<string, FqdnGrants>

/** What the lookups have found so far. */
type KnownNames = Pick<Lookups, 'endsOf' | 'isSettled' | 'dueMsOf'>

/** Combines the answers to lookups with the restored state of a policy. */
export class GrantReader {
  readonly #lookups: KnownNames
  readonly #settings: FqdnSettings
  readonly #clock: Clock
  readonly #addresses: AddressRules

  constructor(lookups: KnownNames, settings: FqdnSettings, clock: Clock) {
    this.#lookups = lookups
    this.#settings = settings
    this.#clock = clock
    this.#addresses = new AddressRules(settings.clusterNetworks, settings.allowedNetworks)
  }

  now(): Now {
    return { nowMs: this.#clock.monotonic(), wallMs: this.#clock.now() }
  }

  grantsOf(policy: FqdnPolicy, state: PolicyState, nowMs: number): PolicyGrants {
    const grants = new Map<string, FqdnGrants>()
    const rules = {
      addresses: this.#addresses,
      skipsAaaa: this.skipsAaaa(policy),
    }
    for (const [fqdn, wire] of policy.names) {
      if (wire === undefined) continue
      const restored = state.restored.get(nameKey(wire)) ?? []
      const ends = [...this.#lookups.endsOf(wire), ...restored]
      grants.set(fqdn, fqdnGrants(ends, rules, nowMs))
    }
    return grants
  }

  skipsAaaa({ skipsAaaa }: FqdnPolicy): boolean {
    return this.#settings.skipsAaaa || skipsAaaa
  }

  /**
   * How long the first write waits, in milliseconds; 0 = it is time. If the status does not say how
   * long the addresses of a name are valid, an existing NetworkPolicy stays as it is until the name has been
   * resolved, at most for the expiration period. An address that the status calls expired is not
   * allowed that long.
   */
  holdMs(policy: FqdnPolicy, state: PolicyState, exists: boolean, nowMs: number): number {
    if (state.isApplied || policy.generation !== state.firstGeneration) return 0
    const unknown = policy.wires.filter((wire) => {
      return !state.restored.has(nameKey(wire)) && !this.#lookups.isSettled(wire)
    })
    if (unknown.length === 0) return 0
    const areStored = unknown.every((wire) => state.stored.has(nameKey(wire)))
    const limitMs = exists && !areStored ? this.#settings.ipExpirationMs : FIRST_MS
    return Math.max(0, state.firstMs + limitMs - nowMs)
  }

  /** `status.cache` for these grants. */
  cacheOf(policy: FqdnPolicy, grants: PolicyGrants, now: Now): NameCache {
    const cache = new Map<string, CachedName>()
    for (const [fqdn, { untilMs }] of grants) {
      const expiryMs = new Map<string, number>()
      for (const [cidr, endMs] of untilMs) expiryMs.set(cidr, endMs - now.nowMs + now.wallMs)
      cache.set(fqdn, { nextMs: this.#nextMsOf(policy, fqdn, now), expiryMs })
    }
    return cache
  }

  /** When the first name is resolved again, by the system clock; undefined = the policy has no names. */
  nextSyncMs(policy: FqdnPolicy, grants: PolicyGrants, now: Now): number | undefined {
    const times = [...grants.keys()].map((fqdn) => this.#nextMsOf(policy, fqdn, now))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  #nextMsOf(policy: FqdnPolicy, fqdn: string, { nowMs, wallMs }: Now): number {
    const wire = policy.names.get(fqdn)
    const dueMs = wire === undefined ? undefined : this.#lookups.dueMsOf(wire)
    return Math.max(0, (dueMs ?? nowMs) - nowMs) + wallMs
  }
}

/** When the first grant ends, in monotonic milliseconds; Infinity = nothing is granted. */
export function firstEndMs(grants: PolicyGrants): number {
  let firstMs = Number.POSITIVE_INFINITY
  for (const { untilMs } of grants.values()) {
    for (const endMs of untilMs.values()) firstMs = Math.min(firstMs, endMs)
  }
  return firstMs
}
