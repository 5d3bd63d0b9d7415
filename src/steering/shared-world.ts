import { FlatClassTrie } from '../geo/class-trie.ts'
import { EMPTY_WORLD, type World, type Worlds } from './policies.ts'

/** A world on its way to another thread: plain data over shared memory, without what only a writer needs. */
export interface SharedWorld {
  readonly words: Uint32Array
  readonly rootIPv4: number
  readonly rootIPv6: number
  readonly topIPv4: Uint32Array
  readonly topIPv6: Uint32Array
  readonly classCount: number
  readonly tierOf: Uint16Array
  readonly policyCount: number
}

export function shareWorld(world: World): SharedWorld {
  const { tierOf, policyCount } = world
  const { codesOf, ...data } = world.trie.data
  return { ...data, classCount: codesOf.length, tierOf, policyCount }
}

/** The world of a thread that does not make it. */
export class FollowedWorlds implements Worlds {
  world: World = EMPTY_WORLD
  /** See `Worlds`. */
  readonly catchUp: () => void

  constructor(catchUp: () => void) {
    this.catchUp = catchUp
  }

  follow(shared: SharedWorld): void {
    const { classCount, tierOf, policyCount, ...data } = shared
    const codesOf = Array.from({ length: classCount }, () => [])
    const trie = new FlatClassTrie({ ...data, codesOf })
    this.world = { trie, tierOf, policyCount }
  }
}
