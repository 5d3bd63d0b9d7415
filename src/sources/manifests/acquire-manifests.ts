import { realpathSync } from 'node:fs'
import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import { isSystemError } from '../../base/system-error.ts'
import { acquireSource, OwnedSource } from '../owned-source.ts'
import { directoryError } from './manifest-file.ts'
import { ManifestSource, type ManifestSourceOptions } from './manifest-source.ts'

/**
 * Returns the source of a directory, read, followed, and shared by all its users. Throws InputError
 * if the directory can't be read.
 */
export async function acquireManifests(
  options: ManifestSourceOptions,
  resources: ResourceRegistry,
): Promise<ResourceLease<OwnedSource>> {
  const key = `manifests ${resolveDirectory(options.directory)}`
  return acquireSource(resources, key, () => {
    return new OwnedSource(new ManifestSource(options), options)
  })
}

/** True if a source in this process reads the directory. */
export function isManifestSourceOpen(directory: string, resources: ResourceRegistry): boolean {
  try {
    return resources.find(OwnedSource, `manifests ${realpathSync(directory)}`) !== undefined
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
