import type { Random } from '../base/random.ts'
import { type ServerView, Transaction } from '../plugin/transaction.ts'

/** Idle transactions kept for reuse; what a burst needed beyond them is left to the collector. */
const IDLE_MAX = 256

/** Hands out transactions and takes them back. */
export class TransactionPool {
  readonly #idle: Transaction[] = []
  readonly #random: Random
  readonly #server: ServerView

  constructor(random: Random, server: ServerView) {
    this.#random = random
    this.#server = server
  }

  take(): Transaction {
    return this.#idle.pop() ?? new Transaction(this.#random, this.#server)
  }

  give(tx: Transaction): void {
    if (this.#idle.length < IDLE_MAX) this.#idle.push(tx)
  }
}
