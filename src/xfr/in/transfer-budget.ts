import { memoryLimit } from '../../base/memory-limit.ts'

/**
 * The part of the memory that all incoming transfers may hold. The arrays of records double, so they may take
 * twice that.
 */
const MEMORY_SHARE = 1 / 5

/** A transfer that holds records. */
export interface Holding {
  /** Octets that it holds. */
  octets: number
  /** Drops its records, and fails. */
  readonly cut: () => void
}

/**
 * Limits the octets that all incoming transfers of the process hold together. If they exceed the limit, the
 * transfer that holds the most fails: so a primary whose zone has no end takes no room from the others.
 */
export class TransferBudget {
  readonly octetsMax: number
  readonly #holdings = new Set<Holding>()
  #octets = 0

  constructor(octetsMax: number) {
    this.octetsMax = octetsMax
  }

  /** Octets that all transfers hold. */
  get octets(): number {
    return this.#octets
  }

  open(cut: () => void): Holding {
    const holding = { octets: 0, cut }
    this.#holdings.add(holding)
    return holding
  }

  /** Adds octets to a transfer. Calls `cut` of the largest one if there are too many. */
  add(holding: Holding, octets: number): void {
    if (!this.#holdings.has(holding)) return
    holding.octets += octets
    this.#octets += octets
    while (this.#octets > this.octetsMax) {
      const largest = this.#largest()
      this.close(largest)
      largest.cut()
    }
  }

  /** Ends a transfer: it holds nothing any more. */
  close(holding: Holding): void {
    if (!this.#holdings.delete(holding)) return
    this.#octets -= holding.octets
  }

  #largest(): Holding {
    return [...this.#holdings].reduce((a, b) => (b.octets > a.octets ? b : a))
  }
}

/** The budget of this process. */
export const transferBudget = new TransferBudget(Math.floor(memoryLimit() * MEMORY_SHARE))
