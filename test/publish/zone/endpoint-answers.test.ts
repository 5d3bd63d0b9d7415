import t from 'tap'
import { EndpointAnswers } from '../../../src/publish/zone/endpoint-answers.ts'
import { seriesKey } from '../../../src/publish/zone/endpoint-sink.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const labels = (endpoint: string, owner = 'x.') => {
  return { source: 'here', zone: 'z.', owner, type: 'A', endpoint, tier: '' }
}

t.test('answers of the last minutes and hours', async (t) => {
  const history = new EndpointAnswers()
  const a = labels('a')
  const key = seriesKey(a)
  let growth = 0
  history.onCollect(() => {
    if (growth > 0) history.count(key, a, growth)
    growth = 0
  })
  history.add(key, a)
  history.setShare(key, a, { share: 0.5, weight: 7 })
  const read = (ms: number) => history.read('x.', 'A', ms).map(({ answers }) => answers)
  const minute = (at: number, answers: number): void => {
    growth = answers
    history.collect(at * MINUTE_MS)
  }
  minute(1000, 3)
  minute(1000, 2)
  minute(1005, 10)
  t.strictSame(history.read('x.', 'A', 10 * MINUTE_MS), [
    { labels: a, share: 0.5, weight: 7, answers: 15 },
  ])
  minute(1010, 0)
  t.strictSame(read(10 * MINUTE_MS), [10])
  t.strictSame([read(HOUR_MS), read(24 * HOUR_MS)], [[15], [15]])
  minute(1062, 0)
  t.strictSame([read(HOUR_MS), read(24 * HOUR_MS)], [[10], [15]])
  minute(1000 + 25 * 60, 1)
  t.strictSame([read(10 * MINUTE_MS), read(HOUR_MS), read(24 * HOUR_MS)], [[1], [1], [1]])
  t.strictSame(history.read('x.', 'AAAA', HOUR_MS), [])
})

t.test('both instances of a reload have one history', async (t) => {
  const history = new EndpointAnswers()
  const a = labels('a')
  const key = seriesKey(a)
  history.add(key, a)
  history.count(key, a, 4)
  history.add(key, a)
  history.remove(key, a)
  t.equal(history.read('x.', 'A', HOUR_MS)[0]!.answers, 4)
  history.remove(key, a)
  t.strictSame(history.read('x.', 'A', HOUR_MS), [])
})
