import type { BlockConfig } from './directive.ts'
import type { Transaction } from './transaction.ts'

/**
 * Computes one label of a query on demand: '' = unknown. Not on the hot path unless a directive
 * reads the label.
 */
export type MetadataProvider = (tx: Transaction) => string

/**
 * Returns the provider of `label` (`geoip/country/code`) in a server block, or undefined if nothing
 * provides it or the block has no `metadata`. Call it while serving: providers register in every
 * setup, and `metadata` limits them to its zones after that.
 */
export function findMetadata(block: BlockConfig, label: string): MetadataProvider | undefined {
  return block.metadataEnabled ? block.metadata.get(label) : undefined
}

/**
 * True if a directive of the block reads one of these labels; complete once all setups ran. A label
 * that is known only at query time counts as any: see `BlockConfig.metadataRead`.
 */
export function readsAny(block: BlockConfig, labels: readonly string[]): boolean {
  const { metadataEnabled, metadataRead } = block
  return metadataEnabled && [ANY_LABEL, ...labels].some((label) => metadataRead.has(label))
}

/** In `metadataRead`: a label that depends on the query. */
export const ANY_LABEL = ''
