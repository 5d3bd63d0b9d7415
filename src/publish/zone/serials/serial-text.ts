import type { StateKind } from '../../../base/persist/state-file.ts'
import { addToSerial } from '../soa.ts'
import type { SerialEntry } from './serial-index.ts'

/** Maximum number of commits that a file with the mark RESERVED may lack. */
export const RESERVED_COMMITS = 1000
/** Replaces a digest that is not reliable; no content has it. */
export const UNKNOWN_DIGEST = '?'
const EXACT = 'clean'
/** The mark of a file that reserves serials. */
export const RESERVED = 'open'

/**
 * A file with the serials of zones:
 *
 *     sextant serials 1 clean|open
 *     ZONE PLACE DIGEST SERIAL
 *
 * `clean`: the serials are exact. `open`: each zone may have been served with up to
 * RESERVED_COMMITS serials above the one in the file.
 */
export const SERIALS: StateKind<readonly SerialEntry[]> = {
  what: 'serials',
  version: '1',
  marks: [EXACT, RESERVED],
  // Enough for a million zones.
  octetsMax: 256 * 1024 * 1024,
  mode: 0o644,
  gapMs: 10_000,
  isLarge: false,
  contents: 'serials',
  loss: 'serials start at the current time',
  scan,
}

export function printSerials(entries: readonly SerialEntry[]): string[] {
  return entries.map((e) => `${e.zone} ${e.place} ${e.digest} ${e.serial}\n`)
}

/** Returns the entries. Reserved serials count as used, because they may have been served. */
function scan(lines: readonly string[], mark = EXACT): readonly SerialEntry[] | undefined {
  const entries = lines.map(scanEntry).filter((entry) => entry !== undefined)
  if (entries.length < lines.length) return undefined
  if (mark === EXACT) return entries
  return entries.map((entry) => {
    const serial = addToSerial(entry.serial, RESERVED_COMMITS)
    return { ...entry, digest: UNKNOWN_DIGEST, serial }
  })
}

function scanEntry(line: string): SerialEntry | undefined {
  const [zone, place, digest, serialText, ...more] = line.split(' ')
  const serial = /^\d{1,10}$/.test(serialText ?? '') ? Number(serialText) : 0
  if (!zone || !place || !digest || more.length > 0) return undefined
  return serial >= 1 && serial <= 0xffffffff ? { zone, place, digest, serial } : undefined
}
