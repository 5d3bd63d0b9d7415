import { scanJsonText } from '../../base/json-text.ts'
import type { StateKind } from '../../base/persist/state-file.ts'
import { COUNT_MAX, HEALTHS, type ProbeState } from './probe-state.ts'

const REASON_CHARACTERS_MAX = 300
const LINE = /^(\S+) (\w+) (\d{1,7}) (\d{1,7}) (\d{1,15}) (\d{1,3}) ("[^\n]*")$/

/**
 * A file with the states of probes, one per line:
 *
 *     ID HEALTH FAILURES SUCCESSES SINCE_MS HTTP_STATUS REASON (a JSON string)
 */
export const PROBE_STATES: StateKind<ReadonlyMap<string, ProbeState>> = {
  what: 'probes',
  version: '1',
  // Enough for a hundred thousand probes.
  octetsMax: 64 * 1024 * 1024,
  mode: 0o644,
  gapMs: 0,
  isLarge: false,
  contents: 'probe states',
  loss: 'every address counts as healthy until it is probed',
  scan: scanStates,
}

export function printStates(states: Iterable<readonly [id: string, state: ProbeState]>): string[] {
  const lines: string[] = []
  for (const [id, s] of states) {
    const reason = JSON.stringify(s.reason.slice(0, REASON_CHARACTERS_MAX))
    const numbers = `${s.failures} ${s.successes} ${Math.round(s.sinceMs)} ${s.httpStatus}`
    lines.push(`${id} ${s.health} ${numbers} ${reason}\n`)
  }
  return lines.sort()
}

function scanStates(lines: readonly string[]): ReadonlyMap<string, ProbeState> | undefined {
  const states = new Map<string, ProbeState>()
  for (const line of lines) {
    const entry = scanLine(line)
    if (entry === undefined) return undefined
    states.set(...entry)
  }
  return states
}

function scanLine(line: string): [string, ProbeState] | undefined {
  const found = LINE.exec(line)
  if (found === null) return undefined
  const [, id = '', word, ...rest] = found
  const [failures = 0, successes = 0, sinceMs = 0, httpStatus = 0] = rest.slice(0, 4).map(Number)
  const health = HEALTHS.find((known) => known === word)
  const reason = scanString(rest[4] ?? '')
  if (health === undefined || reason === undefined) return undefined
  if (failures > COUNT_MAX || successes > COUNT_MAX) return undefined
  return [id, { health, failures, successes, sinceMs, httpStatus, reason }]
}

function scanString(text: string): string | undefined {
  const value = scanJsonText(text)
  return value === undefined ? undefined : String(value)
}
