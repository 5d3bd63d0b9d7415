import type { ClassTrieData } from '../class-trie.ts'
import { buildClasses } from '../classes/build-classes.ts'
import { verifyEntries } from '../classes/verify.ts'
import type { GeoCode } from '../code.ts'
import { Database, type DatabaseImage } from '../mmdb/database.ts'
import type { Net } from '../net.ts'

/** Work on databases that takes too long for a thread that answers queries. Plain data. */
export type GeoJob =
  | {
      readonly kind: 'classify'
      readonly images: readonly DatabaseImage[]
      readonly nets: readonly Net[]
      readonly codes: readonly GeoCode[]
    }
  | { readonly kind: 'verify'; readonly image: DatabaseImage }

/** What a worker thread sends: first that it runs, then how its job ended. */
export type GeoJobMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: ClassTrieData | undefined }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }

/** Does a job, here and now. The trie, or undefined for `verify`. Throws InputError. */
export function performJob(job: GeoJob): ClassTrieData | undefined {
  if (job.kind === 'classify') {
    const databases = job.images.map((image) => new Database(image))
    return buildClasses({ databases, nets: job.nets, codes: job.codes })
  }
  verifyEntries(new Database(job.image))
  return undefined
}
