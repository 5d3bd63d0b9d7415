import t from 'tap'
import { timeouts } from '../../../src/plugins/timeouts/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('sets what is given and leaves the rest', async (t) => {
  const given = 'timeouts {\n read 10s\n idle 60\n maxtcpqueries 100\n}'
  const { block } = new SetUp(timeouts, given)
  t.strictSame(block.timeouts, {
    readMs: 10_000,
    writeMs: 5000,
    idleMs: 60_000,
    queriesMax: 100,
  })
  const again = new SetUp(timeouts, 'timeouts {\n write 24h\n maxtcpqueries -1\n}')
  t.equal(again.block.timeouts.writeMs, 86_400_000)
  t.equal(again.block.timeouts.queriesMax, -1)
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'timeouts', want: 'timeouts block with no timeouts specified' },
    { given: 'timeouts {\n}', want: 'timeouts block with no timeouts specified' },
    { given: 'timeouts 1s', want: 'Wrong argument count' },
    { given: 'timeouts {\n read\n}', want: 'Wrong argument count' },
    { given: 'timeouts {\n read 1s 2s\n}', want: 'Wrong argument count' },
    { given: 'timeouts {\n dance 1s\n}', want: "unknown option: 'dance'" },
    {
      given: 'timeouts {\n read 999ms\n}',
      want: "timeout provided '999ms' needs to be between 1 second and 24 hours",
    },
    {
      given: 'timeouts {\n idle 25h\n}',
      want: "timeout provided '25h0m0s' needs to be between 1 second and 24 hours",
    },
    { given: 'timeouts {\n read soon\n}', want: "failed to parse duration 'soon'" },
    { given: 'timeouts {\n maxtcpqueries 0\n}', want: "maxtcpqueries '0' must be" },
    { given: 'timeouts {\n maxtcpqueries -2\n}', want: "maxtcpqueries '-2' must be" },
  ]
  for (const { given, want } of table) t.match(setupError(timeouts, given), want, given)
})
