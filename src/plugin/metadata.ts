import type { Transaction } from './transaction.ts'

/**
 * Computes one label of a query on demand: '' = unknown. Not on the hot path unless a directive
 * reads the label.
 */
export type MetadataProvider = (tx: Transaction) => string

/** In `Metadata.read`: a label that depends on the query. */
export const ANY_LABEL = ''

/** The metadata of the queries of one server block. */
export class Metadata {
  /** Set by `metadata`: labels are collected for this block. */
  isEnabled = false
  /** By label, e.g. `geoip/country/code`. Directives register in their setups. */
  readonly providers: Map<string, MetadataProvider> = new Map()
  /** Labels that directives of the block read: each one adds its labels in its setup. */
  readonly read: Set<string> = new Set()
  /** Set by `geoip` with `edns-subnet`: `geoip/…` describes the client subnet, if there is one. */
  locatesSubnet = false

  /**
   * Returns the provider of `label`, or undefined if no directive provides it or the block has no
   * `metadata`. Call it while serving: `metadata` limits the providers to its zones after all setups.
   */
  find(label: string): MetadataProvider | undefined {
    return this.isEnabled ? this.providers.get(label) : undefined
  }

  /**
   * True if a directive of the block reads one of these labels, or one that is known only at query time. Complete
   * once all setups ran. Providers may load only the data that these labels need.
   */
  readsAny(labels: readonly string[]): boolean {
    return this.isEnabled && [ANY_LABEL, ...labels].some((label) => this.read.has(label))
  }
}
