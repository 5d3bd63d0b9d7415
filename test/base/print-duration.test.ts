import fc from 'fast-check'
import t from 'tap'
import { printDuration, scanDuration, trimFraction } from '../../src/base/duration.ts'

t.test('durations as Go prints them', async (t) => {
  const table: [number, string][] = [
    [0, '0s'],
    [2000, '2s'],
    [90_000, '1m30s'],
    [3_600_000, '1h0m0s'],
    [86_400_000, '24h0m0s'],
    [1500, '1.5s'],
    [250, '250ms'],
    [1.5, '1.5ms'],
    [0.5, '500µs'],
    [1e-6, '1ns'],
    [-2000, '-2s'],
  ]
  for (const [given, want] of table) t.equal(printDuration(given), want)
})

t.test('what is printed is scanned back', async () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e10, max: 1e10 }), (milliseconds) => {
      return scanDuration(printDuration(milliseconds)) === milliseconds
    }),
    { seed: 8, numRuns: 500 },
  )
})

t.test('fractions lose their zeros, integers keep them', async (t) => {
  t.equal(trimFraction(0.5, 9), '0.5')
  t.equal(trimFraction(100, 0), '100')
  t.equal(trimFraction(1e-9, 9), '0.000000001')
  t.equal(trimFraction(3, 9), '3')
})
