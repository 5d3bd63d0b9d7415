import { checkZoneFile } from '../../authority/file-zone.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { runWhole } from '../../base/slices.ts'
import type { CheckReport } from '../../plugin/description.ts'
import type { FilePattern } from './file-pattern.ts'
import { type FoundZone, findZoneFiles } from './walk.ts'

interface CheckedDirectory {
  readonly directory: string
  /** Of `directory`. */
  readonly position: Position
  readonly pattern: FilePattern
}

/**
 * Returns the faults of all zone files of the directory. `isWholeAmong`: see `AutoOptions`. `signs`: whether `dnssec`
 * does.
 */
export function checkFiles(
  { directory, pattern, position }: CheckedDirectory,
  isWholeAmong: (found: readonly FoundZone[]) => (zone: Uint8Array) => boolean,
  signs: (zone: Uint8Array) => boolean,
  report: CheckReport,
): readonly InputError[] {
  const warn = (text: string): void => report.warn(new InputError(position, text))
  const found = runWhole(findZoneFiles(directory, pattern, warn))
  const files = [...(found?.values() ?? [])]
  const isWhole = isWholeAmong(files)
  return files.flatMap(({ path, zone }) => {
    return checkZoneFile(path, zone, { isUnsigned: signs(zone), isWhole: isWhole(zone) }, report)
  })
}
