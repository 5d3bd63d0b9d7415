import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { ObjectSink } from '../../../src/kube/object-sink.ts'
import { ClusterDrains } from '../../../src/sources/kubernetes/cluster-drains.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const PLACE = { namespace: 'team', name: 'drains' }

function stage() {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const feed = new ClusterDrains({ place: PLACE, clock, timers, log })
  const sink = new ObjectSink(feed)
  const list = (...objects: ApiObject[]): void => {
    sink.beginList()
    sink.put(objects)
    sink.endList()
  }
  const drained = (): string => feed.drains.map(({ selector }) => selector.text).join('; ')
  return { clock, timers, lines, feed, sink, list, drained }
}

const map = (drains?: string): ApiObject => {
  const metadata = { ...PLACE, resourceVersion: '1' }
  return drains === undefined ? { metadata } : { metadata, data: { drains } }
}

t.test('the lines of a ConfigMap are drains', async (t) => {
  const { feed, sink, list, drained } = stage()
  const changes: string[] = []
  feed.subscribe(({ begun, ended }) => changes.push(`${begun.length} ${ended.length}`))
  list()
  t.equal(drained(), '', 'it is missing')
  list(map('# racks\nid:boston-2 reason=racks\naddress:192.0.2.0/24\n'))
  t.equal(drained(), 'id:boston-2; address:192.0.2.0/24')
  sink.apply([{ isDeleted: false, object: map('id:boston-2 reason=racks') }])
  t.equal(drained(), 'id:boston-2')
  sink.apply([{ isDeleted: false, object: map() }])
  t.equal(drained(), '', 'it has no such key')
  sink.apply([{ isDeleted: false, object: map('site:x') }])
  sink.apply([{ isDeleted: true, object: map('site:x') }])
  t.equal(drained(), '')
  list(map('site:y'))
  list()
  t.equal(drained(), '', 'it was deleted while the watch was down')
  t.strictSame(changes, ['2 0', '0 1', '0 1', '1 0', '0 1', '1 0', '0 1'])
})

t.test(
  'an invalid text leaves the last valid state; at the start, the valid lines count',
  async (t) => {
    const first = stage()
    first.list(map('nonsense\nid:a'))
    t.equal(first.drained(), 'id:a')
    const wrong = { place: 'ConfigMap team/drains: drains:1', object: 'ConfigMap team/drains' }
    t.match(first.feed.problems, [wrong])
    t.match(first.lines.join(), 'these lines are not used')
    const { feed, sink, list, drained, lines } = stage()
    list(map('id:a'))
    sink.apply([{ isDeleted: false, object: map('id:b\nnonsense') }])
    t.equal(drained(), 'id:a')
    t.match(feed.problems, [{ place: /drains:2$/ }])
    t.match(lines.join(), 'the last valid state is kept')
    sink.apply([{ isDeleted: false, object: map('id:b') }])
    t.equal(drained(), 'id:b')
    t.strictSame(feed.problems, [])
    t.match(lines.join(), 'the drains of ConfigMap team/drains are valid again')
  },
)

t.test('a drain ends at its time', async (t) => {
  const { clock, timers, list, drained } = stage()
  const until = new Date(clock.now() + 60_000).toISOString()
  list(map(`id:a until=${until}`))
  t.equal(drained(), 'id:a')
  clock.pass(61_000)
  await timers.advance(1000)
  t.equal(drained(), '')
})
