import { systemClock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { checkDirectoryOf } from '../../base/persist/state-file.ts'
import { type EndpointDrain, isActive, NO_DRAINS } from '../../health/drain/drain.ts'
import { findDrains } from '../../health/drain/drain-column.ts'
import { readDrainFile } from '../../health/drain/drain-file.ts'
import {
  type CheckedManifests,
  readManifests,
  type Warn,
} from '../../publish/offline/check-manifests.ts'
import { siteOf, sourceFileOf } from '../../publish/same-source.ts'
import { sitesOfEndpoints } from '../../publish/sites-of-endpoints.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { abilitiesOf, nameOf } from '../../sources/source-place.ts'
import type { KuadrantOptions } from './options.ts'

/**
 * Returns the faults of the drain file that a block names. `warn` gets a missing directory, and the
 * drains in force that select nothing, if all records are known: those of a cluster and of peers are not. `found`: the
 * manifests of the block. `all`: the blocks of the Corefile, including this one.
 */
export async function checkDrains(
  options: KuadrantOptions,
  all: readonly KuadrantOptions[],
  found: CheckedManifests,
  warn: Warn,
): Promise<readonly InputError[]> {
  const file = options.health?.drainFile
  if (file === undefined) return []
  const { path, position } = file
  const missing = checkDirectoryOf(path)
  if (missing !== '') warn(new InputError(position, missing))
  const { drains, faults } = readDrainFile(path)
  const users = all.filter(({ source }) => sourceFileOf('drainFile', source, all)?.path === path)
  const isKnown = users.every(({ source, peering }) => {
    return abilitiesOf(source).directory !== undefined && peering.peers.length === 0
  })
  const nowMs = systemClock.now()
  let unused = drains.filter(({ drain }) => isKnown && isActive(drain, nowMs))
  const sources = new Map(users.map((user) => [nameOf(user.source), user]))
  for (const user of sources.values()) {
    if (unused.length === 0) break
    const isOwn = nameOf(user.source) === nameOf(options.source)
    const manifests = isOwn ? found : await readAgain(user)
    // A refused record may be the one that is meant.
    if (manifests === undefined || manifests.faults.length > 0) return faults
    const site = siteOf(user, all)
    unused = unused.filter(({ drain }) => !manifests.records.some((r) => selects(drain, r, site)))
  }
  for (const { drain, line } of unused) {
    warn(new InputError({ file: path, line }, `${drain.selector.text} selects no endpoint`))
  }
  return faults
}

function selects(drain: EndpointDrain, record: StoredRecord, site: string): boolean {
  return findDrains(record, [drain], () => sitesOfEndpoints(record, site)) !== NO_DRAINS
}

/** Returns undefined if the directory can't be listed: the check of its own block reports that. */
async function readAgain({ source }: KuadrantOptions): Promise<CheckedManifests | undefined> {
  const { directory } = abilitiesOf(source)
  if (directory === undefined) return undefined
  try {
    return await readManifests(directory)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return undefined
  }
}
