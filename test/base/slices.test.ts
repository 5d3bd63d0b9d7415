import { test } from 'tap'
import { runInSlices, runWhole, SLICE_MS } from '../../src/base/slices.ts'

function* work(steps: number, step: () => void): Generator<void, string> {
  for (let i = 0; i < steps; i++) {
    step()
    yield
  }
  return 'done'
}

test('slices: work runs to its end in one go', async (t) => {
  let steps = 0
  t.equal(runWhole(work(5, () => steps++)), 'done')
  t.equal(steps, 5)
})

test('slices: the event loop has its turn once a slice is over, not at every pause', async (t) => {
  let nowMs = 0
  let turns = 0
  let running = true
  const turn = (): void => {
    turns++
    if (running) setImmediate(turn)
  }
  const clock = { now: () => 0, monotonic: () => nowMs }
  setImmediate(turn)
  const result = await runInSlices(
    work(40, () => {
      nowMs += SLICE_MS / 4
    }),
    clock,
  )
  running = false
  t.equal(result, 'done')
  t.ok(turns >= 5 && turns <= 20, `${turns} turns`)
})

test('slices: what the work throws is passed on', async (t) => {
  const clock = { now: () => 0, monotonic: () => 0 }
  const broken = () => {
    throw new Error('broken')
  }
  t.throws(() => runWhole(work(1, broken)), { message: 'broken' })
  await t.rejects(runInSlices(work(1, broken), clock), { message: 'broken' })
})
