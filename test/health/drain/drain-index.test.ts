import t from 'tap'
import { DrainIndex } from '../../../src/health/drain/drain-index.ts'
import { DrainSelector, scanDrainSelector } from '../../../src/health/drain/selector.ts'
import { recordOf, TestSource } from '../stage.ts'

t.test('a count of selected endpoints can pause at each record', async (t) => {
  const source = new TestSource()
  source.put(...['a', 'b', 'c'].map((key) => recordOf(key, ['192.0.2.1=10', '192.0.2.2=10'])))
  const index = new DrainIndex()
  index.add({
    path: '/drains',
    source: 'records',
    records: source,
    sitesOf: () => [],
    unfiled: () => [],
  })
  const selector = scanDrainSelector(['address:192.0.2.1'])
  t.ok(selector instanceof DrainSelector)
  const work = index.count('/drains', selector as DrainSelector)
  let pauses = 0
  for (;;) {
    const step = work.next()
    if (step.done === true) {
      t.strictSame(step.value, { endpoints: 3, records: 3 })
      break
    }
    pauses++
  }
  t.equal(pauses, 3)
})
