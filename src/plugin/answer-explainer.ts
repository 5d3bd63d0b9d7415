import type { Transaction } from './transaction.ts'

/** What to explain, as written by an operator. */
export interface ExplainQuestion {
  readonly name: string
  /** The default is A. */
  readonly type?: string
  /** Source address of the query. The default is 127.0.0.1 if there is a `subnet`. */
  readonly client?: string
  /** EDNS Client Subnet of the query: a prefix, or an address. Missing = the query has no such option. */
  readonly subnet?: string
  /** Of the random numbers, 0 to 4294967295; the default is 1. */
  readonly seed?: number
}

/** Explains the answers of the server to its clients. */
export interface AnswerExplainer {
  /**
   * Returns why the client of `tx` gets its answer for a name and type, as lines without control
   * characters. `qname`: wire form.
   */
  lines(tx: Transaction, qname: Uint8Array, qtype: number): readonly string[]
  /** Returns an explanation as plain data. Throws InputError if the question is invalid. */
  explain(question: ExplainQuestion): object
  close(): void
}
