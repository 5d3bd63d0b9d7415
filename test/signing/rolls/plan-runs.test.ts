import fc from 'fast-check'
import t from 'tap'
import { runs } from '../../support/runs.ts'
import { rollsAreSafe } from './roll-acts.ts'

// Long: faults of rolls that need a rare order of events appear only in thousands of runs.
t.test('every combination of cached sets validates, in many runs', async () => {
  fc.assert(rollsAreSafe, { numRuns: runs(4000) })
})
