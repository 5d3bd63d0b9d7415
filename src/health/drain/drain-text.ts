import { InputError } from '../../base/errors.ts'
import { printTime, scanTime } from '../../base/rfc3339.ts'
import type { EndpointDrain } from './drain.ts'
import { printTerm, scanWords } from './quoted-words.ts'
import { scanDrainSelector } from './selector.ts'

/** Bounds on a drain file. */
export const DRAINS_MAX = 200
export const DRAIN_FILE_OCTETS_MAX = 1024 * 1024
const LINE_CHARACTERS_MAX = 8192
const REASON_CHARACTERS_MAX = 1000
/** Most faults that are reported of one file. */
const FAULTS_MAX = 100

/** A drain and the line of its file, from 1. */
interface DrainLine {
  readonly drain: EndpointDrain
  readonly line: number
}

export interface DrainText {
  readonly drains: readonly DrainLine[]
  /** Faults of single lines, with their places; of many, the first ones. */
  readonly faults: readonly InputError[]
}

const FIELDS = ['until', 'by', 'created', 'reason']

/**
 * Reads a drain file: one drain per line, the terms of its selector and then its fields. Empty
 * lines and comments are ignored.
 *
 *     site:dublin host:*.example.com until=2026-11-24T18:00:00Z by=ops created=… reason="racks move"
 *
 * `file`: its path, for faults.
 */
export function scanDrains(text: string, file: string): DrainText {
  const drains: DrainLine[] = []
  const faults: InputError[] = []
  const lines = new Map<string, number>()
  for (const [i, source] of text.split('\n').entries()) {
    const line = i + 1
    const found = scanLine(source)
    if (found === undefined) continue
    const fault = typeof found === 'string' ? found : faultBeside(found, lines)
    if (typeof found === 'string' || fault !== '') {
      if (faults.length < FAULTS_MAX) faults.push(new InputError({ file, line }, fault))
      continue
    }
    lines.set(found.selector.text, line)
    drains.push({ drain: found, line })
  }
  return { drains, faults }
}

function faultBeside({ selector }: EndpointDrain, lines: ReadonlyMap<string, number>): string {
  const earlier = lines.get(selector.text)
  if (earlier !== undefined) return `line ${earlier} has the same selector; remove one of them`
  return lines.size < DRAINS_MAX ? '' : `more than ${DRAINS_MAX} drains; the rest is not read`
}

/** Returns undefined for an empty line, and a string that says what is wrong with an invalid one. */
function scanLine(line: string): EndpointDrain | string | undefined {
  if (line.length > LINE_CHARACTERS_MAX) return `longer than ${LINE_CHARACTERS_MAX} characters`
  const words = scanWords(line)
  if (words === undefined) return 'a string in double quotes is not valid JSON'
  if (words.length === 0) return undefined
  const fields = new Map<string, string>()
  const terms: string[] = []
  for (const word of words) {
    const [, key = '', value = ''] = /^([a-z]+)=(.*)$/su.exec(word) ?? []
    if (key === '') terms.push(word)
    else if (!FIELDS.includes(key))
      return `${key} is not a field; the fields are ${FIELDS.join(', ')}`
    else if (fields.has(key)) return `${key} appears twice`
    else fields.set(key, value)
  }
  const selector = scanDrainSelector(terms)
  if (typeof selector === 'string') return selector
  const [created, until] = [scanField(fields, 'created'), scanField(fields, 'until')]
  if (typeof created === 'string') return created
  if (typeof until === 'string') return until
  const reason = fields.get('reason') ?? ''
  if (reason.length > REASON_CHARACTERS_MAX) {
    return `reason is longer than ${REASON_CHARACTERS_MAX} characters`
  }
  return { selector, reason, actor: fields.get('by') ?? '', createdMs: created, untilMs: until }
}

/** Returns a string that says what is wrong with an invalid time. */
function scanField(fields: ReadonlyMap<string, string>, key: string): number | string | undefined {
  const text = fields.get(key)
  if (text === undefined) return undefined
  const hint = 'is not a time; write it as 2026-11-24T18:00:00Z'
  return scanTime(text) ?? `${key} ${JSON.stringify(text)} ${hint}`
}

/** Prints the line of a drain, without its newline. `scanDrains` reads it back. */
export function printDrainLine({
  selector,
  untilMs,
  actor,
  createdMs,
  reason,
}: EndpointDrain): string {
  const fields: readonly (readonly [string, string])[] = [
    ['until', untilMs === undefined ? '' : printTime(untilMs)],
    ['by', actor],
    ['created', createdMs === undefined ? '' : printTime(createdMs)],
    ['reason', reason],
  ]
  const given = fields.filter(([, value]) => value !== '')
  return [selector.text, ...given.map(([key, value]) => printTerm(key, '=', value))].join(' ')
}
