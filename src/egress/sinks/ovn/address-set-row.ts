import type { AddressFamily } from '../../../dns/text/address.ts'
import { printMap, printSet } from '../../../ovsdb/datum.ts'
import type { MonitoredTable } from '../../../ovsdb/table-cache.ts'

const ADDRESS_SET = 'Address_Set'
const OWNER_TYPE = 'EgressFirewallDNS'
const CONTROLLER_KEY = 'k8s.ovn.org/owner-controller'
const TYPE_KEY = 'k8s.ovn.org/owner-type'
const DNS_NAME_KEY = 'k8s.ovn.org/name'
const FAMILY_KEY = 'ip-family'
const PRIMARY_KEY = 'k8s.ovn.org/id'

const FNV_OFFSET = 0xcbf29ce484222325n
const FNV_PRIME = 0x100000001b3n

/** A row of the table Address_Set: the addresses of one family that a DNS name has. */
export interface AddressSetRow {
  /** `a` and a hash: ACLs refer to `$a…`. */
  readonly name: string
  readonly externalIds: Readonly<Record<string, string>>
  /** Sorted. */
  readonly addresses: readonly string[]
}

/**
 * Returns the row for a DNS name as OVN-Kubernetes has it: the external_ids of its owner type
 * `EgressFirewallDNS`, and as name the FNV-1a hash of its primary id. `dnsName`: lower case, with the
 * final dot. `owner`: the controller that owns the row. `addresses`: of any family, sorted.
 */
export function addressSetRow(
  owner: string,
  dnsName: string,
  family: AddressFamily,
  addresses: readonly string[],
): AddressSetRow {
  const familyId = family === 1 ? 'v4' : 'v6'
  const primaryId = `${owner}:${OWNER_TYPE}:${dnsName}:${familyId}`
  return {
    name: hashedName(primaryId),
    externalIds: {
      [CONTROLLER_KEY]: owner,
      [TYPE_KEY]: OWNER_TYPE,
      [DNS_NAME_KEY]: dnsName,
      [FAMILY_KEY]: familyId,
      [PRIMARY_KEY]: primaryId,
    },
    addresses: addresses.filter((address) => address.includes(':') === (family === 2)),
  }
}

/** The rows that an owner has for DNS names: what the client follows. */
export function monitoredRows(owner: string): MonitoredTable {
  return {
    table: ADDRESS_SET,
    columns: { name: 'atom', addresses: 'set' },
    where: [isOwnedBy(owner)],
  }
}

export function insertRow({ name, externalIds, addresses }: AddressSetRow): object {
  const row = { name, external_ids: printMap(externalIds), addresses: printSet(addresses) }
  return { op: 'insert', table: ADDRESS_SET, row }
}

/** Replaces the addresses of a row, if it is there and belongs to the owner. */
export function updateRow(owner: string, { name, addresses }: AddressSetRow): object {
  const row = { addresses: printSet(addresses) }
  return { op: 'update', table: ADDRESS_SET, where: [isNamed(name), isOwnedBy(owner)], row }
}

/** Deletes a row, if it is there and belongs to the owner. */
export function deleteRow(owner: string, name: string): object {
  return { op: 'delete', table: ADDRESS_SET, where: [isNamed(name), isOwnedBy(owner)] }
}

/** Tables whose `match` can refer to address sets. */
const MATCHING_TABLES = ['ACL', 'Logical_Router_Policy', 'QoS']

/** Operations that read all texts which can refer to address sets. */
export const SELECT_MATCHES: readonly object[] = MATCHING_TABLES.map((table) => {
  return { op: 'select', table, where: [], columns: ['match'] }
})

/** Adds the names of the address sets that a match refers to, such as `ip4.dst == {$a1, $a2}`. */
export function addReferences(match: unknown, names: Set<string>): void {
  if (typeof match !== 'string') return
  for (const [, name = ''] of match.matchAll(/\$([A-Za-z_.][\w.]*)/g)) names.add(name)
}

function isNamed(name: string): readonly unknown[] {
  return ['name', '==', name]
}

function isOwnedBy(owner: string): readonly unknown[] {
  const ids = printMap({ [CONTROLLER_KEY]: owner, [TYPE_KEY]: OWNER_TYPE })
  return ['external_ids', 'includes', ids]
}

/** `a` and the decimal 64-bit FNV-1a hash. */
function hashedName(text: string): string {
  let hash = FNV_OFFSET
  for (const octet of Buffer.from(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(octet)) * FNV_PRIME)
  }
  return `a${hash}`
}
