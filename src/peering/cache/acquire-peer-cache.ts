import { RefCounted } from '../../base/ref-counted.ts'
import { PeerCache, type PeerCacheOptions } from './peer-cache.ts'

const memories = new RefCounted<PeerCache>((cache) => cache.close())

/**
 * The memory in the file `options.path`, opened: one for all blocks that name it, and for both instances
 * of a reload. The returned function gives it back; the last one to do so closes it.
 */
export function acquirePeerCache(options: PeerCacheOptions): {
  readonly cache: PeerCache
  readonly release: () => void
} {
  const { path, site } = options
  const { item, release } = memories.acquire(`${path}\n${site}`, () => new PeerCache(options))
  return { cache: item, release }
}
