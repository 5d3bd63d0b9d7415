import type { Position } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import { ZoneImage } from '../image/writer.ts'
import { type RefusedSnapshot, readInSlices, refuse, restoreInSlices } from '../snapshot/read.ts'
import { writeFinished } from '../snapshot/write.ts'
import { type LoadedImage, type PlainError, type PlainImage, toLoaded } from './image-load.ts'
import { haveChanged } from './load.ts'
import type { FileStamp } from './text.ts'

/** Files from this size on have a snapshot. A smaller file is loaded as fast as its snapshot would be read. */
export const SNAPSHOT_OCTETS_MIN = 2 * 1024 * 1024

/** What a zone is loaded from, as far as its warnings and records depend on it. */
export interface SnapshotSource {
  readonly path: string
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  /** See `ZoneLoadOptions`. */
  readonly isWhole: boolean
}

/** The facts of a snapshot of a zone file, as JSON: its source, and all of the load except the image. */
type SnapshotFacts = Omit<PlainImage, 'image'> & {
  readonly zone: string
  readonly isWhole: boolean
}

/** Writes the snapshot of a load. Throws the reason if the write fails. */
export function writeFileSnapshot(
  snapshot: string,
  { apex, isWhole }: SnapshotSource,
  { image, ...load }: PlainImage,
): void {
  const facts: SnapshotFacts = { ...load, zone: printName(apex), isWhole }
  writeFinished(snapshot, image.buffer, JSON.stringify(facts))
}

/**
 * Returns the load that the file `snapshot` keeps, if the source and all files of the zone are still the same;
 * undefined = no such snapshot. Pauses now and then. Never throws, whatever the file contains.
 */
export function* readFileSnapshot(
  snapshot: string,
  source: SnapshotSource,
): Generator<void, LoadedImage | RefusedSnapshot | undefined> {
  let facts: SnapshotFacts | undefined
  const read = yield* readInSlices(snapshot, (text) => {
    facts = scanFacts(text)
    return facts === undefined ? 'it is damaged: its facts are invalid' : faultOf(facts, source)
  })
  if (read === undefined || read.kind === 'refused') return read
  const restored = yield* restoreInSlices(read, { checkSteering: () => false, mayBeSigned: true })
  if ('kind' in restored) return restored
  const image = new ZoneImage({}, restored)
  if (image.stats.zones !== 1 || image.findZone(source.apex) === undefined) {
    return refuse('it is damaged: its zone differs from its facts')
  }
  const { kind, files, serial, warnings, signatureWarning, expiry } = facts!
  const captured = image.capture()
  return toLoaded({ kind, files, serial, warnings, signatureWarning, expiry, image: captured })
}

/** Returns why the snapshot is not of this source; '' = it is. */
function faultOf(
  { zone, isWhole, files }: SnapshotFacts,
  { path, apex, isWhole: isNowWhole }: SnapshotSource,
): string {
  if (zone !== printName(apex)) return `it is of zone ${zone}`
  if (isWhole !== isNowWhole) return 'it was made with other options'
  if (files[0]?.file !== path) return `it is of the file ${files[0]?.file}`
  return haveChanged(files) ? 'the zone file has changed since' : ''
}

/** Undefined = the text is not in the format of `writeFileSnapshot`. */
function scanFacts(text: string): SnapshotFacts | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(json)) return undefined
  const { zone, isWhole, serial, signatureWarning, files, warnings, expiry } = json
  const isPlain =
    typeof zone === 'string' &&
    typeof isWhole === 'boolean' &&
    isCount(serial) &&
    (signatureWarning === -1 || isCount(signatureWarning)) &&
    isArrayOf(files, isStamp) &&
    isArrayOf(warnings, isError) &&
    (expiry === undefined || isExpiry(expiry))
  if (!isPlain) return undefined
  return { kind: 'loaded', zone, isWhole, serial, signatureWarning, files, warnings, expiry }
}

function isArrayOf<T>(value: unknown, isOne: (one: unknown) => one is T): value is T[] {
  return Array.isArray(value) && value.every(isOne)
}

function isStamp(value: unknown): value is FileStamp {
  return isObject(value) && typeof value.file === 'string' && typeof value.stamp === 'string'
}

function isError(value: unknown): value is PlainError {
  if (!isObject(value) || typeof value.message !== 'string') return false
  return value.position === undefined || isPosition(value.position)
}

function isPosition(value: unknown): value is Position {
  return isObject(value) && typeof value.file === 'string' && isCount(value.line)
}

function isExpiry(value: unknown): value is NonNullable<PlainImage['expiry']> {
  return isObject(value) && isCount(value.seconds) && typeof value.rrset === 'string'
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 53
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
