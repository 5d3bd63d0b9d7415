export const NONE: readonly string[] = []

/**
 * Addresses that probes found down, or up, by record key. Counts the probes that report each
 * address.
 */
export class FoundAddresses {
  readonly #counts = new Map<string, Map<string, number>>()

  /** `step`: 1 = one more probe reports the address, -1 = one fewer. */
  count(key: string, address: string, step: 1 | -1): void {
    const addresses = this.#counts.get(key) ?? new Map<string, number>()
    const count = (addresses.get(address) ?? 0) + step
    if (count > 0) addresses.set(address, count)
    else addresses.delete(address)
    if (addresses.size > 0) this.#counts.set(key, addresses)
    else this.#counts.delete(key)
  }

  /** Addresses of a record, sorted. */
  of(key: string): readonly string[] {
    // The usual case: no probes at all.
    if (this.#counts.size === 0) return NONE
    const addresses = this.#counts.get(key)
    return addresses === undefined ? NONE : [...addresses.keys()].sort()
  }
}

export function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i])
}
