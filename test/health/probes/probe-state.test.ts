import fc from 'fast-check'
import t from 'tap'
import type { ProbeOutcome } from '../../../src/health/probes/probe.ts'
import {
  nextState,
  type ProbeHealth,
  type ProbeState,
  unknownState,
} from '../../../src/health/probes/probe-state.ts'

const GOOD: ProbeOutcome = { kind: 'healthy', httpStatus: 200 }
const BAD: ProbeOutcome = { kind: 'unhealthy', httpStatus: 503, reason: 'status 503' }
const NONE: ProbeOutcome = { kind: 'skipped', reason: 'not probed' }
const OUTCOMES: Readonly<Record<string, ProbeOutcome>> = { '+': GOOD, '-': BAD, '.': NONE }

/** Where a probe stands after looks written as `+`, `-` and `.`, one a second. */
function after(looks: string, failureThreshold: number, successThreshold: number): ProbeState {
  const check = { failureThreshold, successThreshold }
  let state = unknownState(0)
  for (const [i, look] of [...looks].entries()) {
    state = nextState(state, OUTCOMES[look]!, check, (i + 1) * 1000)
  }
  return state
}

t.test('a clock that is set back leaves no time in the future', async (t) => {
  const check = { failureThreshold: 1, successThreshold: 1 }
  let state = unknownState(7_200_000)
  for (const [outcome, nowMs, sinceMs] of [
    [BAD, 7_201_000, 7_200_000],
    [BAD, 7_202_000, 7_202_000],
    [BAD, 1000, 1000],
    [BAD, 2000, 1000],
    [NONE, 500, 1000],
    [BAD, 9_000_000, 1000],
  ] as const) {
    state = nextState(state, outcome, check, nowMs)
    t.equal(state.sinceMs, sinceMs, `${nowMs}`)
  }
  t.equal(state.health, 'down')
})

t.test('the health after a series of results', (t) => {
  const table: readonly (readonly [string, number, number, ProbeHealth, string])[] = [
    ['', 1, 1, 'unknown', 'the health of an address that was not probed is unknown'],
    ['---', 3, 1, 'unknown', 'as many failures as the threshold are not enough'],
    ['----', 3, 1, 'down', 'one more is'],
    ['+', 1, 5, 'up', 'the first success is enough, whatever the rise'],
    ['+---', 3, 1, 'up', 'what is up stays up for as many failures'],
    ['+----', 3, 1, 'down', 'and goes down with one more'],
    ['+---+---', 3, 1, 'up', 'a success ends the row of failures'],
    ['----+', 3, 1, 'up', 'one success heals'],
    ['--++', 1, 3, 'down', 'with a rise of three, two do not'],
    ['--+++', 1, 3, 'up', 'three do'],
    ['--++-++', 1, 3, 'down', 'a failure ends the row of successes'],
    ['-.-.', 2, 1, 'unknown', 'what was skipped does not count'],
    ['-.-.-', 2, 1, 'down', 'nor does it end a row'],
    ['+...', 3, 1, 'up', 'as many skipped attempts as the threshold keep the finding'],
    ['+....', 3, 1, 'unknown', 'one more makes it unknown'],
    ['--...', 1, 1, 'unknown', 'also if it was down'],
    ['--..-', 1, 1, 'unknown', 'failures before do not count then'],
    ['+.+.', 1, 1, 'up', 'an attempt between them ends the row'],
  ]
  for (const [given, fall, rise, want, name] of table) {
    t.equal(after(given, fall, rise).health, want, name)
  }
  t.end()
})

t.test('since when, and why', (t) => {
  t.match(after('+--', 1, 1), {
    health: 'down',
    sinceMs: 3000,
    reason: 'status 503',
    httpStatus: 503,
  })
  t.match(after('+---', 1, 1), { sinceMs: 3000, failures: 3 }, 'more of the same is not news')
  t.match(after('+--+', 1, 1), {
    health: 'up',
    sinceMs: 4000,
    reason: '',
    httpStatus: 200,
    failures: 0,
  })
  t.match(after('+.', 1, 1), { health: 'up', sinceMs: 1000, reason: 'not probed' })
  t.match(after('--...', 1, 1), { health: 'unknown', sinceMs: 4000, failures: 0, httpStatus: 0 })
  t.end()
})

t.test('whatever comes, thresholds hold', async () => {
  const looks = fc.array(fc.constantFrom('+', '-', '.'), { maxLength: 60 })
  const threshold = fc.integer({ min: 1, max: 6 })
  const property = fc.property(looks, threshold, threshold, (given, fall, rise) => {
    let before: ProbeHealth = 'unknown'
    for (let i = 1; i <= given.length; i++) {
      const seen = given.slice(0, i).join('')
      const { health } = after(seen, fall, rise)
      const [forgotten = ''] = seen.match(new RegExp(`^.*\\.{${fall + 1}}`)) ?? []
      const row = /(\+*|-*)$/.exec(seen.slice(forgotten.length).replaceAll('.', ''))![0]
      if (health === 'down' && before !== 'down' && !(row[0] === '-' && row.length > fall))
        return false
      if (health === 'up' && before === 'down' && !(row[0] === '+' && row.length >= rise))
        return false
      const isForgotten = forgotten.length === seen.length && seen !== ''
      if (health === 'unknown' && before !== 'unknown' && !isForgotten) return false
      if (isForgotten && health !== 'unknown') return false
      // And the other way round: what is due happens.
      if (row[0] === '-' && row.length > fall && health !== 'down') return false
      if (row[0] === '+' && row.length >= rise && health !== 'up') return false
      before = health
    }
    return true
  })
  fc.assert(property, { seed: 1, numRuns: 500 })
})
