import t from 'tap'
import { printTime, scanTime } from '../../src/base/rfc3339.ts'

t.test('times, as they are printed again', (t) => {
  for (const [text, printed] of [
    ['2026-11-24T18:00:00Z', '2026-11-24T18:00:00Z'],
    ['2026-11-24T19:00+01:00', '2026-11-24T18:00:00Z'],
    ['2028-02-29T23:59:59.999Z', '2028-02-29T23:59:59Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
    ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00Z'],
  ] as const) {
    t.equal(printTime(scanTime(text)!), printed, text)
  }
  t.end()
})

t.test('texts that are not times', (t) => {
  for (const text of [
    '',
    '2026-11-24',
    '2026-11-24T18:00:00',
    '2026-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-13-10T00:00:00Z',
    '2026-11-00T00:00:00Z',
    '2026-11-24T24:00:00Z',
    '2026-11-24T18:00:60Z',
    '2026-11-24T18:00:00+99:00',
    // In UTC, these are in the years 10000 and -1, which cannot be printed.
    '9999-12-31T23:59:59-00:01',
    '0000-01-01T00:00:00+00:01',
  ]) {
    t.equal(scanTime(text), undefined, text)
  }
  t.end()
})
