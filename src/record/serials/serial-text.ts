import { createHash } from 'node:crypto'
import { addToSerial } from '../soa.ts'
import type { SerialEntry } from './serial-index.ts'

/**
 * The text of a serials file:
 *
 *     sextant serials 1 clean
 *     ZONE PLACE DIGEST SERIAL
 *     …
 *     sha256 HEX (of all before)
 *
 * `open` in place of `clean`: every zone may have been served with up to `UNSAVED_MAX` serials more than
 * the file says.
 */
const MAGIC = 'sextant serials '
const VERSION = '1'
/** Most changes of a zone that an open file may know nothing of. */
export const UNSAVED_MAX = 1000
/** In place of a digest that can't be relied on: no content has it. */
export const UNKNOWN_DIGEST = '?'

export type SerialFileState = 'clean' | 'open'

/** Why a file is refused; a foreign one is somebody else's and must not be written. */
export interface RefusedSerials {
  readonly kind: 'refused'
  readonly reason: string
  readonly isForeign: boolean
}

export function printSerials(state: SerialFileState, entries: readonly SerialEntry[]): string {
  const lines = entries.map((e) => `${e.zone} ${e.place} ${e.digest} ${e.serial}\n`).join('')
  const text = `${MAGIC}${VERSION} ${state}\n${lines}`
  return `${text}sha256 ${digestOf(text)}\n`
}

/** The entries of a file; those of an open one are raised to what may have been served at most. */
export function scanSerials(text: string): readonly SerialEntry[] | RefusedSerials {
  if (text === '') return refuse('it is empty', false)
  // A torn beginning of our own is ours.
  if (!text.startsWith(MAGIC) && !MAGIC.startsWith(text))
    return refuse('it holds something else', true)
  const [header = ''] = text.slice(MAGIC.length).split('\n', 1)
  const [version = '', state = ''] = header.split(' ')
  const isComplete = text.includes('\n')
  if (isComplete && version !== VERSION) {
    return refuse(`its version is ${JSON.stringify(version)}, not ${VERSION}`, true)
  }
  const end = text.lastIndexOf('sha256 ')
  const body = text.slice(0, Math.max(0, end))
  if (!isComplete || text.slice(body.length) !== `sha256 ${digestOf(body)}\n`) {
    return refuse('it is torn: its checksum is missing or wrong', false)
  }
  const lines = body.split('\n').slice(1, -1)
  const entries = lines.map(scanEntry)
  if ((state !== 'clean' && state !== 'open') || entries.includes(undefined)) {
    return refuse('it has a line that is none of a serials file', false)
  }
  const known = entries.filter((entry) => entry !== undefined)
  if (state === 'clean') return known
  return known.map((entry) => {
    return { ...entry, digest: UNKNOWN_DIGEST, serial: addToSerial(entry.serial, UNSAVED_MAX) }
  })
}

function scanEntry(line: string): SerialEntry | undefined {
  const [zone, place, digest, serialText, ...more] = line.split(' ')
  const serial = /^\d{1,10}$/.test(serialText ?? '') ? Number(serialText) : 0
  if (!zone || !place || !digest || more.length > 0) return undefined
  return serial >= 1 && serial <= 0xffffffff ? { zone, place, digest, serial } : undefined
}

function refuse(reason: string, isForeign: boolean): RefusedSerials {
  return { kind: 'refused', reason, isForeign }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
