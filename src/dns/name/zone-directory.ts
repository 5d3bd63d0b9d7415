import type { HashedName } from './hashed-name.ts'

/** The zones that a server or a directive serves, from all kinds of sources. */
export interface ZoneDirectory {
  /** Labels of the longest zone. */
  readonly deepest: number
  /** Returns the octets of the longest apex at or above the name from label `fromLabel` on; 0 = none. @hot */
  apexOctets(name: HashedName, fromLabel: number): number
}
