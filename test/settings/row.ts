import type { Case } from './columns.ts'
import type { ColumnWords } from './conflict-words.ts'
import type { Exceptions } from './sketches.ts'

/** A setting or state, and what clients get by it. */
export interface Row extends Case {
  readonly group: 'endpoint' | 'annotation' | 'health' | 'drain' | 'conflict'
  readonly name: string
  /** What each site serves, as `Nameserver` prints it. */
  readonly want: string
  /** The same where both records are of one site; missing = `want`. */
  readonly alone?: string
  /** What each column must say; missing = nothing. */
  readonly says?: RegExp
  /** The same for columns whose sources do not all say that. */
  readonly words?: ColumnWords
  readonly but?: Exceptions
}
