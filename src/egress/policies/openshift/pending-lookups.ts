import { Rcode } from '../../../dns/iana/rcodes.ts'
import { REMOVAL_GRACE_MS } from './lookup-time.ts'
import type { Lookup, UpdateLimits } from './resolved-names.ts'

/** Names with lookups that are not written; at this limit, the oldest is dropped. */
const NAMES_MAX = 1024
/** Addresses of one name. */
const ADDRESSES_MAX = 1000

/**
 * The lookups of one object that its status does not show yet. Per name, they are at most one answer
 * and the failures after it. So their number is bounded while the API cannot be reached.
 */
export class PendingLookups {
  readonly #limits: UpdateLimits
  /** By name, the oldest first. */
  readonly #lookups = new Map<string, readonly Lookup[]>()

  constructor(limits: UpdateLimits) {
    this.#limits = limits
  }

  get isEmpty(): boolean {
    return this.#lookups.size === 0
  }

  add(lookup: Lookup): void {
    const { dnsName } = lookup
    const known = this.#lookups.get(dnsName) ?? []
    this.#lookups.delete(dnsName)
    if (this.#lookups.size >= NAMES_MAX) {
      const [oldest] = this.#lookups.keys()
      this.#lookups.delete(oldest!)
    }
    this.#lookups.set(dnsName, this.#joined(known, lookup))
  }

  /** The lookups in their order, without addresses that expired before `nowMs`. */
  all(nowMs: number): readonly Lookup[] {
    return [...this.#lookups.values()].flat().flatMap((lookup) => {
      if (isFailure(lookup)) return [lookup]
      const addresses = lookup.addresses.filter(({ ttlSeconds }) => {
        return this.#endMs(lookup.nowMs, ttlSeconds) + REMOVAL_GRACE_MS >= nowMs
      })
      if (addresses.length === lookup.addresses.length) return [lookup]
      return addresses.length === 0 ? [] : [{ ...lookup, addresses }]
    })
  }

  /** Returns a mark for `settle`: everything that was added so far. */
  mark(): ReadonlySet<Lookup> {
    return new Set([...this.#lookups.values()].flat())
  }

  /** Forgets what was added before the mark: the status shows it, or cannot have it. */
  settle(mark: ReadonlySet<Lookup>): void {
    for (const [dnsName, lookups] of this.#lookups) {
      const left = lookups.filter((lookup) => !mark.has(lookup))
      if (left.length === 0) this.#lookups.delete(dnsName)
      else if (left.length < lookups.length) this.#lookups.set(dnsName, left)
    }
  }

  #joined(known: readonly Lookup[], lookup: Lookup): readonly Lookup[] {
    if (!isFailure(lookup)) {
      const answer = known.find((one) => !isFailure(one))
      return [answer === undefined ? lookup : this.#united(answer, lookup)]
    }
    const failures = known.filter(isFailure)
    // More of them change nothing.
    if (failures.length > this.#limits.failureThreshold) return known
    return [...known, lookup]
  }

  /** An answer counts for the addresses of an earlier one too, which keep their ends. */
  #united(before: Lookup, lookup: Lookup): Lookup {
    const { nowMs, addresses } = lookup
    const found = new Set(addresses.map(({ ip }) => ip))
    const earlier = before.addresses.flatMap(({ ip, ttlSeconds }) => {
      const left = Math.floor((this.#endMs(before.nowMs, ttlSeconds) - nowMs) / 1000)
      return found.has(ip) || left <= 0 ? [] : [{ ip, ttlSeconds: left }]
    })
    return { ...lookup, addresses: [...addresses, ...earlier].slice(0, ADDRESSES_MAX) }
  }

  #endMs(nowMs: number, ttlSeconds: number): number {
    return nowMs + (ttlSeconds === 0 ? this.#limits.minTtlSeconds : ttlSeconds) * 1000
  }
}

function isFailure({ rcode }: Lookup): boolean {
  return rcode !== Rcode.NOERROR
}
