import { checkZoneFile, type FileCheckOptions } from '../../authority/file-zone.ts'
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
 * Returns the faults of all zone files of the directory. `optionsAmong`: returns how to check each zone of these.
 */
export function checkFiles(
  { directory, pattern, position }: CheckedDirectory,
  optionsAmong: (found: readonly FoundZone[]) => (zone: Uint8Array) => FileCheckOptions,
  report: CheckReport,
): readonly InputError[] {
  const warn = (text: string): void => report.warn(new InputError(position, text))
  const found = runWhole(findZoneFiles(directory, pattern, warn))
  const files = [...(found?.values() ?? [])]
  const optionsOf = optionsAmong(files)
  return files.flatMap(({ path, zone }) => checkZoneFile(path, zone, optionsOf(zone), report))
}
