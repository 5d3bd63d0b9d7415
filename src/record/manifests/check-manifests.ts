import { systemClock } from '../../base/clock.ts'
import type { InputError } from '../../base/errors.ts'
import { systemTimers } from '../../base/timers.ts'
import type { Logger } from '../../telemetry/log.ts'
import { ManifestSource } from './manifest-source.ts'

const SILENT: Logger = { debug() {}, info() {}, warning() {}, error() {} }

/**
 * Everything that is wrong with the manifests in a directory, by file and line. Reads once and keeps
 * nothing. Throws InputError where the directory can't be listed.
 */
export async function checkManifests(directory: string): Promise<readonly InputError[]> {
  const parts = { directory, log: SILENT, clock: systemClock, timers: systemTimers }
  const source = new ManifestSource(parts)
  await source.load()
  source.close()
  return source.problems()
}
