import { createHash } from 'node:crypto'
import { COUNT_MAX, type ProbeState, type Verdict } from './probe-state.ts'

/**
 * The text of a file with the states of probes:
 *
 *     sextant probes 1
 *     ID VERDICT FAILURES SUCCESSES SINCE_MS HTTP_STATUS REASON (a JSON string)
 *     …
 *     sha256 HEX (of all before)
 */
const MAGIC = 'sextant probes '
const VERSION = '1'
const VERDICTS: readonly Verdict[] = ['unknown', 'up', 'down']
const REASON_CHARACTERS_MAX = 300
const LINE = /^(\S+) (\w+) (\d{1,7}) (\d{1,7}) (\d{1,15}) (\d{1,3}) ("[^\n]*")$/

/** Why a file is refused; a foreign one is somebody else's and must not be written. */
export interface RefusedStates {
  readonly kind: 'refused'
  readonly reason: string
  readonly isForeign: boolean
}

export function printStates(states: Iterable<readonly [id: string, state: ProbeState]>): string {
  const lines: string[] = []
  for (const [id, s] of states) {
    const reason = JSON.stringify(s.reason.slice(0, REASON_CHARACTERS_MAX))
    const numbers = `${s.failures} ${s.successes} ${Math.round(s.sinceMs)} ${s.httpStatus}`
    lines.push(`${id} ${s.verdict} ${numbers} ${reason}\n`)
  }
  const text = `${MAGIC}${VERSION}\n${lines.sort().join('')}`
  return `${text}sha256 ${digestOf(text)}\n`
}

export function scanStates(text: string): ReadonlyMap<string, ProbeState> | RefusedStates {
  if (text === '') return refuse('it is empty', false)
  if (!text.startsWith(MAGIC) && !MAGIC.startsWith(text))
    return refuse('it holds something else', true)
  const [version = ''] = text.slice(MAGIC.length).split('\n', 1)
  const isComplete = text.includes('\n')
  if (isComplete && version !== VERSION) {
    return refuse(`its version is ${JSON.stringify(version)}, not ${VERSION}`, true)
  }
  const end = Math.max(0, text.lastIndexOf('sha256 '))
  const body = text.slice(0, end)
  if (!isComplete || text.slice(end) !== `sha256 ${digestOf(body)}\n`) {
    return refuse('it is torn: its checksum is missing or wrong', false)
  }
  const states = new Map<string, ProbeState>()
  for (const line of body.split('\n').slice(1, -1)) {
    const entry = scanLine(line)
    if (entry === undefined) return refuse('it has a line that is none of a probe', false)
    states.set(...entry)
  }
  return states
}

function scanLine(line: string): [string, ProbeState] | undefined {
  const found = LINE.exec(line)
  if (found === null) return undefined
  const [, id = '', word, ...rest] = found
  const [failures = 0, successes = 0, sinceMs = 0, httpStatus = 0] = rest.slice(0, 4).map(Number)
  const verdict = VERDICTS.find((known) => known === word)
  const reason = scanString(rest[4] ?? '')
  if (verdict === undefined || reason === undefined) return undefined
  if (failures > COUNT_MAX || successes > COUNT_MAX) return undefined
  return [id, { verdict, failures, successes, sinceMs, httpStatus, reason }]
}

function scanString(text: string): string | undefined {
  try {
    return String(JSON.parse(text))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function refuse(reason: string, isForeign: boolean): RefusedStates {
  return { kind: 'refused', reason, isForeign }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
