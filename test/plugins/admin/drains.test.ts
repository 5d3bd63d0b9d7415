import t from 'tap'
import { DrainIndex } from '../../../src/health/drain/drain-index.ts'
import { scanDrains } from '../../../src/health/drain/drain-text.ts'
import { Drains } from '../../../src/plugins/admin/drains.ts'
import { TestSource } from '../../health/stage.ts'
import { FakeClock } from '../../support/setup.ts'

t.test('drains by annotations are listed once, and up to a bound', (t) => {
  const index = new DrainIndex()
  const drainOf = (i: number) => scanDrains(`record:shop/r${i} by=annotation`, '').drains[0]!.drain
  const all = Array.from({ length: 1500 }, (_, i) => drainOf(i))
  const scope = { path: '', source: 'records', records: new TestSource(), sitesOf: () => [] }
  index.add({ ...scope, unfiled: () => all })
  // Two blocks have the same records.
  index.add({ ...scope, unfiled: () => [...all.slice(0, 10), drainOf(11)] })
  const { drains, drainsOmitted } = new Drains(() => index, new FakeClock()).list()
  t.equal(drains.length, 1000)
  t.equal(drainsOmitted, 500)
  t.match(drains[0], { selector: 'record:shop/r0', actor: 'annotation', file: '' })
  t.end()
})
