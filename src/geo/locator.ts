import type { ClassTrie } from './class-trie.ts'
import type { GeoCode } from './code.ts'
import type { Location } from './location.ts'

/** Where clients are: one or more MMDB files under custom nets. One per `geoip` directive. */
export interface Locator {
  /**
   * What is known of one address. `address`: 16 octets, IPv4 in 0..3. Off the hot path: for logs,
   * views and `explain`.
   */
  locate(address: Uint8Array, family: number): Location
  /** A raw database field for metadata, e.g. `geoip/city/name`; '' if unknown. */
  field(address: Uint8Array, family: number, label: string): string
  /**
   * Reduces the world to what `codes` can tell apart: in a thread of its own, where the environment has
   * threads, since it takes up to a second. Rejects only if the database is corrupt.
   */
  classify(codes: readonly GeoCode[]): Promise<ClassTrie>
  /** Calls back after a changed database or net was loaded; returns the function that stops it. */
  onChange(callback: () => void): () => void
}
