import type { KeyRole } from './policy.ts'
import type { RollState } from './roll-state.ts'
import { type KeyPhase, phaseOf } from './timeline.ts'

/** A key as `sextant keys list` shows it. */
interface DescribedKey {
  readonly id: string
  readonly role: KeyRole
  /** False = it goes out of use. */
  readonly isWanted: boolean
  readonly sinceSeconds: number
  /** RFC 7583; of `signatures` and `ds` only if the role has them. */
  readonly dnskey: KeyPhase
  readonly signatures: KeyPhase | undefined
  readonly ds: KeyPhase | undefined
}

/** Returns the keys of a state, and ids of those whose DS the parent should have. */
export function describeState(state: RollState): {
  readonly keys: readonly DescribedKey[]
  readonly ds: readonly string[]
} {
  const keys = state.keys.map(({ id, role, isWanted, sinceSeconds }) => ({
    id,
    role,
    isWanted,
    sinceSeconds,
    dnskey: phaseOf(state.dnskey, id),
    signatures: role === 'ksk' ? undefined : phaseOf(state.signers, id),
    ds: role === 'zsk' ? undefined : phaseOf(state.ds, id),
  }))
  return { keys, ds: state.ds.keys }
}
