import { isSystemError } from '../../base/system-error.ts'
import { AddressHealth } from '../../health/address-health.ts'
import { type Listing, listManifests } from './directory.ts'
import { directoryError, type ManifestFile } from './manifest-file.ts'
import { ManifestStore } from './manifest-store.ts'
import { type ReadOptions, readManifestFile, readManifestOctets } from './read-file.ts'

/** Manifests that were read once and are not watched. */
export interface ManifestReading {
  /** The records, and every fault of the files. */
  readonly store: ManifestStore
  /** What the `DNSHealthCheckProbe` manifests report. */
  readonly health: AddressHealth
  /** Files that were not read, and why. */
  readonly warnings: readonly string[]
}

const OPEN_BRACE = 0x7b

/** Reads the manifests of a directory once. Throws InputError if a file or the directory can't be read. */
export async function readDirectoryOnce(directory: string): Promise<ManifestReading> {
  const { files, warnings } = await list(directory)
  const health = new AddressHealth()
  const store = new ManifestStore(health)
  for (const { path } of files) hold(store, await readManifestFile(path, optionsFor(undefined)))
  return { store, health, warnings }
}

/**
 * Reads a dump: the output of `kubectl get dnsrecord -A -o yaml` or `-o json`. `name`: where it comes
 * from, for messages.
 */
export async function readDump(name: string, octets: Buffer): Promise<ManifestReading> {
  const health = new AddressHealth()
  const store = new ManifestStore(health)
  const isJson = octets.find((octet) => octet > 0x20) === OPEN_BRACE
  hold(store, await readManifestOctets(name, octets, optionsFor(isJson)))
  return { store, health, warnings: [] }
}

function optionsFor(isJson: boolean | undefined): ReadOptions {
  return {
    previous: undefined,
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
