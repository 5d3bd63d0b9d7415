import type { BlockConfig } from './directive.ts'
import type { Transaction } from './transaction.ts'

/** Computes one label of a query, lazily: '' = unknown. Off the hot path unless something reads it. */
export type MetadataProvider = (tx: Transaction) => string

/**
 * The provider of `label` (`geoip/country/code`) in a server block, or undefined where nothing
 * provides it or the block has no `metadata`. Call it while serving: providers register in
 * every setup, and `metadata` limits them to its zones after that.
 */
export function findMetadata(block: BlockConfig, label: string): MetadataProvider | undefined {
  return block.metadataEnabled ? block.metadata.get(label) : undefined
}
