import type { DnsRecordView } from '../record/record-view.ts'
import { authoritativeKey } from './authoritative-record.ts'

/** The delegating records of each authoritative record. */
export class SourceIndex {
  readonly #sources = new Map<string, Set<string>>()

  /** Keys of the records that delegate to the authoritative record `key`. */
  of(key: string): Iterable<string> {
    return this.#sources.get(key) ?? []
  }

  add(record: DnsRecordView): void {
    if (record.role !== 'delegating') return
    const target = authoritativeKey(record)
    const sources = this.#sources.get(target)
    if (sources === undefined) this.#sources.set(target, new Set([record.key]))
    else sources.add(record.key)
  }

  remove(record: DnsRecordView): void {
    if (record.role !== 'delegating') return
    const target = authoritativeKey(record)
    const sources = this.#sources.get(target)
    sources?.delete(record.key)
    if (sources?.size === 0) this.#sources.delete(target)
  }
}
