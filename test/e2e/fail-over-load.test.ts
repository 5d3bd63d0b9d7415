import t, { type Test } from 'tap'
import { LOADED, LOADED_ROWS, runLoadedRow } from '../support/fail-over-load.ts'
import type { Row } from '../support/fail-over-rows.ts'
import { FailOverSites, type Generation } from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'

// Long: it waits until sites are down and up again.

/** Networks of the same sites, side by side: most of the time is waiting. */
const NETWORKS = 2

async function runRows(t: Test, generations: readonly Generation[], rows: readonly Row[]) {
  const of = await FailOverSites.start(t, { generations, ...LOADED })
  for (const row of rows) await runLoadedRow(t, of, row)
}

t.test(
  'in any fault, no query to a live server fails, and a dead address is gone within the bound',
  { ...needsRoot(), ...needs('dig', 'nft', 'unbound') },
  async (t) => {
    const sites: readonly (readonly Generation[])[] = [
      ['v2', 'v2'],
      ['v2', 'v2', 'v2'],
      ['v2', 'v1'],
    ]
    await Promise.all(
      sites.flatMap((generations) =>
        Array.from({ length: NETWORKS }, (_, network) => {
          const rows = LOADED_ROWS.filter((_, i) => i % NETWORKS === network)
          return runRows(t, generations, rows)
        }),
      ),
    )
  },
)
