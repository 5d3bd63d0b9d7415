import type { ApiObject } from '../../kube/api.ts'
import { isDelegating } from '../plan/decide.ts'
import { authoritativeKey } from './authoritative-record.ts'

/** The delegating records of each authoritative record. */
export class SourceIndex {
  readonly #sources = new Map<string, Set<string>>()

  /** Keys of the records that delegate to the authoritative record `key`. */
  of(key: string): Iterable<string> {
    return this.#sources.get(key) ?? []
  }

  add(key: string, record: ApiObject): void {
    if (!isDelegating(record)) return
    const target = authoritativeKey(record)
    const sources = this.#sources.get(target)
    if (sources === undefined) this.#sources.set(target, new Set([key]))
    else sources.add(key)
  }

  remove(key: string, record: ApiObject): void {
    if (!isDelegating(record)) return
    const target = authoritativeKey(record)
    const sources = this.#sources.get(target)
    sources?.delete(key)
    if (sources?.size === 0) this.#sources.delete(target)
  }
}
