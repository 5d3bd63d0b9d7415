import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { scanSelector } from '../../../src/egress/selectors/scan-selector.ts'
import type { Selector } from '../../../src/egress/selectors/selector.ts'
import { SinkFeed, type SinkUpdate } from '../../../src/egress/sinks/sink-feed.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const [web, api] = ['web.example', 'api.example'].map(
  (name) => scanSelector(name, 'name') as Selector,
)

function setOf(last: readonly number[]): readonly string[] {
  return last.map((n) => `192.0.2.${n}`).sort()
}

/** A sink in memory that the test makes slow, or lets fail. */
class TestSink {
  /** Addresses in force, by selector key. */
  readonly inForce = new Map<string, readonly string[]>()
  readonly updates: SinkUpdate[] = []
  /** True: each update waits for `settle`. */
  isHeld = false
  /** Why updates fail; '' = they succeed. */
  fault = ''
  readonly #held: (() => void)[] = []

  async apply(update: SinkUpdate): Promise<string> {
    this.updates.push(update)
    if (this.isHeld) await new Promise<void>((resolve) => this.#held.push(resolve))
    if (this.fault !== '') return this.fault
    const { key } = update.selector
    if (update.isGone) this.inForce.delete(key)
    else this.inForce.set(key, update.addresses)
    return ''
  }

  /** Ends the updates that are held. */
  async settle(): Promise<void> {
    for (const end of this.#held.splice(0)) end()
    await new Promise((settled) => setImmediate(settled))
  }
}

function bench() {
  const [sink, timers] = [new TestSink(), new FakeTimers()]
  const faults: string[] = []
  const lines: string[] = []
  const onFault = (fault: string): void => void faults.push(fault)
  const feed = new SinkFeed({
    apply: (update) => sink.apply(update),
    onFault,
    clock: new FakeClock(),
    timers,
    random: new Random(1),
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => true,
    ),
  })
  const pass = async (ms: number): Promise<void> => {
    await timers.advance(ms)
    await new Promise((settled) => setImmediate(settled))
  }
  return { sink, feed, timers, faults, lines, pass }
}

t.test('the sink gets each set once', async (t) => {
  const { sink, feed, pass } = bench()
  for (const last of [
    [1, 2],
    [2, 3],
    [2, 3],
  ]) {
    feed.set(web!, setOf(last))
    await pass(0)
  }
  t.strictSame(
    sink.updates.map(({ addresses }) => addresses),
    [setOf([1, 2]), setOf([2, 3])],
  )
  feed.remove(web!)
  feed.remove(api!)
  await pass(0)
  t.equal(sink.updates.at(-1)?.isGone, true)
  t.equal(sink.inForce.size, 0)
  t.equal(feed.pending, 0)
})

t.test('changes during an update become one next update', async (t) => {
  const { sink, feed, pass } = bench()
  sink.isHeld = true
  for (const n of [1, 2, 3, 4]) feed.set(web!, setOf([n]))
  feed.set(api!, setOf([9]))
  t.equal(sink.updates.length, 2, 'one of each selector')
  await sink.settle()
  await sink.settle()
  await pass(0)
  t.equal(sink.updates.length, 3)
  t.strictSame(sink.inForce.get(web!.key), setOf([4]))
})

t.test('a failed update is reported, repeated, and does not undo what is in force', async (t) => {
  const { sink, feed, faults, lines, pass } = bench()
  feed.set(web!, setOf([1]))
  await pass(0)
  sink.fault = 'set is full'
  feed.set(web!, setOf([1, 2]))
  await pass(0)
  feed.set(web!, setOf([1, 3]))
  await pass(50)
  t.equal(sink.updates.length, 2, 'while the next try is waited for')
  t.equal(feed.pending, 1)
  await pass(1000)
  await pass(2000)
  await pass(4000)
  t.equal(sink.updates.length, 5, 'each wait is twice the one before')
  t.strictSame(sink.inForce.get(web!.key), setOf([1]))
  sink.fault = ''
  await pass(60_000)
  t.strictSame(sink.inForce.get(web!.key), setOf([1, 3]))
  t.strictSame(faults, ['set is full', ''])
  t.strictSame(lines, [], 'the owner of the feed logs them')
})

t.test('an exception of a sink is a failure', async (t) => {
  const { sink, feed, faults, pass } = bench()
  sink.apply = async () => {
    throw new Error('broken')
  }
  feed.set(web!, setOf([1]))
  await pass(0)
  t.strictSame(faults, ['Error: broken'])
})

t.test('a resync gives the whole set again, also during an update', async (t) => {
  const { sink, feed } = bench()
  feed.set(web!, setOf([1]))
  await sink.settle()
  sink.isHeld = true
  feed.resync(web!)
  sink.inForce.clear()
  feed.resync(web!)
  feed.set(web!, setOf([1]))
  await sink.settle()
  t.equal(sink.updates.length, 3)
  t.equal(feed.pending, 1)
  await sink.settle()
  t.equal(feed.pending, 0)
  t.strictSame(sink.inForce.get(web!.key), setOf([1]))
})

t.test('a selector that returns at once is applied again, also without addresses', async (t) => {
  const { sink, feed, pass } = bench()
  feed.set(web!, [])
  await pass(0)
  feed.remove(web!)
  feed.set(web!, [])
  await pass(0)
  t.strictSame([...sink.inForce], [[web!.key, []]])
  t.equal(feed.pending, 0)
})

t.test('one selector can be applied again', async (t) => {
  const { sink, feed, pass } = bench()
  feed.set(web!, setOf([1]))
  feed.set(api!, setOf([2]))
  await pass(0)
  sink.inForce.clear()
  feed.resync(web!)
  await pass(0)
  feed.remove(api!)
  await pass(0)
  feed.resync(api!)
  await pass(0)
  t.strictSame([...sink.inForce], [[web!.key, ['192.0.2.1']]])
})

t.test('close starts nothing', async (t) => {
  const { sink, feed, pass, timers } = bench()
  sink.isHeld = true
  feed.set(web!, setOf([1]))
  feed.close()
  feed.set(web!, setOf([2]))
  await sink.settle()
  await pass(1000)
  t.equal(sink.updates.length, 1)
  t.equal(timers.count, 0)
})

t.test('whatever happens, the sink has what is wanted in the end', async () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('set'), last: fc.uniqueArray(fc.nat(5)) }),
    },
    fc.record({
      kind: fc.constantFrom('settle', 'fail', 'heal', 'pass', 'resync', 'remove'),
      last: fc.constant([]),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const { sink, feed, pass } = bench()
      sink.isHeld = true
      let wanted: readonly string[] | undefined
      for (const { kind, last } of steps) {
        if (kind === 'fail') sink.fault = 'broken'
        else if (kind === 'heal') sink.fault = ''
        else if (kind === 'settle') await sink.settle()
        else if (kind === 'pass') await pass(1000)
        else if (kind === 'resync') feed.resync(web!)
        else if (kind === 'remove') {
          wanted = undefined
          feed.remove(web!)
        } else {
          wanted = setOf(last)
          feed.set(web!, wanted)
        }
      }
      sink.fault = ''
      sink.isHeld = false
      for (let i = 0; i < 10; i++) {
        await sink.settle()
        await pass(60_000)
      }
      return feed.pending === 0 && sink.inForce.get(web!.key)?.join() === wanted?.join()
    }),
    { numRuns: 150 },
  )
})
