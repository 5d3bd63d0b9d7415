import type { ClassTrie } from './class-trie.ts'
import type { GeoCode } from './code.ts'
import type { Location } from './location.ts'

/** Locates clients with one or more MMDB files, overridden by custom nets. Each `geoip` directive has one locator. */
export interface Locator {
  /**
   * Returns the location of one address. `address`: 16 octets, IPv4 in 0..3. Not for the hot path:
   * for logs, views and `explain`.
   */
  locate(address: Uint8Array, family: number): Location
  /** Returns a raw database field for metadata, such as `geoip/city/name`; '' if unknown. */
  field(address: Uint8Array, family: number, label: string): string
  /**
   * Builds the class trie that distinguishes `codes`. Takes up to a second, so it runs in a
   * separate thread if the environment has threads. Rejects only if the database is corrupt.
   */
  classify(codes: readonly GeoCode[]): Promise<ClassTrie>
  /** Calls `callback` after a changed database or net is loaded; returns a function that removes the callback. */
  onChange(callback: () => void): () => void
}
