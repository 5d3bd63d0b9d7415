import { PeerFollower, type PeerFollowerOptions } from './peer.ts'

interface Use {
  readonly follower: PeerFollower
  users: number
}

const uses = new Map<string, Use>()

/**
 * Who follows the peer that goes by `key`, started: blocks of one process share it, and what it knows outlives
 * a reload. The returned function gives it back; the last one to do so ends it.
 */
export function acquireFollower(
  key: string,
  options: PeerFollowerOptions,
): { readonly follower: PeerFollower; readonly release: () => void } {
  let use = uses.get(key)
  if (use === undefined) {
    use = { follower: new PeerFollower(options), users: 0 }
    use.follower.start()
    uses.set(key, use)
  }
  const own = use
  own.users++
  let isReleased = false
  const release = (): void => {
    if (isReleased) return
    isReleased = true
    if (--own.users > 0) return
    uses.delete(key)
    own.follower.close()
  }
  return { follower: own.follower, release }
}
