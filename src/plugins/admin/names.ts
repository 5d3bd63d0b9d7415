import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import { printType } from '../../dns/iana/types.ts'
import { printKey } from '../../dns/name/name.ts'
import type { AdminName, NameList, NamesRequest } from '../../plugin/admin-names.ts'
import type { RecordZoneIndex } from '../../publish/record-zone-index.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import { Turns } from './turns.ts'

/** Lists names that DNSRecords serve. One request at a time, in slices: a zone may have a million names. */
export class ServedNameLists {
  readonly #index: () => RecordZoneIndex | undefined
  readonly #clock: Clock
  readonly #turns = new Turns()

  /** `index`: undefined before the start. */
  constructor(index: () => RecordZoneIndex | undefined, clock: Clock) {
    this.#index = index
    this.#clock = clock
  }

  /** Resolves to undefined if too many requests wait. */
  list(request: NamesRequest): Promise<NameList | undefined> {
    return this.#turns.run(() => runInSlices(this.#find(request), this.#clock))
  }

  *#find({ prefix, limit }: NamesRequest): Generator<void, NameList> {
    const wanted = prefixKeys(prefix)
    const names: AdminName[] = []
    const seen = new Set<string>()
    let isComplete = true
    for (const { apex, text, records } of this.#index()?.zones ?? []) {
      if (isLocalZone(apex)) continue
      for (const key of records.holders.keys()) {
        yield
        if (!matches(key, wanted) || seen.has(key)) continue
        const sets = [...records.setsOf([key])].flatMap(([, found]) => found)
        const types = sets
          .filter(({ endpoints }) => endpoints.length > 0)
          .map(({ type }) => printType(type))
        if (types.length === 0) continue
        if (names.length === limit) {
          isComplete = false
          break
        }
        seen.add(key)
        names.push({ name: printKey(key), zone: text, types: types.toSorted() })
      }
    }
    names.sort((a, b) => (a.name < b.name ? -1 : 1))
    return { names, isComplete }
  }
}

/** A start of names: whole labels in wire form, and the start of the next one. */
interface Prefix {
  readonly labels: string
  readonly rest: string
}

function prefixKeys(prefix: string): Prefix {
  const all = prefix.toLowerCase().split('.')
  const rest = all.pop()!
  return { labels: all.map((label) => String.fromCharCode(label.length) + label).join(''), rest }
}

function matches(key: string, { labels, rest }: Prefix): boolean {
  return key.startsWith(labels) && key.startsWith(rest, labels.length + 1)
}
