import fc from 'fast-check'
import t from 'tap'
import { scanSelector } from '../../../src/egress/selectors/scan-selector.ts'
import type { Selector } from '../../../src/egress/selectors/selector.ts'
import type { Grant, GrantSet } from '../../../src/egress/sinks/grants.ts'
import { type GateResult, type SinkMode, waitForAll } from '../../../src/egress/sinks/sink.ts'
import { SinkFeed } from '../../../src/egress/sinks/sink-feed.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { TestSink } from '../../support/test-sink.ts'

const GATE: SinkMode = { kind: 'gate', deadlineMs: 50 }
const [web, api] = ['web.example', 'api.example'].map(
  (name) => scanSelector(name, 'name') as Selector,
)

function setOf(last: readonly number[], untilMs = 60_000): GrantSet {
  return new Map(
    last.map((n) => {
      const address = `192.0.2.${n}`
      const grant: Grant = { family: 1, address, untilMs, names: ['web.example.'] }
      return [address, grant]
    }),
  )
}

function bench(mode: SinkMode, sink = new TestSink()) {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const faults: string[] = []
  const onFault = (fault: string): void => void faults.push(fault)
  const feed = new SinkFeed({ sink, mode, clock, timers, onFault })
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(ms)
    await new Promise((settled) => setImmediate(settled))
  }
  return { sink, feed, clock, timers, faults, pass }
}

t.test('the sink gets the set and the difference', async (t) => {
  const { sink, feed, pass } = bench({ kind: 'async' })
  t.equal(feed.set(web!, setOf([1, 2])), undefined, 'no reply waits')
  await pass(0)
  feed.set(web!, setOf([2, 3]))
  await pass(0)
  feed.set(web!, setOf([2, 3], 90_000))
  await pass(0)
  const seen = sink.updates.map(({ grants, added, removed, isResync }) => {
    const names = (list: readonly Grant[]) => list.map(({ address }) => address.slice(8)).join()
    return [[...grants.keys()].length, names(added), names(removed), isResync]
  })
  t.strictSame(seen, [
    [2, '1,2', '', true],
    [2, '3', '1', false],
  ])
  t.strictSame(sink.inForce.get(web!.key), ['192.0.2.2', '192.0.2.3'])
  feed.remove(web!)
  feed.remove(api!)
  await pass(0)
  t.equal(sink.updates.at(-1)?.isGone, true)
  t.equal(sink.inForce.size, 0)
  t.equal(feed.pending, 0)
})

t.test('a sink that needs details gets new ends too', async (t) => {
  const { sink, feed, pass } = bench({ kind: 'async' }, new TestSink(true))
  feed.set(web!, setOf([1]))
  await pass(0)
  feed.set(web!, setOf([1], 90_000))
  await pass(0)
  t.equal(sink.updates[1]?.changed[0]?.untilMs, 90_000)
})

t.test('changes during an update become one next update', async (t) => {
  const { sink, feed, pass } = bench({ kind: 'async' })
  sink.isHeld = true
  for (const n of [1, 2, 3, 4]) feed.set(web!, setOf([n]))
  feed.set(api!, setOf([9]))
  t.equal(sink.updates.length, 2, 'one of each selector')
  await sink.settle()
  await sink.settle()
  await pass(0)
  t.equal(sink.updates.length, 3)
  t.strictSame(sink.inForce.get(web!.key), ['192.0.2.4'])
})

t.test('a reply waits for the acknowledgement of its addresses, not longer', async (t) => {
  const { sink, feed, pass } = bench(GATE)
  sink.isHeld = true
  const results: GateResult[] = []
  const gate = (grants: GrantSet): boolean => {
    const wait = feed.set(web!, grants)
    void wait?.then((result) => results.push(result))
    return wait !== undefined
  }
  t.ok(gate(setOf([1])))
  t.ok(gate(setOf([1])), 'the same query again waits too')
  t.strictSame(results, [])
  await pass(20)
  await sink.settle()
  t.strictSame(results, ['acknowledged', 'acknowledged'])
  t.notOk(gate(setOf([1])), 'it is in force')
  t.notOk(gate(setOf([1], 90_000)), 'so is a longer validity')
  t.notOk(gate(setOf([])), 'a removal does not hold up replies')
  t.equal(feed.counters.gated, 2)
})

t.test('an address that no longer is wanted is never acknowledged', async (t) => {
  const { sink, feed, pass } = bench(GATE)
  sink.isHeld = true
  feed.set(web!, setOf([1]))
  const wait = feed.set(web!, setOf([1, 2]))
  feed.set(web!, setOf([3]))
  await sink.settle()
  await sink.settle()
  await pass(50)
  t.strictSame(sink.inForce.get(web!.key), ['192.0.2.3'])
  t.equal(await wait, 'timed out')
})

t.test('after the deadline the reply leaves, and is counted', async (t) => {
  const { sink, feed, pass } = bench(GATE)
  sink.isHeld = true
  const wait = feed.set(web!, setOf([1]))
  const other = waitForAll([wait, undefined, feed.set(api!, setOf([2]))])
  await pass(49)
  t.equal(feed.counters.timedOut, 0)
  await pass(1)
  t.equal(await wait, 'timed out')
  t.equal(await other, 'timed out')
  t.equal(feed.counters.timedOut, 2)
  t.equal(feed.counters.waitedMs, 100)
  await sink.settle()
  t.strictSame(sink.inForce.get(web!.key), ['192.0.2.1'], 'the update is applied all the same')
  t.equal(waitForAll([undefined]), undefined)
})

t.test('a failed update is reported, repeated, and does not undo what is in force', async (t) => {
  const { sink, feed, faults, pass } = bench(GATE)
  t.equal(await feed.set(web!, setOf([1])), 'acknowledged')
  sink.fault = 'set is full'
  t.equal(await feed.set(web!, setOf([1, 2])), 'failed')
  t.equal(feed.set(web!, setOf([1])), undefined, 'a reply with known addresses leaves')
  const wait = feed.set(web!, setOf([1, 3]))
  await pass(50)
  t.equal(await wait, 'timed out', 'while the next try is waited for')
  t.equal(sink.updates.length, 2)
  await pass(1000)
  await pass(2000)
  await pass(4000)
  t.equal(sink.updates.length, 5, 'each wait is twice the one before')
  sink.fault = ''
  await pass(60_000)
  t.equal(sink.updates.at(-1)?.isResync, true)
  t.strictSame(sink.inForce.get(web!.key), ['192.0.2.1', '192.0.2.3'])
  t.strictSame(faults, ['set is full', ''])
  t.equal(feed.counters.refused, 1)
})

t.test('an exception of a sink is a failure', async (t) => {
  const { sink, feed } = bench(GATE)
  sink.apply = async () => {
    throw new Error('broken')
  }
  t.equal(await feed.set(web!, setOf([1])), 'failed')
})

t.test('a resync gives the whole sets again, also during an update', async (t) => {
  const { sink, feed } = bench(GATE)
  await feed.set(web!, setOf([1]))
  sink.isHeld = true
  feed.resync()
  sink.inForce.clear()
  feed.resync()
  const wait = feed.set(web!, setOf([1]))
  t.ok(wait, 'nothing is known to be in force')
  await sink.settle()
  t.equal(sink.updates.length, 3)
  await sink.settle()
  t.equal(await wait, 'acknowledged')
  t.strictSame(sink.inForce.get(web!.key), ['192.0.2.1'])
})

t.test('a selector that returns at once is applied again, also without addresses', async (t) => {
  const { sink, feed, pass } = bench({ kind: 'async' })
  feed.set(web!, setOf([]))
  await pass(0)
  feed.remove(web!)
  feed.set(web!, setOf([]))
  await pass(0)
  t.strictSame([...sink.inForce], [[web!.key, []]])
  t.equal(feed.pending, 0)
})

t.test('one selector can be applied again', async (t) => {
  const { sink, feed, pass } = bench({ kind: 'async' })
  feed.set(web!, setOf([1]))
  feed.set(api!, setOf([2]))
  await pass(0)
  sink.inForce.clear()
  feed.resyncSelector(web!)
  await pass(0)
  feed.remove(api!)
  await pass(0)
  feed.resyncSelector(api!)
  await pass(0)
  t.strictSame([...sink.inForce], [[web!.key, ['192.0.2.1']]])
})

t.test('close releases the replies and starts nothing', async (t) => {
  const { sink, feed, pass, timers } = bench(GATE)
  sink.isHeld = true
  const wait = feed.set(web!, setOf([1]))
  feed.close()
  t.equal(await wait, 'timed out')
  t.equal(feed.set(web!, setOf([2])), undefined)
  await sink.settle()
  await pass(1000)
  t.equal(sink.updates.length, 1)
  t.equal(timers.count, 0)
})

t.test('whatever happens, no reply is acknowledged before its addresses are in force', async () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('set'), last: fc.uniqueArray(fc.nat(5)) }),
    },
    fc.record({
      kind: fc.constantFrom('settle', 'fail', 'heal', 'pass', 'resync'),
      last: fc.constant([]),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const { sink, feed, pass } = bench(GATE)
      sink.isHeld = true
      let wanted: readonly number[] = []
      let isSound = true
      for (const { kind, last } of steps) {
        if (kind === 'fail') sink.fault = 'broken'
        else if (kind === 'heal') sink.fault = ''
        else if (kind === 'settle') await sink.settle()
        else if (kind === 'pass') await pass(1000)
        else if (kind === 'resync') feed.resync()
        else {
          wanted = last
          const mine = last.map((n) => `192.0.2.${n}`)
          const version = sink.updates.length
          void feed.set(web!, setOf(last))?.then((result) => {
            if (result !== 'acknowledged') return
            const applied = sink.updates.slice(Math.max(0, version - 1))
            const isApplied = applied.some(({ grants }) => mine.every((item) => grants.has(item)))
            if (!isApplied) isSound = false
          })
        }
      }
      sink.fault = ''
      sink.isHeld = false
      for (let i = 0; i < 10; i++) {
        await sink.settle()
        await pass(60_000)
      }
      const found = (sink.inForce.get(web!.key) ?? []).join()
      return (
        isSound &&
        feed.pending === 0 &&
        found ===
          wanted
            .map((n) => `192.0.2.${n}`)
            .sort()
            .join()
      )
    }),
    { numRuns: 150 },
  )
})
