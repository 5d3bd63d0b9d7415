import { RefCounted } from '../base/ref-counted.ts'
import { PeerFollower } from './peer.ts'
import type { PeerFollowerOptions } from './peer-options.ts'

const followers = new RefCounted<PeerFollower>((follower) => follower.close())

/**
 * Returns the started follower of the peer `key`. All blocks of the process share it, and its data
 * outlives a reload. `prepare` is called with a new follower before its first query. The returned
 * function releases it; the last release closes it.
 */
export function acquireFollower(
  key: string,
  options: PeerFollowerOptions,
  prepare: (follower: PeerFollower) => void,
): { readonly follower: PeerFollower; readonly release: () => void } {
  const { item, release } = followers.acquire(key, () => {
    const follower = new PeerFollower(options)
    prepare(follower)
    follower.start()
    return follower
  })
  return { follower: item, release }
}
