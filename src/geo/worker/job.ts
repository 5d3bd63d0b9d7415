import type { ClassTrieData } from '../class-trie.ts'
import { buildClasses } from '../classes/build-classes.ts'
import { type ClassCell, measureCells } from '../classes/class-cells.ts'
import type { PointSet } from '../classes/point-orders.ts'
import { verifyEntries, verifyTree } from '../classes/verify.ts'
import type { GeoCode } from '../code.ts'
import { Database, type DatabaseImage } from '../mmdb/database.ts'
import { type DatabaseSource, readSource } from '../mmdb/load.ts'
import type { Net } from '../net.ts'

/** Work on databases that takes too long for a thread that answers queries. Plain data. */
export type GeoJob =
  | {
      readonly kind: 'classify'
      readonly sources: readonly DatabaseSource[]
      readonly nets: readonly Net[]
      readonly codes: readonly GeoCode[]
      readonly pointSets: readonly PointSet[]
    }
  | {
      readonly kind: 'verify'
      readonly source: DatabaseSource
      /** True to read every entry, not only the search tree. */
      readonly isThorough: boolean
      /** True if the result must contain the content in shared memory. */
      readonly isKept: boolean
    }
  | {
      readonly kind: 'measure'
      /** As in `measureCells`. */
      readonly tries: readonly ClassTrieData[]
    }

/**
 * `trie`: result of `classify`; `builtSeconds`: of `verify`; `image`: of `verify` with `isKept`; `cells`: of
 * `measure`.
 */
export interface GeoResult {
  readonly cells?: readonly ClassCell[]
  readonly trie?: ClassTrieData
  /** See `Database`. */
  readonly builtSeconds?: number
  readonly image?: DatabaseImage
}

/** Messages of a worker thread: first that it runs, then the result of its job. */
export type GeoJobMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: GeoResult }
  | { readonly kind: 'failed'; readonly message: string }

/** Runs a job synchronously. Throws InputError. */
export function performJob(job: GeoJob): GeoResult {
  if (job.kind === 'classify') {
    const databases = job.sources.map((source) => new Database(readSource(source, false)))
    const { nets, codes, pointSets } = job
    return { trie: buildClasses({ databases, nets, codes, pointSets }) }
  }
  if (job.kind === 'measure') return { cells: measureCells(job.tries) }
  const image = readSource(job.source, job.isKept)
  const verify = job.isThorough ? verifyEntries : verifyTree
  const database = new Database(image)
  verify(database)
  const { builtSeconds } = database
  return job.isKept ? { builtSeconds, image } : { builtSeconds }
}
