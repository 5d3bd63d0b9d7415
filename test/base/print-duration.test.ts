import fc from 'fast-check'
import t from 'tap'
import { printDuration, scanDuration } from '../../src/base/duration.ts'

t.test('durations as Go prints them', async (t) => {
  const table: [number, string][] = [
    [0, '0s'],
    [2000, '2s'],
    [100_000, '1m40s'],
    [1000.000_001, '1.000000001s'],
    [90_000, '1m30s'],
    [3_600_000, '1h0m0s'],
    [86_400_000, '24h0m0s'],
    [1500, '1.5s'],
    [250, '250ms'],
    [100, '100ms'],
    [1.5, '1.5ms'],
    [0.5, '500µs'],
    [1e-6, '1ns'],
    [-2000, '-2s'],
  ]
  for (const [given, want] of table) t.equal(printDuration(given), want)
})

t.test('a printed duration scans back to its value', async () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e10, max: 1e10 }), (milliseconds) => {
      return scanDuration(printDuration(milliseconds)) === milliseconds
    }),
    { seed: 8, numRuns: 500 },
  )
})
