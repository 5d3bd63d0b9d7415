import t from 'tap'
import { requeueAfterMs } from '../../../src/operator/reconcile/requeue.ts'

t.test('a record is looked at again when there may be news', (t) => {
  const bounds = { minMs: 5000, maxMs: 900_000 }
  const table = [
    { name: 'now and then, where nothing is to be expected', given: undefined, want: 900_000 },
    { name: 'when the word of a silent peer has run out', given: 30_000, want: 30_001 },
    { name: 'not too soon', given: 3, want: 5000 },
    { name: 'nor because of something that is over', given: -3, want: 5000 },
    { name: 'nor too late', given: 86_400_000, want: 900_000 },
  ]
  for (const { name, given, want } of table) t.equal(requeueAfterMs(given, bounds), want, name)
  t.end()
})
