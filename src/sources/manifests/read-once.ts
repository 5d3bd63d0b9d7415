import { join, relative } from 'node:path'
import { isSystemError } from '../../base/system-error.ts'
import { beginProgress } from '../../base/telemetry/progress.ts'
import { AddressHealth } from '../../health/address-health.ts'
import { type Listing, listManifests } from '../../yaml/directory.ts'
import { directoryError, type ManifestFile } from './manifest-file.ts'
import { ManifestStore } from './manifest-store.ts'
import { type ReadOptions, readManifestFile, readManifestOctets } from './read-file.ts'

/** Manifests that were read once and are not watched. */
export interface ManifestReading {
  /** The directory, or the name of the dump. */
  readonly root: string
  /** The records, and every fault of the files. */
  readonly store: ManifestStore
  /** What the `DNSHealthCheckProbe` manifests report. */
  readonly health: AddressHealth
  /** Files that were not read, and why. */
  readonly warnings: readonly string[]
}

const OPEN_BRACE = 0x7b

/**
 * Reads the manifests of a directory once. `similar`: documents that are the same in its files are not
 * parsed again. Throws InputError if a file or the directory can't be read.
 */
export async function readDirectoryOnce(
  directory: string,
  similar?: ManifestReading,
): Promise<ManifestReading> {
  const { files, warnings } = await list(directory)
  const health = new AddressHealth()
  const store = new ManifestStore(health)
  // A single file shows its own.
  const progress = files.length > 1 ? beginProgress(directory) : undefined
  try {
    for (const [i, { path }] of files.entries()) {
      progress?.at(i, files.length)
      const options = optionsFor(undefined, findSimilar(similar, relative(directory, path)))
      hold(store, await readManifestFile(path, options))
    }
  } finally {
    progress?.end()
  }
  return { root: directory, store, health, warnings }
}

/**
 * Reads a dump: the output of `kubectl get dnsrecord -A -o yaml` or `-o json`. `name`: where it comes
 * from, for messages. `similar`: as for `readDirectoryOnce`. `sliced`: how work is shared with other work.
 */
export async function readDump(
  name: string,
  octets: Buffer,
  similar?: ManifestReading,
  sliced: Partial<Pick<ReadOptions, 'pause' | 'documentOctetsMax'>> = {},
): Promise<ManifestReading> {
  const health = new AddressHealth()
  const store = new ManifestStore(health)
  const isJson = octets.find((octet) => octet > 0x20) === OPEN_BRACE
  const options = { ...optionsFor(isJson, findSimilar(similar, '')), ...sliced }
  hold(store, await readManifestOctets(name, octets, options))
  return { root: name, store, health, warnings: [] }
}

/** `path`: relative to the root. */
function findSimilar(similar: ManifestReading | undefined, path: string): ManifestFile | undefined {
  return similar?.store.file(join(similar.root, path))
}

function optionsFor(isJson: boolean | undefined, similar: ManifestFile | undefined): ReadOptions {
  return {
    previous: undefined,
    similar,
    findPrevious: () => undefined,
    onIgnored: undefined,
    isThorough: true,
    isJson,
    pause: () => undefined,
  }
}

function hold(store: ManifestStore, file: ManifestFile): void {
  const steps = store.replace(file.path, file)
  while (steps.next().done !== true);
}

async function list(directory: string): Promise<Listing> {
  try {
    return await listManifests(directory, () => Promise.resolve())
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw directoryError(directory, error)
  }
}
