import t from 'tap'
import { added, type Given, zone } from '../record-zone-stage.ts'

const NAMING: Given = {
  name: 'a',
  endpoints: ['x.k.example.com A 192.0.2.1 geo=GEO-NA id=na ttl=60'],
  annotations: { 'sextant.io/failover': 'GEO-NA: eu, gone' },
}
const THEIRS: Given = {
  ...{ name: 'b', site: 'paris' },
  endpoints: ['x.k.example.com A 192.0.2.2 id=eu ttl=30'],
}
const TTL = /^x\.k\.example\.com\. A: TTL 60/
const GONE =
  'x.k.example.com.: failover names "gone", which no endpoint has; correct the annotation (n/a)'

t.test('a missing endpoint is reported once all endpoints are known', async (t) => {
  let isComplete = false
  const asked = new Set<string>()
  const { records, conflicts } = zone({
    site: 'berlin',
    isComplete: (key) => {
      asked.add(key)
      return isComplete
    },
  })
  const counts = () => [conflicts.length, records.conflicts.count, records.conflicts.all().length]
  records.apply(added(NAMING))
  records.conflicts.recheck()
  t.strictSame(counts(), [0, 0, 0], 'a peer may have them')
  records.apply(added(THEIRS))
  t.match(conflicts, [TTL], 'another conflict does not wait')
  t.strictSame(counts(), [1, 1, 1])
  isComplete = true
  records.conflicts.recheck()
  t.match(conflicts.slice(1), [GONE])
  records.conflicts.recheck()
  t.strictSame(counts(), [2, 1, 2], 'once')
  t.strictSame([...asked], ['n/a'])
})

t.test('what was withheld is forgotten if it is over', async (t) => {
  const { records, conflicts } = zone({ isComplete: () => false })
  const [change] = added(NAMING)
  records.apply([change!])
  const [settled] = added({ ...NAMING, annotations: {} })
  records.apply([{ before: change!.after, after: settled!.after }])
  const complete = zone()
  complete.records.apply(added(NAMING))
  t.equal(complete.conflicts.length, 1, 'without peers it is reported at once')
  records.conflicts.recheck()
  t.strictSame(conflicts, [])
})
