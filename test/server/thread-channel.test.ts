import t from 'tap'
import type { Broadcast } from '../../src/base/broadcast.ts'
import { ControlChannel, DataChannel, type ThreadChannel } from '../../src/server/thread-channel.ts'
import { NO_HOOKS } from '../support/setup.ts'
import { transaction } from '../support/transaction.ts'

/** What the setups of one instance wire, the same in every thread. */
function setUp(channel: ThreadChannel) {
  const followed: string[] = []
  const received: string[] = []
  const first: Broadcast<string> = channel.broadcast((value) => followed.push(`first ${value}`))
  const counters = channel.counters()
  counters.length = 2
  const up = channel.toControl((text) => received.push(`up ${text}`))
  const second: Broadcast<number> = channel.broadcast((value) => followed.push(`second ${value}`))
  const down = channel.toControl((text) => received.push(`down ${text}`))
  const pieces = channel.octetsToControl((octets) => received.push(`pieces ${octets.join()}`))
  return { followed, received, first, second, counters, up, down, pieces }
}

/** A control thread and a data thread, with what goes between them. */
function pair() {
  const control = new ControlChannel()
  const here = setUp(control)
  const events: string[] = []
  const data = new DataChannel({
    catchUp: () => events.push('catch up'),
    send: (toControl, text) => control.receive(toControl, Buffer.from(text)),
    octetsTo: (toControl) => {
      const octets = Buffer.alloc(16)
      const end = (end: number) => control.receive(toControl, octets.subarray(0, end))
      return { octets, begin: () => 0, end }
    },
    announce: (index, labels, counters) => control.includeCounters(index, labels, counters),
  })
  const there = setUp(data)
  control.onPublish = (index, value) => data.follow(index, value)
  return { control, data, here, there, events }
}

t.test('values of the control thread are followed in data threads, and only there', async (t) => {
  const { here, there } = pair()
  here.second.publish(1)
  here.first.publish('a')
  here.second.publish(2)
  t.strictSame(there.followed, ['second 1', 'first a', 'second 2'])
  t.strictSame(here.followed, [])
  there.first.publish('never')
  t.strictSame([here.followed, there.followed.length], [[], 3])
})

t.test('a thread that comes late gets the last values', async (t) => {
  const { control, here } = pair()
  t.strictSame(control.values(), [])
  here.second.publish(1)
  here.second.publish(2)
  t.strictSame(control.values(), [[1, 2]])
  here.first.publish('a')
  t.strictSame(control.values(), [
    [0, 'a'],
    [1, 2],
  ])
})

t.test('a value is set before it is sent to other threads', async (t) => {
  const control = new ControlChannel()
  const { first } = setUp(control)
  let seen: unknown
  control.onPublish = () => {
    seen = control.values()
  }
  first.publish('a')
  t.strictSame(seen, [[0, 'a']])
})

t.test('catching up is for data threads', async (t) => {
  const { here, there, events } = pair()
  here.first.catchUp()
  t.strictSame(events, [])
  there.first.catchUp()
  t.strictSame(events, ['catch up'])
})

t.test('texts of any thread come to the control thread', async (t) => {
  const { here, there } = pair()
  here.up('1')
  there.up('2')
  there.down('3')
  here.down('4')
  t.strictSame(here.received, ['up 1', 'up 2', 'down 3', 'down 4'])
  t.strictSame(there.received, [])
})

t.test(
  'octets of a data thread reach the control thread, which has no channel to itself',
  async (t) => {
    const { here, there } = pair()
    t.equal(here.pieces, undefined)
    const { pieces } = there
    const at = pieces!.begin(5)
    pieces!.octets.set([1, 2, 3, 4, 5], at)
    pieces!.end(at + 5)
    there.down('3')
    t.strictSame(here.received, ['pieces 1,2,3,4,5', 'down 3'])
    t.strictSame(there.received, [])
  },
)

t.test('values of channels that this thread lacks are ignored', async (t) => {
  const { control, data } = pair()
  control.receive(9, Buffer.from('text'))
  control.includeCounters(9, { server: '', zone: '', view: '' }, new Float64Array(2))
  data.follow(9, 'value')
  t.strictSame(control.values(), [])
})

t.test('the control thread sums up what all threads count', async (t) => {
  const { here, there } = pair()
  const tx = transaction({ name: 'a.example.', zone: 'example.' })
  here.counters.of(tx)[0]! += 1
  there.counters.of(tx)[0]! += 10
  there.counters.of(tx)[1]! += 5
  const sums = [0, 0]
  here.counters.forEach((counts, { zone }) => {
    t.equal(zone, 'example.')
    for (const i of [0, 1]) sums[i]! += counts.take(i)
  })
  t.strictSame(sums, [11, 5])
  let own = 0
  there.counters.forEach(() => {
    own++
  })
  t.equal(own, 1, 'a data thread knows its own')
})

t.test(
  'threads that have the value get the change, and those that come later the value',
  async (t) => {
    const { control, here, there } = pair()
    const joined = new DataChannel(NO_HOOKS)
    const beside = setUp(joined)
    control.join(joined)
    here.first.publish('a')
    here.first.publish('a and b', 'b')
    t.strictSame(there.followed, ['first a', 'first b'])
    t.strictSame(beside.followed, ['first a', 'first b'])
    t.strictSame(control.values(), [[0, 'a and b']])
  },
)
