import { equalNames } from '../dns/name/name.ts'
import type { KeyStore, StoredKey } from '../signing/keys/key-store.ts'
import type { ZoneRollsState } from '../signing/rolls/describe-key.ts'
import { nextStep, waitForCaches } from '../signing/rolls/next-step.ts'
import { DEFAULT_POLICY } from '../signing/rolls/policy.ts'
import { printRequest, scanRollState } from '../signing/rolls/roll-state.ts'

/** The rolls of a zone, as its store has them. */
export interface StoredRolls extends ZoneRollsState {
  /** What `sextant keys` requested and the server has not done yet. */
  readonly requests: readonly string[]
}

/** Reads the state of a zone's rolls. `keys`: of all zones. @throws InputError if it is invalid. */
export async function readZoneState(
  zone: Uint8Array,
  keys: readonly StoredKey[],
  { store, nowSeconds }: { readonly store: KeyStore; readonly nowSeconds: number },
): Promise<StoredRolls> {
  const text = await store.readState(zone)
  if (text === undefined) return { rolls: undefined, next: undefined, nowSeconds, requests: [] }
  const state = scanRollState(text)
  // Only the server knows the lifetimes of the policy. All other waits are in the state.
  const never = Number.POSITIVE_INFINITY
  const lifetimeSeconds = { csk: never, ksk: never, zsk: never }
  const policy = { ...DEFAULT_POLICY, ...state.configured, lifetimeSeconds }
  const usable = keys.filter((key) => equalNames(key.zone, zone) && key.privateKey !== undefined)
  const done = { state, steps: [], create: [], retire: [] }
  const next = nextStep({ usable, policy, nowSeconds }, done) ?? waitForCaches(state, nowSeconds)
  return { rolls: state, next, nowSeconds, requests: state.requests.map(printRequest) }
}
