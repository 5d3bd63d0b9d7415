import type { AnswerMap, MapQuestion } from './admin-map.ts'
import type { WhatIfOrder, WhatIfReply } from './admin-what-if.ts'
import type { Transaction } from './transaction.ts'

/** First label of the names that ask for an explanation, with its length. */
const LABEL = Buffer.from('\x08_explain', 'latin1')

/**
 * Returns NAME of `_explain.NAME`; undefined = the name asks for no explanation. `qname`: lower-case
 * wire form, of `octets` octets.
 */
export function explainedName(qname: Uint8Array, octets: number): Uint8Array | undefined {
  for (let i = 0; i < LABEL.length; i++) if (qname[i] !== LABEL[i]) return undefined
  return qname.slice(LABEL.length, octets)
}

/** What to explain, as a person wrote it. */
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
  /** Compares the present answers with those after a change. Rejects with InputError if the order is invalid. */
  whatIf(order: WhatIfOrder): Promise<WhatIfReply>
  /** Resolves to where clients get which answers. Rejects with InputError if the question is invalid. */
  map(question: MapQuestion): Promise<AnswerMap>
  close(): void
}
