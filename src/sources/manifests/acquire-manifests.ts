import { realpathSync } from 'node:fs'
import { isSystemError } from '../../base/system-error.ts'
import { acquireSource, findSource, RefCountedSource } from '../ref-counted-source.ts'
import { directoryError } from './manifest-file.ts'
import { ManifestSource, type ManifestSourceOptions } from './manifest-source.ts'

/**
 * Returns the source of a directory, read, followed, and shared by all its users. Throws InputError
 * if the directory can't be read. The returned function releases the source; the last release
 * closes it.
 */
export async function acquireManifests(
  options: ManifestSourceOptions,
): Promise<{ readonly shared: RefCountedSource<ManifestSource>; readonly release: () => void }> {
  const key = `manifests ${resolveDirectory(options.directory)}`
  return acquireSource(key, () => new RefCountedSource(new ManifestSource(options), options))
}

/** True if a source in this process reads the directory. */
export function isManifestSourceOpen(directory: string): boolean {
  try {
    return findSource(`manifests ${realpathSync(directory)}`) !== undefined
  } catch (error) {
    if (!isSystemError(error)) throw error
    return false
  }
}

function resolveDirectory(directory: string): string {
  try {
    return realpathSync(directory)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw directoryError(directory, error)
  }
}
