import type { Transaction } from './transaction.ts'

/** Explains the answers of the server to its clients, as text. */
export interface TextExplainer {
  /**
   * Returns why the client of `tx` gets its answer for a name and type, as lines without control
   * characters. `qname`: wire form.
   */
  lines(tx: Transaction, qname: Uint8Array, qtype: number): readonly string[]
  close(): void
}
