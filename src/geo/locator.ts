import { key } from '../base/shared-values.ts'
import type { AddressFamily } from '../dns/text/address.ts'
import type { ClassTrie } from './class-trie.ts'
import type { GeoCoverage } from './classes/coverage.ts'
import type { PointSet } from './classes/point-orders.ts'
import type { GeoCode } from './code.ts'
import type { Location } from './location.ts'
import type { Net } from './net.ts'

/** What one database file has about an address. */
export interface DatabaseEvidence {
  readonly file: string
  /** The database type, such as `GeoLite2-City`. */
  readonly type: string
  /** When the file was built, in Unix seconds; 0 = unknown. */
  readonly builtSeconds: number
  /** `1` for IPv4, also for IPv4-mapped addresses; else 2. */
  readonly family: AddressFamily
  /** Length of the longest prefix around the address that has one entry, or none. */
  readonly prefixBits: number
  /** True: the file is not asked, because the prefix is for special purposes (`SPECIAL_PREFIXES`). */
  readonly isIgnored: boolean
  readonly location: Location
}

/** Locates clients with one or more MMDB files, overridden by custom nets. Each `geoip` directive has one locator. */
export interface Locator {
  /**
   * Returns the location of one address. `address`: 16 octets, IPv4 in 0..3. Not for the hot path:
   * for logs, views and `explain`.
   */
  locate(address: Uint8Array, family: number): Location
  /**
   * Returns what `locate` read, file by file. Empty if the files are not in memory. Absent = the
   * locator reads no files.
   */
  evidence?(address: Uint8Array, family: number): readonly DatabaseEvidence[]
  /** Returns the `net` lines that contain the address, longest prefix first. Absent = there are none. */
  netsAround?(address: Uint8Array, family: number): readonly Net[]
  /**
   * Reads the files into memory, so that `locate` knows their entries. Resolves to the function that
   * ends this.
   */
  readEntries?(): Promise<() => void>
  /** Returns a raw database field for metadata, such as `geoip/city/name`; '' if unknown. */
  field(address: Uint8Array, family: number, label: string): string
  /**
   * Builds the class trie that distinguishes `codes`, and which point of each set is the nearest.
   * Takes up to a second, so it runs in a separate thread if the environment has threads. Rejects
   * only if the database is corrupt.
   */
  classify(codes: readonly GeoCode[], pointSets?: readonly PointSet[]): Promise<ClassTrie>
  /** Calls `callback` after a changed database or net is loaded; returns a function that removes the callback. */
  onChange(callback: () => void): () => void
}

/** Finds the location of clients of a server block. */
export const LOCATOR = key<Locator>('locator of clients')

/** Returns what the locator knows of all addresses. Takes seconds; for `sextant check`. */
export const GEO_COVERAGE = key<() => GeoCoverage>('coverage of the geo databases')
