import type { AddressFamily } from '../../dns/text/address.ts'
import type { AddressRules } from '../names/address-rules.ts'
import type { NameFacts } from '../names/facts.ts'
import type { Validity } from '../names/validity.ts'

/** An address that a selector grants now. */
export interface Grant {
  readonly family: AddressFamily
  /** In canonical form. */
  readonly address: string
  /** Monotonic milliseconds; the address is valid at this time. */
  readonly untilMs: number
  /** The names that lead to the address, sorted: the answers that explain the grant. Never empty. */
  readonly names: readonly string[]
}

/** By address, in the order of the addresses. */
export type GrantSet = ReadonlyMap<string, Grant>

export const NO_GRANTS: GrantSet = new Map()

/**
 * Returns what a selector grants at a time. `names`: those that the selector holds. Each grant is
 * an address of one of them that is valid by the policy's rule and that no address rule denies.
 */
export function grantsOf(
  names: Iterable<NameFacts>,
  validity: Validity,
  rules: AddressRules,
  nowMs: number,
): GrantSet {
  const grants = new Map<string, Grant>()
  for (const { name, addresses, outcomes } of names) {
    for (const fact of addresses.values()) {
      const { address, family } = fact
      const ownMs = validity(fact, outcomes)
      if (ownMs < nowMs || rules.denialOf(address) !== undefined) continue
      const known = grants.get(address)
      const untilMs = Math.max(ownMs, known?.untilMs ?? ownMs)
      const explained = [...(known?.names ?? []), name].sort()
      grants.set(address, { family, address, untilMs, names: explained })
    }
  }
  return new Map([...grants].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The time at which the first grant ends; Infinity = no grants. */
export function firstEndOf(grants: GrantSet): number {
  let firstMs = Number.POSITIVE_INFINITY
  for (const { untilMs } of grants.values()) firstMs = Math.min(firstMs, untilMs)
  return firstMs
}

/** The difference between two sets. */
export interface GrantChange {
  readonly added: readonly Grant[]
  /** The same addresses with another end or other names. */
  readonly changed: readonly Grant[]
  readonly removed: readonly Grant[]
}

export function diffGrants(before: GrantSet, after: GrantSet): GrantChange {
  const added: Grant[] = []
  const changed: Grant[] = []
  for (const grant of after.values()) {
    const old = before.get(grant.address)
    if (old === undefined) added.push(grant)
    else if (old.untilMs !== grant.untilMs || old.names.join() !== grant.names.join()) {
      changed.push(grant)
    }
  }
  const removed = [...before.values()].filter(({ address }) => !after.has(address))
  return { added, changed, removed }
}
