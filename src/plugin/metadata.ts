import type { Transaction } from './transaction.ts'

/** Computes one label of a query, lazily: '' = unknown. Off the hot path unless something reads it. */
export type MetadataProvider = (tx: Transaction) => string
