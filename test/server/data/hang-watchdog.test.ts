import t from 'tap'
import { HangWatchdog } from '../../../src/server/data/hang-watchdog.ts'

const STILL = Array.from({ length: 10 }, () => 5)
const LONG_STILL = Array.from({ length: 100 }, () => 5)

/** What a thread uses of each second in which it does nothing else; NaN: the system does not say. */
const [LOOP, HALF, TENTH, NOTHING, UNKNOWN] = [1000, 500, 100, 0, Number.NaN]

/** `given`: turns seen by each check. `want`: the checks that say that it hangs. */
const CASES = [
  { name: 'a thread that takes turns', given: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], want: [] },
  { name: 'one that starts slowly', given: [...Array.from({ length: 30 }, () => 0), 1], want: [] },
  { name: 'one in an endless loop', given: [4, 5, ...STILL], want: [11] },
  { name: 'one that moves at the last moment', given: [5, ...STILL.slice(1), 6], want: [] },
  { name: 'once it was said, it is not said again', given: [5, ...LONG_STILL], want: [10] },
  { name: 'one that hangs later on', given: [5, ...STILL.slice(1), 6, 5, ...STILL], want: [21] },
  { name: 'a counter that wraps around', given: [2 ** 31 - 1, -(2 ** 31), -1, 0, 1], want: [] },
  { name: 'a loop beside others', usesMs: HALF, given: [5, ...STILL, 5, 5], want: [11] },
  {
    name: 'a loop of a tenth of a processor',
    usesMs: TENTH,
    given: [5, ...LONG_STILL],
    want: [51],
  },
  {
    name: 'a sound one without a processor',
    usesMs: TENTH,
    given: [5, ...STILL, ...STILL, 6],
    want: [],
  },
  { name: 'one that waits for ever', usesMs: NOTHING, given: [5, ...LONG_STILL], want: [60] },
  {
    name: 'one that waits long',
    usesMs: NOTHING,
    given: [5, ...LONG_STILL.slice(0, 59), 6],
    want: [],
  },
  { name: 'a system without such files', usesMs: UNKNOWN, given: [5, ...STILL], want: [10] },
]

for (const { name, usesMs = LOOP, given, want } of CASES) {
  t.test(name, async (t) => {
    const pulse = new HangWatchdog()
    const said = given.flatMap((turns, second) => {
      return pulse.check(turns, () => 12_345 + second * usesMs) === '' ? [] : [second]
    })
    t.strictSame(said, want)
  })
}

t.test('the watchdog logs the duration, and the processor time of the thread', async (t) => {
  for (const [usesMs, want] of [
    [LOOP, 'no turn in 10 s, 9 s of processor time'],
    [NOTHING, 'no turn in 60 s, 0 s of processor time'],
    [UNKNOWN, 'no turn in 10 s'],
  ] as const) {
    const pulse = new HangWatchdog()
    const said = [5, ...LONG_STILL].map((turns, second) =>
      pulse.check(turns, () => second * usesMs),
    )
    t.strictSame(
      said.filter((text) => text !== ''),
      [want],
    )
  }
})
