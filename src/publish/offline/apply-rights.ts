import { runWhole } from '../../base/slices.ts'
import type { HostShare } from '../../records/host-share.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { RecordRights, type RefusedNames } from '../../sources/record-rights.ts'
import type { ZoneOwnership } from '../../sources/zone-ownership.ts'
import type { PublishOptions } from '../options.ts'
import { isAllowed } from '../zone/zone-content.ts'

/** Which namespaces a block serves, and which ones share hosts. */
interface RightsRules extends Pick<PublishOptions, 'allowedNamespaces'> {
  readonly ownership: ZoneOwnership
  readonly shares: readonly HostShare[]
}

/** Returns all records of a source without the names of other namespaces, and what was refused. */
export function applyRights(
  all: Iterable<StoredRecord>,
  { ownership, shares, allowedNamespaces }: RightsRules,
): { readonly records: readonly StoredRecord[]; readonly refused: readonly RefusedNames[] } {
  const byKey = new Map(Array.from(all, (record) => [record.key, record]))
  const rights = new RecordRights({
    ownership,
    records: () => byKey.values(),
    find: (key) => byKey.get(key),
    isServed: (record) => isAllowed(record, { allowedNamespaces }),
    shares,
  })
  rights.load()
  const work = rights.build(() => {})
  if (work !== undefined) runWhole(work)
  const records = [...byKey.values()].map((record) => rights.servedOf(record))
  return { records: records.filter((one) => one !== undefined), refused: rights.refused }
}
