import type { Leaf } from './record-probes.ts'

/** Maximum of peers' addresses that are probed for one record. */
export const RECORD_ADDRESSES_MAX = 1000
/**
 * Maximum of peers' addresses that are probed, over all records: what the schedule of probes carries with the default
 * interval if all of them are dead. Each takes about 0.9 kB of heap.
 */
export const OBSERVED_ADDRESSES_MAX = 38_000
const NONE: readonly Leaf[] = []

/** Requests probes of addresses that belong to peers. */
export interface PeerObserver {
  /**
   * Probes these addresses with the health check of one of our records, instead of those requested
   * before. The first 1000 are probed. Empty = none.
   */
  watch(recordKey: string, leaves: readonly Leaf[]): void
  /** Withdraws all requests. */
  close(): void
}

/** The addresses of peers to probe, by the record whose health check applies. Several blocks may request them. */
export class ObservedAddresses {
  readonly #users = new Set<Map<string, readonly Leaf[]>>()

  /** `onChange`: called with the key of each record whose addresses changed. */
  open(onChange: (recordKey: string) => void): PeerObserver {
    const wanted = new Map<string, readonly Leaf[]>()
    this.#users.add(wanted)
    const watch = (recordKey: string, leaves: readonly Leaf[]): void => {
      const bounded = leaves.slice(0, RECORD_ADDRESSES_MAX)
      if (isSameLeaves(bounded, wanted.get(recordKey) ?? NONE)) return
      if (bounded.length === 0) wanted.delete(recordKey)
      else wanted.set(recordKey, bounded)
      onChange(recordKey)
    }
    const close = (): void => {
      this.#users.delete(wanted)
      for (const recordKey of wanted.keys()) onChange(recordKey)
      wanted.clear()
    }
    return { watch, close }
  }

  /** Returns the addresses for one record, each once. */
  of(recordKey: string): Iterable<Leaf> {
    const leaves = new Map<string, Leaf>()
    for (const wanted of this.#users) {
      for (const leaf of wanted.get(recordKey) ?? NONE) {
        if (!leaves.has(leaf.address)) leaves.set(leaf.address, leaf)
      }
    }
    return leaves.values()
  }
}

function isSameLeaves(a: readonly Leaf[], b: readonly Leaf[]): boolean {
  return a.length === b.length && a.every((leaf, i) => isSameLeaf(leaf, b[i]!))
}

function isSameLeaf(a: Leaf, b: Leaf): boolean {
  const isSamePlace =
    a.probeAt?.address === b.probeAt?.address && a.probeAt?.port === b.probeAt?.port
  return a.address === b.address && isSamePlace
}
