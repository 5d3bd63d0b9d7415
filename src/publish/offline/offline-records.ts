import { InputError } from '../../base/errors.ts'
import type { ManifestReading } from '../../sources/manifests/read-once.ts'
import { abilitiesOf, nameOf } from '../../sources/source-place.ts'
import type { PublishOptions } from '../options.ts'

/** Where a command that serves nothing reads records from, instead of the place that the Corefile names. */
export type RecordsPlace =
  | { readonly kind: 'directory'; readonly directory: string }
  /** `name`: for messages. */
  | { readonly kind: 'dump'; readonly name: string; readonly octets: Buffer }

const DUMP_ADVICE =
  'write them to a file with `kubectl get dnsrecord -A -o yaml > FILE`, and give it with --records (what-if: the present ones with --old-records)'

/**
 * The records of the blocks of one Corefile, each source read once. Reads files only, and keeps no
 * watch.
 */
export class OfflineRecords {
  readonly #instead: RecordsPlace | undefined
  readonly #similar: OfflineRecords | undefined
  /** By `nameOf` of the source. */
  readonly readings = new Map<string, Promise<ManifestReading>>()

  /** `similar`: records that are mostly the same. What is the same is not parsed again. */
  constructor(instead: RecordsPlace | undefined, similar?: OfflineRecords) {
    this.#instead = instead
    this.#similar = similar
  }

  /**
   * Returns the records of a block. `all`: the options of all blocks. Rejects with an InputError for
   * the records of a cluster, for several sources that one place would replace, and if a file or
   * directory can't be read. Faults inside the files are in the store.
   */
  read(options: PublishOptions, all: readonly PublishOptions[]): Promise<ManifestReading> {
    const name = nameOf(options.source)
    let reading = this.readings.get(name)
    if (reading === undefined) {
      reading = this.#read(options, all)
      this.readings.set(name, reading)
    }
    return reading
  }

  async #read(
    { source, position }: PublishOptions,
    all: readonly PublishOptions[],
  ): Promise<ManifestReading> {
    const instead = this.#instead
    const sources = [...new Set(all.map((other) => nameOf(other.source)))]
    if (instead !== undefined && sources.length > 1) {
      const message = `the Corefile reads records from ${sources.length} places: ${sources.join(', ')}; only the records of one place can be replaced`
      throw new InputError(position, message)
    }
    const { readDirectoryOnce, readDump } = await import('../../sources/manifests/read-once.ts')
    const similar = await this.#similar?.readings.get(nameOf(source))
    if (instead?.kind === 'dump') return readDump(instead.name, instead.octets, similar)
    if (instead?.kind === 'directory') return readDirectoryOnce(instead.directory, similar)
    const { directory } = abilitiesOf(source)
    if (directory !== undefined) return readDirectoryOnce(directory, similar)
    throw new InputError(position, `the records of a cluster are not read offline; ${DUMP_ADVICE}`)
  }
}
