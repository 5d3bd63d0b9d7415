import { quote } from '../records/validate/fields.ts'
import {
  printSettings,
  SETTING_KEYS,
  type SettingKey,
  scanSettingTexts,
} from '../records/validate/settings.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'

/** What an endpoint carries of its record. */
export type RecordFields = Pick<
  PeerEndpoint,
  'createdSeconds' | 'isUndated' | 'recordId' | 'settings'
>

/** A property of a record, as a peer or a status has it. */
export type RecordKey = 'created' | 'undated' | 'record' | SettingKey
export const RECORD_KEYS: readonly RecordKey[] = ['created', 'undated', 'record', ...SETTING_KEYS]

export interface ScanRecordOptions {
  /** Unix time of the reader. A record can't be from more than a day later; missing = it can. */
  readonly nowSeconds?: number | undefined
  /** Called for each property that is ignored: `sticky "yes" is ignored: must be …`. One line. */
  readonly onProblem?: (text: string) => void
}

const SECONDS_MAX = 0xffff_ffff
/** Clocks of sites differ, but not that much. */
const AHEAD_SECONDS_MAX = 24 * 3600
const RECORD_ID = /^[0-9a-f]{8,64}$/

/** Prints what an endpoint carries of its record; leaves out what is unknown. */
export function printRecordTexts(fields: RecordFields): [RecordKey, string][] {
  const { createdSeconds, isUndated, recordId, settings } = fields
  const texts: [RecordKey, string][] = []
  if (createdSeconds !== undefined) texts.push(['created', String(createdSeconds)])
  if (isUndated === true) texts.push(['undated', 'true'])
  if (recordId !== undefined) texts.push(['record', recordId])
  if (settings !== undefined) texts.push(...printSettings(settings))
  return texts
}

/** Reads what `printRecordTexts` wrote. Invalid properties are left out, and reported. */
export function scanRecordTexts(
  textOf: (key: RecordKey) => string | undefined,
  { nowSeconds = Infinity, onProblem = () => {} }: ScanRecordOptions = {},
): RecordFields {
  const ignore = (key: RecordKey, problem: string): void => {
    onProblem(`${key} ${quote(textOf(key)!)} is ignored: ${problem}`)
  }
  const validTextOf = (key: RecordKey, findFault: (text: string) => string) => {
    const text = textOf(key)
    const fault = text === undefined ? '' : findFault(text)
    if (fault === '') return text
    ignore(key, fault)
    return undefined
  }
  const created = Number(validTextOf('created', (text) => findCreatedFault(text, nowSeconds)) ?? 0)
  const undated = validTextOf('undated', (text) => (text === 'true' ? '' : 'must be true'))
  const recordId = validTextOf('record', (text) => {
    return RECORD_ID.test(text) ? '' : 'must be 8 to 64 hexadecimal digits'
  })
  const hasSettings = SETTING_KEYS.some((key) => textOf(key) !== undefined)
  const settings = hasSettings ? scanSettingTexts(textOf, ignore) : undefined
  return {
    ...(created === 0 ? {} : { createdSeconds: created }),
    ...(undated === undefined ? {} : { isUndated: true }),
    ...(recordId === undefined ? {} : { recordId }),
    ...(settings === undefined ? {} : { settings }),
  }
}

function findCreatedFault(text: string, nowSeconds: number): string {
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds <= SECONDS_MAX)) return 'must be a Unix time'
  if (seconds <= nowSeconds + AHEAD_SECONDS_MAX) return ''
  return 'is more than a day after the time of this server; check the clocks of both sites'
}
