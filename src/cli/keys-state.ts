import { printTime } from '../base/rfc3339.ts'
import { equalNames } from '../dns/name/name.ts'
import type { KeyStore, StoredKey } from '../signing/keys/key-store.ts'
import { isKeySigning } from '../signing/keys/public-text.ts'
import { type NextStep, nextStep } from '../signing/rolls/next-step.ts'
import { DEFAULT_POLICY, type KeyRole } from '../signing/rolls/policy.ts'
import { printRequest, type RollState, scanRollState } from '../signing/rolls/roll-state.ts'
import { phaseOf } from '../signing/rolls/timeline.ts'

/** The state of a key: what a server does with it. `ready`: the zone waits for its DS in the parent. */
type KeyStage = 'unused' | 'published' | 'ready' | 'active' | 'retiring' | 'public'

/** A key with what the state of the zone's rolls says of it. */
export interface ListedKey {
  readonly role: KeyRole
  readonly state: KeyStage
  /** RFC 3339; null = no time is known. */
  readonly nextStep: string | null
  readonly nextStepText: string | null
}

/** The rolls of a zone. */
export interface ZoneRollsState {
  /** Undefined = no server has signed the zone with these keys yet. */
  readonly rolls: RollState | undefined
  readonly next: NextStep | undefined
  /** What `sextant keys` requested and the server has not done yet. */
  readonly requests: readonly string[]
}

/** Reads the state of a zone's rolls. `keys`: of all zones. @throws InputError if it is invalid. */
export async function readZoneState(
  zone: Uint8Array,
  keys: readonly StoredKey[],
  { store, nowSeconds }: { readonly store: KeyStore; readonly nowSeconds: number },
): Promise<ZoneRollsState> {
  const text = await store.readState(zone)
  if (text === undefined) return { rolls: undefined, next: undefined, requests: [] }
  const state = scanRollState(text)
  // Only the server knows the lifetimes of the policy. All other waits are in the state.
  const never = Number.POSITIVE_INFINITY
  const lifetimeSeconds = { csk: never, ksk: never, zsk: never }
  const policy = { ...DEFAULT_POLICY, ...state.configured, lifetimeSeconds }
  const usable = keys.filter((key) => equalNames(key.zone, zone) && key.privateKey !== undefined)
  const done = { state, steps: [], create: [], retire: [] }
  const next = nextStep({ usable, policy, nowSeconds }, done)
  return { rolls: state, next, requests: state.requests.map(printRequest) }
}

/** Returns the role and state of a key. `keys`: of all zones. */
export function describeKey(
  key: StoredKey,
  keys: readonly StoredKey[],
  { rolls, next }: ZoneRollsState,
): ListedKey {
  const used = rolls?.keys.find(({ id }) => id === key.id)
  const role = used?.role ?? roleOf(key, keys)
  const state = key.privateKey === undefined ? 'public' : stageOf(key.id, role, rolls)
  const seconds = next?.atSeconds
  return {
    role,
    state,
    nextStep: seconds === undefined ? null : printTime(seconds * 1000),
    nextStepText: next?.text ?? null,
  }
}

function stageOf(id: string, role: KeyRole, rolls: RollState | undefined): KeyStage {
  const used = rolls?.keys.find((key) => key.id === id)
  if (rolls === undefined || used === undefined) return 'unused'
  if (!used.isWanted) return 'retiring'
  if (phaseOf(rolls.dnskey, id) !== 'omnipresent') return 'published'
  if (role === 'ksk') return phaseOf(rolls.ds, id) === 'omnipresent' ? 'active' : 'ready'
  if (phaseOf(rolls.signers, id) === 'hidden') return 'published'
  return role === 'zsk' || phaseOf(rolls.ds, id) === 'omnipresent' ? 'active' : 'ready'
}

/** A KSK and a CSK have the same flags: a CSK is one because the zone has no ZSK. */
function roleOf({ zone, flags }: StoredKey, keys: readonly StoredKey[]): KeyRole {
  if (!isKeySigning(flags)) return 'zsk'
  const hasZsk = keys.some((key) => equalNames(key.zone, zone) && !isKeySigning(key.flags))
  return hasZsk ? 'ksk' : 'csk'
}
