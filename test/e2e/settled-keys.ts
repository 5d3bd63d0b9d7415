import { systemClock } from '../../src/base/clock.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { Algorithm } from '../../src/dns/dnssec/algorithms.ts'
import { FLAGS_KSK, FLAGS_ZSK } from '../../src/dns/dnssec/dnskey.ts'
import { composeDs } from '../../src/dns/dnssec/ds.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { KeyDirectory } from '../../src/signing/keys/key-directory.ts'
import { printRollState, type RollKey } from '../../src/signing/rolls/roll-state.ts'
import { settled } from '../../src/signing/rolls/timeline.ts'
import { wire } from '../support/zone-names.ts'

interface SettledKeys {
  /** DS rdata as text. */
  readonly ds: string
  /** Key tags. */
  readonly tags: readonly number[]
}

/**
 * Makes the keys of a zone that was signed with them long ago, and whose parent has the DS: a zone that begins to be signed
 * waits for negative answers in caches. `zone`: without the final dot. `split`: a KSK and a ZSK.
 */
export async function makeSettledKeys(
  path: string,
  zone: string,
  split: boolean,
): Promise<SettledKeys> {
  const store = new KeyDirectory({ path, clock: systemClock, timers: systemTimers })
  const apex = wire(`${zone}.`)
  const algorithm = Algorithm.EcdsaP256
  const nowSeconds = Math.floor(systemClock.now() / 1000)
  const first = await store.create(apex, algorithm, FLAGS_KSK)
  const second = split ? [await store.create(apex, algorithm, FLAGS_ZSK)] : []
  const roles: [string, RollKey['role']][] = [
    [first.id, split ? 'ksk' : 'csk'],
    ...second.map(({ id }): [string, 'zsk'] => [id, 'zsk']),
  ]
  const keys = roles.map(([id, role]) => ({
    ...{ id, role, algorithm, isWanted: true, sinceSeconds: nowSeconds },
  }))
  const idsOf = (left: RollKey['role']): readonly string[] => {
    return keys
      .filter(({ role }) => role !== left)
      .map(({ id }) => id)
      .sort()
  }
  const layout = { split, algorithm }
  const state = printRollState({
    configured: layout,
    wanted: layout,
    isSigned: true,
    askedSeconds: nowSeconds,
    keys,
    dnskey: settled(keys.map(({ id }) => id).sort(), nowSeconds),
    signers: settled(idsOf('ksk'), nowSeconds),
    ds: settled(idsOf('zsk'), nowSeconds),
    claim: undefined,
    requests: [],
  })
  await store.editState(apex, () => state)
  const ds = printRdata(RRType.DS, composeDs(apex, first.dnskey, 2))
  return { ds, tags: [first, ...second].map(({ tag }) => tag) }
}
