import t from 'tap'
import { Pulse } from '../../../src/server/data/pulse.ts'

const STILL = Array.from({ length: 10 }, () => 5)

const CASES = [
  { name: 'a thread that takes turns', given: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], want: [] },
  { name: 'one that starts slowly', given: [...Array.from({ length: 30 }, () => 0), 1], want: [] },
  { name: 'one that stands still', given: [4, 5, ...STILL], want: [11] },
  { name: 'one that moves at the last moment', given: [5, ...STILL.slice(1), 6], want: [] },
  { name: 'once it was said, it is not said again', given: [5, ...STILL, 5, 5], want: [10] },
  {
    name: 'one that hangs later on',
    given: [5, ...STILL.slice(1), 6, ...STILL, 5],
    want: [21],
  },
  { name: 'a counter that wraps around', given: [2 ** 31 - 1, -(2 ** 31), -1, 0, 1], want: [] },
]

for (const { name, given, want } of CASES) {
  t.test(name, async (t) => {
    const pulse = new Pulse()
    const said = given.flatMap((turns, look) => (pulse.hangs(turns) ? [look] : []))
    t.strictSame(said, want)
  })
}
