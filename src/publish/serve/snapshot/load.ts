import { RRType } from '../../../dns/iana/types.ts'
import { scanName } from '../../../dns/name/name.ts'
import { POLICY_WORD } from '../../../steering/encode.ts'
import { OTHER_COUNTER } from '../../../steering/outcome-counters.ts'
import { isEncodedSteering, replaceCounters } from '../../../steering/verify-encoded.ts'
import { VersionView } from '../../../xfr/journal/version-view.ts'
import type { SteeringCheck } from '../../../zone/image/restore.ts'
import { ZoneImage } from '../../../zone/image/writer.ts'
import {
  type RefusedSnapshot,
  readSnapshot,
  refuse,
  restoreSnapshot,
} from '../../../zone/snapshot/read.ts'
import { type SnapshotFacts, scanFacts } from './facts.ts'

/** Zones of an earlier process. */
export interface LoadedSnapshot {
  readonly kind: 'loaded'
  readonly image: ZoneImage
  readonly facts: SnapshotFacts
}

/**
 * Loads the snapshot at `path` if it was made with the same `options` (a digest); undefined = no
 * such snapshot. Never throws, whatever the file contains. The result is valid to serve.
 */
export function loadSnapshot(
  path: string,
  options: string,
): LoadedSnapshot | RefusedSnapshot | undefined {
  const read = readSnapshot(path)
  if (read === undefined || read.kind === 'refused') return read
  const facts = scanFacts(read.facts)
  if (facts === undefined) return refuse('it is damaged: its list of zones is invalid')
  if (facts.options !== options) return refuse('it was made with other options')
  const keyCounts = facts.policies.map((keys) => keys.length)
  const used = new Set<number>()
  let isReplaced = false
  const check: SteeringCheck = (words, offset, count, rdataCount) => {
    used.add(words[offset + POLICY_WORD]!)
    if (!isEncodedSteering(words, offset, count, rdataCount, keyCounts)) return false
    if (replaceCounters(words, offset, OTHER_COUNTER)) isReplaced = true
    return true
  }
  let restored = restoreSnapshot(read, check)
  if (isReplaced) {
    // In a forged file, counters may overlap what was checked before them.
    isReplaced = false
    restored = restoreSnapshot(read, check)
    if (isReplaced) return refuse('it is damaged: its counters overlap')
  }
  if ('kind' in restored) return restored
  const image = new ZoneImage({}, restored)
  if (!holdsZones(image, facts)) return refuse('it is damaged: its zones differ from its list')
  // Codes that no record uses any more would permanently make the scope of answers too fine.
  const policies = facts.policies.map((keys, number) => (used.has(number) ? keys : []))
  return { kind: 'loaded', image, facts: { ...facts, policies } }
}

/** True if the image has exactly the zones in the facts, each with its SOA. */
function holdsZones(image: ZoneImage, { zones }: SnapshotFacts): boolean {
  const { handle, version: imageVersion } = image
  const isThere = zones.every(({ zone, serial }) => {
    const apex = scanName(zone)
    if (apex === undefined) return false
    const view = VersionView.open({ zone: apex, serial, buffer: handle.buffer, imageVersion })
    const soa = view?.find(apex, RRType.SOA) ?? 0
    return view !== undefined && soa !== 0 && [...view.records(apex, soa)].length === 1
  })
  return isThere && image.stats.zones === new Set(zones.map(({ zone }) => zone)).size
}
