import type { Learned } from '../learned/learned-table.ts'

/** Addresses of all former clients. */
const ADDRESSES_MAX = 10_000

/**
 * What Pods learned that no policy selects any more. A policy that is deleted and made again, such as by a
 * deployment tool, finds it here: the Pod may not ask for its names again before their TTL ends.
 */
export class FormerClients {
  /** By id, the oldest first. */
  readonly #learned = new Map<string, readonly Learned[]>()
  #addresses = 0

  note(id: string, learned: readonly Learned[]): void {
    this.take(id)
    this.#learned.set(id, learned)
    this.#addresses += countOf(learned)
    for (const id of this.#learned.keys()) {
      if (this.#addresses <= ADDRESSES_MAX) break
      this.take(id)
    }
  }

  /** Returns what a client knew, and forgets it. */
  take(id: string): readonly Learned[] | undefined {
    const learned = this.#learned.get(id)
    if (learned === undefined) return undefined
    this.#learned.delete(id)
    this.#addresses -= countOf(learned)
    return learned
  }

  /** Forgets those whose TTLs have all ended. */
  collect(nowMs: number): void {
    for (const [id, learned] of this.#learned) {
      const isValid = learned.some((one) => ('address' in one ? one.keptMs : one.endMs) >= nowMs)
      if (!isValid) this.take(id)
    }
  }
}

function countOf(learned: readonly Learned[]): number {
  return learned.reduce((sum, one) => sum + ('address' in one ? 1 : one.addresses.length), 0)
}
