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
 * `open` instead of `clean` means that every zone may have been served with up to `UNSAVED_MAX`
 * serials above those in the file.
 */
const MAGIC = 'sextant serials '
const VERSION = '1'
/** Maximum number of changes per zone that an open file may lack. */
export const UNSAVED_MAX = 1000
/** Replaces a digest that is not reliable; no content has it. */
export const UNKNOWN_DIGEST = '?'

export type SerialFileState = 'clean' | 'open'

/** Why a file is refused. A foreign file belongs to another program and must not be overwritten. */
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

/**
 * Reads the entries of a file. Serials of an open file are raised to the highest that may have been
 * served.
 */
export function scanSerials(text: string): readonly SerialEntry[] | RefusedSerials {
  if (text === '') return refuse('it is empty', false)
  // An incomplete first line of this format is not foreign.
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
