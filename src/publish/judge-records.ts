import type { HostShare } from '../dnsrecord/host-share.ts'
import type { StoredRecord } from '../dnsrecord/record-source.ts'
import { HostJudge, type RefusedNames } from '../sources/host-judge.ts'
import type { ZoneOwnership } from '../sources/zone-ownership.ts'
import type { PublishOptions } from './options.ts'
import { isAllowed } from './zone-content.ts'

/** Which namespaces a block serves, and which ones share hosts. */
interface JudgeRules extends Pick<PublishOptions, 'allowedNamespaces'> {
  readonly ownership: ZoneOwnership
  readonly shares: readonly HostShare[]
}

/** Returns all records of a source without the names of other namespaces, and what was refused. */
export function judgeRecords(
  all: Iterable<StoredRecord>,
  { ownership, shares, allowedNamespaces }: JudgeRules,
): { readonly records: readonly StoredRecord[]; readonly refused: readonly RefusedNames[] } {
  const byKey = new Map(Array.from(all, (record) => [record.key, record]))
  const judge = new HostJudge({
    ownership,
    records: () => byKey.values(),
    find: (key) => byKey.get(key),
    isServed: (record) => isAllowed(record, { allowedNamespaces }),
    shares,
  })
  judge.load()
  const records = [...byKey.values()].map((record) => judge.servedOf(record))
  return { records: records.filter((one) => one !== undefined), refused: judge.refused }
}
