import { RefCounted } from '../../base/ref-counted.ts'
import { PeerCache, type PeerCacheOptions } from './peer-cache.ts'

const memories = new RefCounted<PeerCache>((cache) => cache.close())

/**
 * Opens the peer cache in the file `options.path`. All blocks that name the file, and both
 * instances during a reload, share one cache. The returned function releases it; the last release
 * closes it.
 */
export function acquirePeerCache(options: PeerCacheOptions): {
  readonly cache: PeerCache
  readonly release: () => void
} {
  const { path, site } = options
  const { item, release } = memories.acquire(`${path}\n${site}`, () => new PeerCache(options))
  return { cache: item, release }
}
