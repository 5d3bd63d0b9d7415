import t from 'tap'
import { ClockGuard } from '../../../src/signing/zone/clock-guard.ts'
import { SleepyClock } from '../../support/setup.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

type Event = readonly ['pass' | 'sleep' | 'set', number]

for (const [what, events, isTrusted] of [
  ['a day passes', [['pass', 30 * DAY_MS]], true],
  ['the machine slept', [['sleep', 30 * DAY_MS]], true],
  ['it slept often', Array.from({ length: 9 }, () => ['sleep', 20 * HOUR_MS]), true],
  ['a clock of summer time', [['set', HOUR_MS]], true],
  ['a clock put forward', [['set', 2 * DAY_MS]], false],
  ['a clock set back', [['set', -2 * DAY_MS]], false],
  [
    'a clock put forward while the machine slept',
    [
      ['sleep', 3 * DAY_MS],
      ['set', 2 * DAY_MS],
    ],
    false,
  ],
  [
    'a clock that was steady for an hour',
    [
      ['set', 2 * DAY_MS],
      ['pass', HOUR_MS],
    ],
    true,
  ],
  [
    'sleep after that',
    [
      ['set', 2 * DAY_MS],
      ['pass', HOUR_MS],
      ['sleep', 9 * DAY_MS],
    ],
    true,
  ],
  [
    'another jump after that',
    [
      ['set', 2 * DAY_MS],
      ['pass', HOUR_MS],
      ['set', 9 * DAY_MS],
    ],
    false,
  ],
  [
    'two jumps',
    [
      ['set', 2 * DAY_MS],
      ['pass', HOUR_MS / 2],
      ['set', 2 * DAY_MS],
      ['pass', HOUR_MS / 2],
    ],
    false,
  ],
  [
    'back again',
    [
      ['set', 2 * DAY_MS],
      ['set', -2 * DAY_MS],
    ],
    true,
  ],
] as unknown as [string, Event[], boolean][]) {
  t.test(what, async (t) => {
    const clock = new SleepyClock()
    const guard = new ClockGuard(clock)
    let refusal = guard.refusal(0)
    t.equal(refusal, '')
    for (const [kind, milliseconds] of events) {
      if (kind === 'set') clock.nowMs += milliseconds
      else clock[kind](milliseconds)
      refusal = guard.refusal(0)
    }
    t.match(refusal, isTrusted ? /^$/ : /jumped by/)
  })
}
