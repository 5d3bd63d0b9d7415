import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { CanonicalOrder } from '../image/canonical-order.ts'
import { Choice } from '../image/types.ts'

/** Maximum of targets whose addresses one response carries. Bounds the cost of a set with thousands of targets. */
export const TARGETS_MAX = 32

/**
 * The buffers of an answer while it is made. A thread makes one answer at a time, so its answerers
 * share them: with buffers of its own, each of 5 000 zones would take 38 KiB more in each thread.
 */
class Scratch {
  readonly choice = new Choice()
  /** Targets of a chain, for lookups and loop detection; entry i: the target after i+1 CNAMEs. */
  readonly targets: NameBuffer[] = []
  /** The name that a DNAME makes. */
  readonly substitute = new NameBuffer()
  readonly chaseTarget: Uint8Array = new Uint8Array(256)
  /** The name that gets additional records. */
  readonly additional = new NameBuffer()
  /** Unfinished hashes of the targets that were looked up for this response. */
  readonly seen = new Int32Array(TARGETS_MAX)
  readonly order = new CanonicalOrder()
  /** In place of a name, before there is one. */
  readonly noName = new NameBuffer()
}

export const scratch = new Scratch()
