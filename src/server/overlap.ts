import type { Key } from '../corefile/key.ts'

/**
 * Finds keys that address and zone do not distinguish, as CoreDNS does: the same key twice, or the
 * same zone and port once bound to an address and once to all.
 */
export class OverlapCheck {
  readonly #served = new Set<string>()
  /** Keyed by the key without its address: the last key registered for it. */
  readonly #anywhere = new Map<string, string>()

  /**
   * Returns why `key` can't be served on `host` ('' = every address), or undefined if it can.
   * `filtered`: a view decides whether the block serves a query, so other blocks may have the same
   * key, before and after it.
   */
  check(key: Key, host: string, filtered: boolean): string | undefined {
    const unbound = printKey(key, '')
    const bound = printKey(key, host)
    if (this.#served.has(bound)) {
      return filtered ? undefined : `cannot serve ${bound} - it is already defined`
    }
    const other = this.#overlap(unbound, host)
    if (other !== undefined) {
      return `cannot serve ${bound} - zone overlap listener capacity with ${other}`
    }
    if (!filtered) {
      this.#served.add(bound)
      this.#anywhere.set(unbound, bound)
    }
    return undefined
  }

  #overlap(unbound: string, host: string): string | undefined {
    if (host === '') return this.#anywhere.get(unbound)
    return this.#served.has(unbound) ? unbound : undefined
  }
}

/** Returns `dns://example.org.:53`, with ` on 127.0.0.1` for a bound key. */
export function printKey(key: Key, host: string): string {
  const text = `${key.scheme}://${key.zoneText}:${key.port}`
  return host === '' ? text : `${text} on ${host}`
}
