import t, { type Test } from 'tap'
import { runRow } from '../support/fail-over-check.ts'
import { ROWS } from '../support/fail-over-rows.ts'
import { FailOverSites, type Generation } from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'

// Long: it waits until sites are down and up again.

/** Beyond the bounds: three networks and other tests share the processors, and a site needs seconds to start then. */
const BUSY_S = 15
const NAME = 'app'

async function runRows(t: Test, generations: readonly Generation[]): Promise<void> {
  const of = await FailOverSites.start(t, { generations, names: [NAME], ttlSeconds: 5 })
  for (const row of ROWS) await runRow(t, of, row, { name: NAME, busyS: BUSY_S })
}

const tools = { ...needsRoot(), ...needs('dig', 'nft') }

t.test('the partition table holds between real servers', tools, async (t) => {
  // Side by side: most of the time is waiting.
  await Promise.all([
    runRows(t, ['v2', 'v2']),
    runRows(t, ['v2', 'v2', 'v2']),
    runRows(t, ['v2', 'v1']),
  ])
})
