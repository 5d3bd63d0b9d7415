import { test } from 'tap'
import { scanDuration } from '../../src/base/duration.ts'

const cases: { name: string; given: string; want: number | undefined }[] = [
  { name: 'zero needs no unit', given: '0', want: 0 },
  { name: 'zero may carry a sign', given: '-0', want: 0 },
  { name: 'seconds', given: '30s', want: 30_000 },
  { name: 'hours and minutes add up', given: '1h30m', want: 5_400_000 },
  { name: 'units may repeat and come in any order', given: '1s1h1s', want: 3_602_000 },
  { name: 'fractions', given: '1.5m', want: 90_000 },
  { name: 'a fraction without digits before the point', given: '.5s', want: 500 },
  { name: 'a fraction without digits after the point', given: '5.s', want: 5000 },
  { name: 'milliseconds are not minutes', given: '250ms', want: 250 },
  { name: 'microseconds', given: '500us', want: 0.5 },
  { name: 'microseconds with the micro sign', given: '500\u00b5s', want: 0.5 },
  { name: 'nanoseconds', given: '1000000ns', want: 1 },
  { name: 'a negative duration', given: '-2s', want: -2000 },
  { name: 'a plus sign', given: '+2s', want: 2000 },
  { name: 'a bare number is no duration', given: '30', want: undefined },
  { name: 'empty text', given: '', want: undefined },
  { name: 'only a sign', given: '-', want: undefined },
  { name: 'only a unit', given: 's', want: undefined },
  { name: 'only a point', given: '.s', want: undefined },
  { name: 'an unknown unit', given: '1d', want: undefined },
  { name: 'a trailing number', given: '1h30', want: undefined },
  { name: 'inner space', given: '1h 30m', want: undefined },
  { name: 'two signs', given: '--1s', want: undefined },
  { name: 'longer than Go can hold', given: '2562048h', want: undefined },
  { name: 'absurdly long text', given: `${'1'.repeat(100)}s`, want: undefined },
]

for (const { name, given, want } of cases) {
  test(`duration: ${name}`, async (t) => {
    t.equal(scanDuration(given), want)
  })
}
