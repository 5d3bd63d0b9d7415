import type { RollPolicy } from './policy.ts'
import type { RollState } from './roll-state.ts'
import { alsoSeen, confirm, equalIds } from './timeline.ts'

/** TTLs of a version of the zone. */
interface PublishedTtls {
  readonly dnskeySeconds: number
  /** Greatest TTL of the zone, the one of negative answers included. */
  readonly zoneSeconds: number
}

/** Notes that the current DNSKEY RRset and the signatures of the current keys are served. */
export function notePublished(
  state: RollState,
  { dnskeySeconds, zoneSeconds }: PublishedTtls,
  policy: RollPolicy,
  nowSeconds: number,
): RollState {
  const { zonePropagationSeconds, publishSafetySeconds, retireSafetySeconds } = policy
  // Where a DNSKEY RRset was missing, caches have a negative answer. The TTLs of the unsigned zone are not known.
  const hadNone = state.dnskey.older.some(({ keys }) => keys.length === 0)
  const dnskeyTtl = hadNone ? Math.max(dnskeySeconds, zoneSeconds) : dnskeySeconds
  const [keysWait, zoneWait] = [publishSafetySeconds, retireSafetySeconds].map(
    (safety) => zonePropagationSeconds + safety,
  )
  const dnskey = confirm(state.dnskey, dnskeyTtl, keysWait!, nowSeconds)
  const signers = confirm(state.signers, zoneSeconds, zoneWait!, nowSeconds)
  // Times are whole seconds, rounded down.
  const servedSeconds = nowSeconds + zonePropagationSeconds + 1
  const askedSeconds = Math.min(state.askedSeconds, servedSeconds)
  const isSame = dnskey === state.dnskey && signers === state.signers
  return isSame && askedSeconds === state.askedSeconds
    ? state
    : { ...state, dnskey, signers, askedSeconds }
}

/** True if the parent can follow only the CDS of the DS that it should have now. */
export function isAsked({ askedSeconds }: RollState, nowSeconds: number): boolean {
  return nowSeconds >= askedSeconds
}

/** The DS records that all servers of the parent have. */
export interface SeenParent {
  /** Sorted ids of the keys of the zone that they belong to. */
  readonly keys: readonly string[]
  readonly ttlSeconds: number
  /** When the parent was asked. */
  readonly atSeconds: number
}

/** Notes what the parent has, whether it was asked for that or not. */
export function noteParent(
  state: RollState,
  { keys, ttlSeconds, atSeconds }: SeenParent,
  policy: RollPolicy,
  nowSeconds: number,
): RollState {
  const { parentPropagationSeconds, parentDsTtlSeconds, retireSafetySeconds } = policy
  const { ds } = state
  if (equalIds(keys, ds.keys)) {
    // Before that, the parent may have found older CDS, and changed the DS back.
    if (!ds.isKnown && !isAsked(state, Math.min(atSeconds, nowSeconds))) return state
    const ttl = Math.max(ttlSeconds, parentDsTtlSeconds)
    const waitSeconds = parentPropagationSeconds + retireSafetySeconds
    const known = confirm(ds, ttl, waitSeconds, nowSeconds)
    return known === ds ? state : { ...state, ds: known }
  }
  const pending = ds.older.some((one) => one.untilSeconds === Infinity && equalIds(one.keys, keys))
  return pending ? state : { ...state, ds: alsoSeen(ds, keys) }
}
