import { isSameList } from './address-health.ts'

/** Maximum of peers' addresses that are probed for one record. */
const RECORD_ADDRESSES_MAX = 64
const NONE: readonly string[] = []

/** Requests probes of addresses that belong to peers. */
export interface PeerObserver {
  /**
   * Probes these addresses with the health check of one of our records, instead of those requested
   * before. `addresses`: sorted; the first 64 are probed. Empty = none.
   */
  watch(recordKey: string, addresses: readonly string[]): void
  /** Withdraws all requests. */
  close(): void
}

/** The addresses of peers to probe, by the record whose health check applies. Several blocks may request them. */
export class ObservedAddresses {
  readonly #users = new Set<Map<string, readonly string[]>>()

  /** `onChange`: called with the key of each record whose addresses changed. */
  open(onChange: (recordKey: string) => void): PeerObserver {
    const wanted = new Map<string, readonly string[]>()
    this.#users.add(wanted)
    const watch = (recordKey: string, addresses: readonly string[]): void => {
      const bounded = addresses.slice(0, RECORD_ADDRESSES_MAX)
      if (isSameList(bounded, wanted.get(recordKey) ?? NONE)) return
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
  of(recordKey: string): ReadonlySet<string> {
    return new Set([...this.#users].flatMap((wanted) => wanted.get(recordKey) ?? NONE))
  }
}
