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
  const table: readonly {
    name: string
    given: string
    fall: number
    rise: number
    want: ProbeHealth
  }[] = [
    {
      name: 'the health of an address that was not probed is unknown',
      given: '',
      fall: 1,
      rise: 1,
      want: 'unknown',
    },
    {
      name: 'as many failures as the threshold are not enough',
      given: '---',
      fall: 3,
      rise: 1,
      want: 'unknown',
    },
    { name: 'one more is', given: '----', fall: 3, rise: 1, want: 'down' },
    {
      name: 'the first success is enough, whatever the rise',
      given: '+',
      fall: 1,
      rise: 5,
      want: 'up',
    },
    {
      name: 'what is up stays up for as many failures',
      given: '+---',
      fall: 3,
      rise: 1,
      want: 'up',
    },
    { name: 'and goes down with one more', given: '+----', fall: 3, rise: 1, want: 'down' },
    { name: 'a success ends the row of failures', given: '+---+---', fall: 3, rise: 1, want: 'up' },
    { name: 'one success heals', given: '----+', fall: 3, rise: 1, want: 'up' },
    { name: 'with a rise of three, two do not', given: '--++', fall: 1, rise: 3, want: 'down' },
    { name: 'three do', given: '--+++', fall: 1, rise: 3, want: 'up' },
    {
      name: 'a failure ends the row of successes',
      given: '--++-++',
      fall: 1,
      rise: 3,
      want: 'down',
    },
    { name: 'what was skipped does not count', given: '-.-.', fall: 2, rise: 1, want: 'unknown' },
    { name: 'nor does it end a row', given: '-.-.-', fall: 2, rise: 1, want: 'down' },
    {
      name: 'as many skipped attempts as the threshold keep the finding',
      given: '+...',
      fall: 3,
      rise: 1,
      want: 'up',
    },
    { name: 'one more makes it unknown', given: '+....', fall: 3, rise: 1, want: 'unknown' },
    { name: 'also if it was down', given: '--...', fall: 1, rise: 1, want: 'unknown' },
    {
      name: 'failures before do not count then',
      given: '--..-',
      fall: 1,
      rise: 1,
      want: 'unknown',
    },
    { name: 'an attempt between them ends the row', given: '+.+.', fall: 1, rise: 1, want: 'up' },
  ]
  for (const { name, given, fall, rise, want } of table) {
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
