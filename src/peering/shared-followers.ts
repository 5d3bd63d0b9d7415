import { RefCounted } from '../base/ref-counted.ts'
import { PeerFollower } from './peer.ts'
import type { PeerFollowerOptions } from './peer-options.ts'

const followers = new RefCounted<PeerFollower>((follower) => follower.close())

/**
 * Who follows the peer that goes by `key`, started: blocks of one process share it, and what it knows outlives
 * a reload. `prepare` gets one that is new before it asks. The returned function gives it back; the last one to do so ends it.
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
