import { printTime } from '../../base/rfc3339.ts'
import type { KeyReport } from '../../base/telemetry/status.ts'
import { printAlgorithm } from '../../dns/dnssec/algorithms.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import type { StoredKey } from '../keys/key-store.ts'
import { isKeySigning } from '../keys/public-text.ts'
import type { NextStep } from './next-step.ts'
import type { KeyRole } from './policy.ts'
import type { RollState } from './roll-state.ts'
import { expire, mapTimelines, phaseOf } from './timeline.ts'

/** The rolls of a zone. */
export interface ZoneRollsState {
  /** Undefined = no server has signed the zone with these keys yet. */
  readonly rolls: RollState | undefined
  readonly next: NextStep | undefined
  readonly nowSeconds: number
}

/** Says what a server does with a key. `keys`: of all zones. */
export function describeKey(
  key: StoredKey,
  keys: readonly StoredKey[],
  { rolls: stored, next, nowSeconds }: ZoneRollsState,
): KeyReport {
  // The server rewrites the state only with its next step.
  const rolls = stored && mapTimelines(stored, (one) => expire(one, nowSeconds))
  const { id, zone, algorithm, tag } = key
  const used = rolls?.keys.find((one) => one.id === id)
  const role = used?.role ?? roleOf(key, keys)
  const seconds = next?.atSeconds
  return {
    zone: printName(zone),
    id,
    algorithm: printAlgorithm(algorithm),
    tag,
    role,
    state: key.privateKey === undefined ? 'public' : stageOf(id, role, rolls),
    nextStep: seconds === undefined ? null : printTime(seconds * 1000),
    nextStepText: next?.text ?? null,
  }
}

function stageOf(id: string, role: KeyRole, rolls: RollState | undefined): KeyReport['state'] {
  const used = rolls?.keys.find((key) => key.id === id)
  if (rolls === undefined || used === undefined) return 'unused'
  if (!used.isWanted) return 'retiring'
  if (phaseOf(rolls.dnskey, id) !== 'omnipresent') return 'published'
  if (role === 'ksk') return phaseOf(rolls.ds, id) === 'omnipresent' ? 'active' : 'ready'
  if (phaseOf(rolls.signers, id) === 'hidden') return 'published'
  return role === 'zsk' || phaseOf(rolls.ds, id) === 'omnipresent' ? 'active' : 'ready'
}

/** A KSK and a CSK have the same flags: a CSK is one because the zone has no ZSK. */
export function roleOf(
  { zone, flags }: Pick<StoredKey, 'zone' | 'flags'>,
  keys: readonly Pick<StoredKey, 'zone' | 'flags'>[],
): KeyRole {
  if (!isKeySigning(flags)) return 'zsk'
  const hasZsk = keys.some((key) => equalNames(key.zone, zone) && !isKeySigning(key.flags))
  return hasZsk ? 'ksk' : 'csk'
}
