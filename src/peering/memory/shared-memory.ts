import { RefCounted } from '../../base/ref-counted.ts'
import { PeerMemory, type PeerMemoryOptions } from './peer-memory.ts'

const memories = new RefCounted<PeerMemory>((memory) => memory.close())

/**
 * The memory in the file `options.path`, opened: one for all blocks that name it, and for both instances
 * of a reload. The returned function gives it back; the last one to do so closes it.
 */
export function acquireMemory(options: PeerMemoryOptions): {
  readonly memory: PeerMemory
  readonly release: () => void
} {
  const { path, site } = options
  const { item, release } = memories.acquire(`${path}\n${site}`, () => new PeerMemory(options))
  return { memory: item, release }
}
