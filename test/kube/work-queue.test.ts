import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { ApiError } from '../../src/kube/api.ts'
import { WorkQueue, type WorkResult } from '../../src/kube/work-queue.ts'
import { turns } from '../support/api-double.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

/** A run that waits for the test to end it. */
interface Run {
  readonly key: string
  readonly end: (result?: WorkResult) => void
  readonly fail: (error: unknown) => void
}

class Stage {
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  readonly runs: Run[] = []
  readonly queue: WorkQueue

  constructor(t: Test, workers = 2, keysMax = 1000) {
    this.queue = new WorkQueue({
      what: 'things',
      work: (key) =>
        new Promise((end, fail) => this.runs.push({ key, end: (result) => end(result), fail })),
      workers,
      keysMax,
      clock: this.clock,
      timers: this.timers,
      random: new Random(1),
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
    })
    t.teardown(() => void this.queue.close())
  }

  keys(): string[] {
    return this.runs.map(({ key }) => key)
  }

  /** The oldest run. */
  next(): Run {
    const run = this.runs.shift()
    if (run === undefined) throw new Error('nothing runs')
    return run
  }

  async advance(milliseconds: number): Promise<void> {
    this.clock.monotonicMs += milliseconds
    await this.timers.advance(milliseconds)
    await turns(2)
  }

  async ends(result?: WorkResult): Promise<void> {
    this.next().end(result)
    await turns(2)
  }

  async fails(error: unknown): Promise<void> {
    this.next().fail(error)
    await turns(2)
  }
}

t.test('no key runs before the start, then one per worker, in order', async (t) => {
  const stage = new Stage(t)
  for (const key of ['a', 'b', 'a', 'c', 'b']) t.equal(stage.queue.add(key), true)
  t.strictSame(stage.keys(), [])
  t.equal(stage.queue.depth, 3, 'each once')
  stage.queue.start()
  t.strictSame(stage.keys(), ['a', 'b'])
  t.equal(stage.queue.runningCount, 2)
  await stage.ends()
  t.strictSame(stage.keys(), ['b', 'c'])
  await stage.ends()
  await stage.ends()
  t.strictSame(stage.keys(), [])
  t.equal(stage.queue.depth, 0)
  t.equal(stage.queue.runningCount, 0)
  t.equal(stage.queue.counts.runs, 3)
})

t.test('a key that is added while it runs runs once more, after that', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  for (let i = 0; i < 3; i++) stage.queue.add('a')
  t.strictSame(stage.keys(), ['a'], 'never two of one key')
  await stage.ends()
  t.strictSame(stage.keys(), ['a'])
  await stage.ends()
  t.strictSame(stage.keys(), [])
})

t.test('the earliest of several times counts, and adding is now', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.addAfter('a', 5000)
  stage.queue.addAfter('a', 1000)
  stage.queue.addAfter('a', 3000)
  await stage.advance(999)
  t.strictSame(stage.keys(), [])
  await stage.advance(1)
  t.strictSame(stage.keys(), ['a'])
  await stage.ends()
  await stage.advance(10_000)
  t.strictSame(stage.keys(), [], 'one run answers for all of them')
  stage.queue.addAfter('a', 5000)
  stage.queue.add('a')
  t.strictSame(stage.keys(), ['a'])
  await stage.ends()
  await stage.advance(10_000)
  t.strictSame(stage.keys(), [])
  stage.queue.addAfter('a', 0)
  t.strictSame(stage.keys(), ['a'], 'no delay is none')
  t.equal(stage.timers.count, 0)
})

t.test('a run says when it wants the next', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  await stage.ends({ againMs: 60_000 })
  await stage.advance(59_999)
  t.strictSame(stage.keys(), [])
  await stage.advance(1)
  t.strictSame(stage.keys(), ['a'])
  stage.queue.add('a')
  await stage.ends({ againMs: 60_000 })
  t.strictSame(stage.keys(), ['a'], 'what came meanwhile does not wait')
})

t.test('a failed key runs again, later each time, until it succeeds', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  for (let attempt = 0; attempt < 14; attempt++) {
    await stage.fails(new Error('no luck'))
    const most = Math.min(200 * 2 ** attempt, 300_000)
    await stage.advance(most / 2 - 1)
    t.strictSame(stage.keys(), [], `attempt ${attempt}: half of it is certain`)
    await stage.advance(most / 2 + 1)
    t.strictSame(stage.keys(), ['a'], `attempt ${attempt}: all of it is the most`)
  }
  t.match(stage.lines, [/things a: no luck; retrying/])
  t.equal(stage.lines.length, 1, 'each fault is logged once')
  t.equal(stage.queue.counts.failures, 14)
  await stage.ends()
  stage.queue.add('a')
  await stage.fails(new Error('no luck'))
  await stage.advance(200)
  t.strictSame(stage.keys(), ['a'], 'success begins anew')
  t.equal(stage.lines.length, 2)
})

t.test('a change does not wait for the next attempt', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  for (let i = 0; i < 10; i++) {
    await stage.fails(new Error('no luck'))
    stage.queue.add('a')
    t.strictSame(stage.keys(), ['a'])
  }
})

t.test('failed keys run again at once when the cause is gone', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('failed')
  for (let i = 0; i < 10; i++) {
    await stage.fails(new Error('no luck'))
    if (i < 9) await stage.advance(300_000)
  }
  stage.queue.add('later')
  await stage.ends({ againMs: 1000 })
  stage.queue.retryFailed()
  t.strictSame(stage.keys(), ['failed'], 'what is due later is not')
  stage.queue.retryFailed()
  t.strictSame(stage.keys(), ['failed'], 'what runs is not run twice')
  await stage.fails(new Error('no luck'))
  await stage.advance(200)
  t.strictSame(stage.keys(), ['failed'], 'the waits begin anew')
})

t.test('a key that fails just after that does not wait long either', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  for (let i = 0; i < 10; i++) {
    await stage.fails(new Error('no luck'))
    await stage.advance(300_000)
  }
  t.strictSame(stage.keys(), ['a'], 'it runs')
  stage.queue.retryFailed()
  await stage.fails(new Error('no answer'))
  await stage.advance(200)
  t.strictSame(stage.keys(), ['a'])
})

t.test('the API may ask for patience, within bounds', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  await stage.fails(new ApiError(429, '429 slow down', 30))
  await stage.advance(29_999)
  t.strictSame(stage.keys(), [])
  await stage.advance(1)
  t.strictSame(stage.keys(), ['a'])
  await stage.fails(new ApiError(429, '429 slow down', 1e9))
  await stage.advance(300_000)
  t.strictSame(stage.keys(), ['a'])
})

t.test('a conflict with another writer is not logged', async (t) => {
  const stage = new Stage(t)
  stage.queue.start()
  stage.queue.add('a')
  await stage.fails(new ApiError(409, '409 modified', 0, 'Conflict'))
  t.strictSame(stage.lines, [])
  await stage.advance(200)
  t.strictSame(stage.keys(), ['a'])
})

t.test('there are never more keys than allowed', async (t) => {
  const stage = new Stage(t, 1, 3)
  stage.queue.start()
  stage.queue.add('runs')
  stage.queue.add('waits')
  stage.queue.addAfter('later', 1000)
  t.equal(stage.queue.add('d'), false)
  t.equal(stage.queue.addAfter('e', 1), false)
  t.equal(stage.queue.add('runs'), true, 'those that are known are taken')
  t.equal(stage.queue.counts.dropped, 2)
  t.match(stage.lines, [/things: too many keys/])
  t.equal(stage.lines.length, 1)
  await stage.ends()
  await stage.ends()
  await stage.ends()
  t.equal(stage.queue.add('d'), true, 'those that are done are forgotten')
})

t.test('closing waits for what runs, and starts nothing', async (t) => {
  const stage = new Stage(t, 1)
  stage.queue.start()
  stage.queue.add('a')
  stage.queue.add('b')
  stage.queue.addAfter('c', 1000)
  let isClosed = false
  const closed = stage.queue.close().then(() => {
    isClosed = true
  })
  await turns()
  t.equal(isClosed, false)
  t.equal(stage.queue.add('d'), false)
  await stage.ends({ againMs: 5 })
  await closed
  await stage.advance(10_000)
  t.strictSame(stage.keys(), [])
  t.equal(stage.timers.count, 0)
})

t.test('a hundred thousand keys take no longer than they must', async (t) => {
  const keys = Array.from({ length: 100_000 }, (_, i) => `k${i}`)
  let runs = 0
  const stage = new Stage(t)
  const queue = new WorkQueue({
    what: 'things',
    work: async () => {
      runs++
      return undefined
    },
    workers: 4,
    clock: stage.clock,
    timers: stage.timers,
    random: new Random(1),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
  })
  for (const key of keys) queue.add(key)
  const startMs = performance.now()
  queue.start()
  while (runs < keys.length) await turns(1)
  t.ok(performance.now() - startMs < 20_000, 'not quadratic')
})

t.test(
  'a key that was added while it ran runs again at once, and is known meanwhile',
  async (t) => {
    const stage = new Stage(t)
    stage.queue.start()
    stage.queue.add('a')
    stage.queue.add('a')
    await stage.ends()
    t.strictSame(stage.keys(), ['a'])
    stage.queue.add('a')
    t.strictSame(stage.keys(), ['a'], 'never two runs of one key')
    await stage.ends()
    t.strictSame(stage.keys(), ['a'])
    await stage.ends()
    t.strictSame(stage.keys(), [])
    t.equal(stage.queue.depth, 0)
  },
)
