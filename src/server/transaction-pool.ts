import type { Random } from '../base/random.ts'
import { type ServerView, Transaction } from '../plugin/transaction.ts'

/** Idle transactions kept for reuse. After a burst, the garbage collector frees the others. */
const IDLE_MAX = 256

/** Lends transactions, and keeps released ones for reuse. */
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
