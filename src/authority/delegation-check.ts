import { InputError } from '../base/errors.ts'
import { lazyKey } from '../base/shared-values.ts'
import { RRType } from '../dns/iana/types.ts'
import { equalNames, isSubdomain, nameKey, printName } from '../dns/name/name.ts'
import { dsFaults } from '../signing/rolls/ds-faults.ts'
import type { ZoneRecords } from '../zone/zonefile/records.ts'

/** Records of zone files that are kept; larger parents are not compared. */
const RECORDS_MAX = 2_000_000

/** A zone of a file. */
interface FileZoneRecords {
  readonly zone: Uint8Array
  readonly path: string
  readonly records: ZoneRecords
  readonly isSigned: boolean
}

type Warn = (warning: InputError) => void

/**
 * Compares the DS records in zone files with the keys of zones of the same Corefile, for `sextant check`. Zones come in
 * any order: each is compared with those before it.
 */
export class DelegationCheck {
  readonly #parents: FileZoneRecords[] = []
  readonly #keys = new Map<string, { zone: Uint8Array; dnskeys: readonly Uint8Array[] }>()
  #records = 0

  /** `isSignedLater`: `dnssec` signs it, with keys that `addKeys` gets. */
  addFile(
    zone: Uint8Array,
    path: string,
    records: ZoneRecords,
    isSignedLater: boolean,
    warn: Warn,
  ): void {
    const dnskeys = recordsOf(records, zone, RRType.DNSKEY)
    if (!isSignedLater) this.addKeys(zone, dnskeys, warn)
    this.#records += records.recordCount
    if (this.#records > RECORDS_MAX) return
    const parent = { zone, path, records, isSigned: isSignedLater || dnskeys.length > 0 }
    this.#parents.push(parent)
    for (const one of this.#keys.values()) this.#compare(parent, one.zone, one.dnskeys, warn)
  }

  /** Adds the keys of a zone; none = it is not signed. */
  addKeys(zone: Uint8Array, dnskeys: readonly Uint8Array[], warn: Warn): void {
    this.#keys.set(nameKey(zone), { zone, dnskeys })
    for (const parent of this.#parents) this.#compare(parent, zone, dnskeys, warn)
  }

  #compare(
    { zone: parent, path, records, isSigned }: FileZoneRecords,
    zone: Uint8Array,
    dnskeys: readonly Uint8Array[],
    warn: Warn,
  ): void {
    if (!isSubdomain(zone, parent) || equalNames(zone, parent)) return
    if (recordsOf(records, zone, RRType.NS).length === 0) return
    const ds = recordsOf(records, zone, RRType.DS)
    const isNeeded = isSigned && dnskeys.length > 0
    for (const fault of dsFaults(zone, ds, { dnskeys, isNeeded })) {
      warn(new InputError(undefined, `${path}: delegation of ${printName(zone)}: ${fault}`))
    }
  }
}

/** Shared by the checks of one Corefile. */
export const DELEGATION_CHECK = lazyKey('check of delegations', () => new DelegationCheck())

function recordsOf(records: ZoneRecords, owner: Uint8Array, type: number): readonly Uint8Array[] {
  const found: Uint8Array[] = []
  const node = records.find(owner, owner.length)
  if (node === -1) return found
  for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
    if (records.type[i] === type) found.push(records.rdata(i))
  }
  return found
}
