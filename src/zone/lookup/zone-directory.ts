import type { HashedName } from '../image/hashed-name.ts'

/** The zones that a server or a directive serves, of all kinds of source. */
export interface ZoneDirectory {
  /** Octets of the longest apex that is the name or above it, from label `fromLabel` of the name on; 0 = none. @hot */
  apexOctets(name: HashedName, fromLabel: number): number
}
