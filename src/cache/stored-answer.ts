import { EntryField } from './entry.ts'

/** The times of an answer that a cache has stored. */
export interface StoredAnswer {
  /** Seconds since it was stored. */
  readonly ageSeconds: number
  /** For how many seconds it is valid. If the age is longer, the answer has expired. */
  readonly lifetimeSeconds: number
}

/** The directives that answer from a cache. */
const CACHES: ReadonlySet<string> = new Set(['cache', 'k8s_cache'])

/** Returns the times of an entry if a cache has answered with it. `nowMs`: see `CacheStores.sharedMs`. */
export function storedAnswer(
  answeredBy: string,
  entry: Uint8Array,
  nowMs: number,
): StoredAnswer | undefined {
  if (!CACHES.has(answeredBy)) return undefined
  const view = new DataView(entry.buffer, entry.byteOffset)
  const ageMs = nowMs - view.getFloat64(EntryField.StoredMs, true)
  return {
    ageSeconds: Math.max(0, Math.floor(ageMs / 1000)),
    lifetimeSeconds: view.getUint32(EntryField.LifetimeSeconds, true),
  }
}
