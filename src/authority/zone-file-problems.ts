import { plural } from '../base/plural.ts'
import { type ProblemGroup, type ProblemText, problemOf } from '../base/telemetry/problems.ts'
import type { FileZone } from './file-zone.ts'

/** Returns the zones whose present file is not served. `of`: the directive and its server block. */
export function groupOfZoneFiles(zones: Iterable<FileZone>, of: string): ProblemGroup {
  const problems = [...zones].flatMap((zone) => problemOfZone(zone) ?? [])
  return { kind: 'zone-file', of, count: problems.length, problems }
}

/** Returns the snapshots that cannot be written. */
export function groupsOfSnapshots(zones: Iterable<FileZone>): readonly ProblemGroup[] {
  return [...zones].flatMap(({ snapshot }) => snapshot?.problems ?? [])
}

function problemOfZone({ zoneText, path, serial, faults }: FileZone): ProblemText | undefined {
  const [first, ...others] = faults
  if (first === undefined) return undefined
  const { place, reason } = problemOf(first, '')
  const served = serial === -1 ? 'it is not served' : `serial ${serial} is still served`
  const more = others.length === 0 ? '' : ` (and ${plural(others.length, 'more fault')})`
  const object = `zone ${zoneText}`
  return { place: place || path, object, reason: `${object}: ${reason}${more}; ${served}` }
}
