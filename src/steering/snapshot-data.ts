import { FlatClassTrie } from '../geo/class-trie.ts'
import type { GeoCode } from '../geo/code.ts'
import {
  EMPTY_STEERING_SNAPSHOT,
  type SteeringSnapshot,
  type SteeringSnapshots,
} from './policies.ts'

/** A steering snapshot to send to another thread: plain data over shared memory, without the writer's own data. */
export interface SteeringSnapshotData {
  readonly words: Uint32Array
  readonly rootIPv4: number
  readonly rootIPv6: number
  readonly topIPv4: Uint32Array
  readonly topIPv6: Uint32Array
  readonly classCount: number
  readonly tierOf: Uint16Array
  readonly policyCount: number
}

export function steeringSnapshotData(snapshot: SteeringSnapshot): SteeringSnapshotData {
  const { tierOf, policyCount } = snapshot
  const { codesOf, near: _, ...data } = snapshot.trie.data
  return { ...data, classCount: codesOf.length, tierOf, policyCount }
}

/** The steering snapshot of a thread that receives it from another thread. */
export class FollowedSteering implements SteeringSnapshots {
  snapshot: SteeringSnapshot = EMPTY_STEERING_SNAPSHOT
  /** See `SteeringSnapshots`. */
  readonly catchUp: () => void

  constructor(catchUp: () => void) {
    this.catchUp = catchUp
  }

  follow(shared: SteeringSnapshotData): void {
    const { classCount, tierOf, policyCount, ...data } = shared
    const codesOf = new Array<readonly GeoCode[]>(classCount).fill([])
    const trie = new FlatClassTrie({ ...data, codesOf })
    this.snapshot = { trie, tierOf, policyCount }
  }
}
