import type { RecordChange, StoredRecord } from '../../records/record-source.ts'
import { ApexCnames } from '../alias/apex-cnames.ts'
import type { AliasWorld } from '../alias/expand-alias.ts'
import { type AliasFault, expandRecord, faultsOf } from '../alias/expand-record.ts'
import { InsideNames } from '../alias/inside-names.ts'
import { NOT_RESOLVED } from '../alias/outside-addresses.ts'
import type { AliasOptions } from '../options.ts'

/** The records with ALIAS endpoints of a command that serves nothing. Names outside of the zones are not resolved. */
export class OfflineAliases {
  readonly #expanded = new Map<string, StoredRecord>()
  /** What is wrong with ALIAS endpoints. */
  readonly faults: (AliasFault & { readonly key: string })[] = []

  /** `before`: earlier records of the same zones. What is the same is the same object. */
  constructor(
    records: Iterable<StoredRecord>,
    zones: readonly Uint8Array[],
    { servers }: AliasOptions,
    before?: OfflineAliases,
  ) {
    const all = [...records]
    const inside = new InsideNames(zones, () => all)
    const apexes = new ApexCnames(zones)
    const world: AliasWorld = {
      inside: (name, note) => inside.find(name, note),
      outside: () => (servers.length === 0 ? undefined : NOT_RESOLVED),
      refusal: () => '',
    }
    for (const original of all) {
      if (!apexes.isIn(original.packed)) continue
      const { key } = original
      const expanded = expandRecord(original, world, apexes)
      const earlier = before === undefined ? undefined : before.#expanded.get(key)
      const isSame = earlier?.packed === expanded.record.packed
      this.#expanded.set(key, isSame ? earlier : expanded.record)
      for (const fault of faultsOf(expanded)) this.faults.push({ ...fault, key })
    }
  }

  /** Returns a record with the endpoints that its ALIAS endpoints stand for. */
  of(record: StoredRecord): StoredRecord {
    return this.#expanded.get(record.key) ?? record
  }

  /** Returns the changes from `before` to these records. `changes`: without the ALIAS endpoints. */
  changesSince(before: OfflineAliases, changes: readonly RecordChange[]): RecordChange[] {
    const mapped = changes.map((change): RecordChange => {
      return {
        before: change.before && before.of(change.before),
        after: change.after && this.of(change.after),
      }
    })
    const changed = new Set(changes.map((change) => (change.after ?? change.before)!.key))
    for (const [key, after] of this.#expanded) {
      const earlier = before.#expanded.get(key)
      const isLed = !changed.has(key) && earlier !== undefined && earlier !== after
      if (isLed) mapped.push({ before: earlier, after })
    }
    return mapped
  }
}
