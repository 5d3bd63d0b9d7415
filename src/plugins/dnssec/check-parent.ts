import type { HostPort } from '../../dns/host-port.ts'
import { equalNames, nameKey, printName } from '../../dns/name/name.ts'
import type { KeyStore, StoredKey } from '../../signing/keys/key-store.ts'
import { dsFaults, needsDs } from '../../signing/rolls/ds-faults.ts'
import { askParentDs } from '../../signing/rolls/parent-ds.ts'
import { scanRollState } from '../../signing/rolls/roll-state.ts'

/**
 * Compares the DS records of the parent with the keys, and calls `warn` with each fault. Ends at the first zone whose
 * parent does not answer: that takes 5 s.
 */
export async function checkParent(
  store: KeyStore,
  keys: readonly StoredKey[],
  parents: readonly HostPort[],
  nowSeconds: number,
  warn: (fault: string) => void,
): Promise<void> {
  if (parents.length === 0) return
  for (const zone of new Map(keys.map((key) => [nameKey(key.zone), key.zone])).values()) {
    const text = `zone ${printName(zone)}`
    const found = await askParentDs(zone, parents)
    if (typeof found === 'string') {
      warn(`${text}: the DS in the parent is not known: ${found}`)
      return
    }
    const state = await store.readState(zone)
    const isNeeded = state !== undefined && needsDs(scanRollState(state), nowSeconds)
    const dnskeys = keys.filter((key) => equalNames(key.zone, zone)).map(({ dnskey }) => dnskey)
    for (const fault of dsFaults(zone, found.rdata, { dnskeys, isNeeded })) {
      warn(`${text}: ${fault}`)
    }
  }
}
