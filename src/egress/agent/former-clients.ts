import type { DatedAnswer } from '../learned/learned-table.ts'
import type { Zombie } from '../learned/zombies.ts'

/** Addresses of all former clients. */
const ADDRESSES_MAX = 10_000

/** What a former client knows. */
interface Learned {
  readonly answers: readonly DatedAnswer[]
  readonly zombies: readonly Zombie[]
}

/**
 * What Pods learned that no policy selects any more. A policy that is deleted and made again, such as by a
 * deployment tool, finds it here: the Pod may not ask for its names again before their TTL ends.
 */
export class FormerClients {
  /** By id, the oldest first. */
  readonly #learned = new Map<string, Learned>()
  #addresses = 0

  note(id: string, learned: Learned): void {
    this.take(id)
    this.#learned.set(id, learned)
    this.#addresses += countOf(learned)
    for (const id of this.#learned.keys()) {
      if (this.#addresses <= ADDRESSES_MAX) break
      this.take(id)
    }
  }

  /** Returns what a client knew, and forgets it. */
  take(id: string): Learned | undefined {
    const learned = this.#learned.get(id)
    if (learned === undefined) return undefined
    this.#learned.delete(id)
    this.#addresses -= countOf(learned)
    return learned
  }

  /** Forgets those whose TTLs have all ended. */
  collect(nowMs: number): void {
    for (const [id, { answers, zombies }] of this.#learned) {
      const isValid =
        answers.some(({ endMs }) => endMs >= nowMs) || zombies.some(({ keptMs }) => keptMs >= nowMs)
      if (!isValid) this.take(id)
    }
  }
}

function countOf({ answers, zombies }: Learned): number {
  let count = zombies.length
  for (const { addresses } of answers) count += addresses.length
  return count
}
