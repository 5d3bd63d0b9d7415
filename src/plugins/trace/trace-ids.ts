import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { createId, printTraceId, type TraceId } from './entry.ts'
import type { Sampler } from './sampler.ts'

/** Samples queries before they are answered, so that links below can read the identifier of the trace. */
export class TraceIds {
  readonly #sampler: Sampler
  readonly #random: () => number
  /** By the transactions that are sampled. Each of them belongs to a pool, so they are few. */
  readonly #ids = new Map<Transaction, TraceId>()

  constructor(sampler: Sampler, random: () => number) {
    this.#sampler = sampler
    this.#random = random
  }

  /** Removes and returns the identifier of a query; undefined = it is not sampled. */
  take(tx: Transaction): TraceId | undefined {
    const id = this.#ids.get(tx)
    if (id !== undefined) this.#ids.delete(tx)
    return id
  }

  /** Returns the identifier of the trace of a query; '' = it is not sampled. */
  print(tx: Transaction): string {
    const id = this.#ids.get(tx)
    return id === undefined ? '' : printTraceId(id)
  }

  begin(tx: Transaction): void {
    // The transaction may have had another query, which another thread answered.
    this.#ids.delete(tx)
    // An internal lookup belongs to the query that caused it.
    if (tx.chainDepth === 0 && this.#sampler.isNext()) this.#ids.set(tx, createId(this.#random))
  }
}

/** The link that samples. */
export class TraceIdLink extends Link {
  readonly name = 'trace'
  readonly #ids: TraceIds

  constructor(next: Handler, ids: TraceIds) {
    super(next, Trait.Every, 0)
    this.#ids = ids
  }

  override before(tx: Transaction): number {
    this.#ids.begin(tx)
    return PASS
  }
}
