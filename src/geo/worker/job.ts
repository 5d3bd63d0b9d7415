import type { ClassTrieData } from '../class-trie.ts'
import { buildClasses } from '../classes/build-classes.ts'
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
    }
  | {
      readonly kind: 'verify'
      readonly source: DatabaseSource
      /** Every entry is read, not the search tree alone. */
      readonly isThorough: boolean
      /** The result has the content, for threads to share. */
      readonly isKept: boolean
    }

/** `trie`: of `classify`; `image`: of `verify` with `isKept`. */
export interface GeoResult {
  readonly trie?: ClassTrieData
  readonly image?: DatabaseImage
}

/** What a worker thread sends: first that it runs, then how its job ended. */
export type GeoJobMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: GeoResult }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }

/** Does a job, here and now. Throws InputError. */
export function performJob(job: GeoJob): GeoResult {
  if (job.kind === 'classify') {
    const databases = job.sources.map((source) => new Database(readSource(source, false)))
    return { trie: buildClasses({ databases, nets: job.nets, codes: job.codes }) }
  }
  const image = readSource(job.source, job.isKept)
  const verify = job.isThorough ? verifyEntries : verifyTree
  verify(new Database(image))
  return job.isKept ? { image } : {}
}
