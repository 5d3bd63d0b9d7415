import t from 'tap'
import { ResourceRegistry } from '../../../../src/base/resource-registry.ts'
import { SnapshotKeeper } from '../../../../src/publish/serve/snapshot/keeper.ts'
import type { SnapshotJob } from '../../../../src/zone/snapshot/write.ts'
import { FakeClock, FakeTimers } from '../../../support/setup.ts'

const DIRECTORY = t.testdir({})

/** A file, the image that goes into it, and a writer that takes as long as the test likes. */
function start(name: string, writtenVersion?: number) {
  const path = `${DIRECTORY}${name}`
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const lines: string[] = []
  const note = (text: string) => lines.push(text)
  const written: number[] = []
  const state = { version: 1, failure: '', isSlow: false, isPublished: true }
  const pending: (() => void)[] = []
  const write = async ({ image }: SnapshotJob): Promise<number> => {
    if (state.isSlow) await new Promise<void>((resolve) => pending.push(resolve))
    if (state.failure !== '') throw new Error(state.failure)
    written.push(image.version)
    return 100
  }
  const buffer = new SharedArrayBuffer(0)
  const resources = new ResourceRegistry()
  const createKeeper = (): SnapshotKeeper =>
    new SnapshotKeeper({
      path,
      resources,
      intervalMs: 60_000,
      capture: () => {
        const image = { buffer, version: state.version, zones: [] }
        return state.isPublished ? { image, facts: '' } : undefined
      },
      write,
      clock,
      timers,
      log: { debug: note, info: note, warning: note, error: note },
      writtenVersion,
    })
  const keeper = createKeeper()
  const change = (by = keeper): void => {
    state.version++
    by.noteChange()
  }
  const pass = async (milliseconds: number): Promise<void> => {
    clock.nowMs += milliseconds
    clock.monotonicMs += milliseconds
    await timers.advance(milliseconds)
  }
  return { keeper, createKeeper, change, pass, state, written, lines, pending, timers }
}

t.test(
  'changes are written soon, then once per interval, and nothing without a change',
  async (t) => {
    const { keeper, change, pass, written, timers } = start('/one')
    change()
    change()
    await pass(999)
    t.strictSame(written, [])
    await pass(1)
    t.strictSame(written, [3])
    for (let i = 0; i < 300; i++) {
      change()
      await pass(1000)
    }
    t.equal(written.length, 1 + 5, 'five minutes of changes')
    await pass(60_000)
    t.equal(written.at(-1), 303)
    const { length } = written
    await pass(600_000)
    t.equal(written.length, length)
    t.equal(timers.count, 0, 'and nothing is waiting')
    keeper.noteChange()
    await pass(60_000)
    t.equal(written.length, length, 'nor where the version is the one in the file')
    await keeper.close()
  },
)

t.test('a loaded snapshot is not written again', async (t) => {
  const { keeper, change, pass, written } = start('/two', 1)
  keeper.noteChange()
  await pass(120_000)
  t.strictSame(written, [])
  change()
  await pass(120_000)
  t.strictSame(written, [2])
  await keeper.close()
})

t.test('close writes the last change, and waits for the write', async (t) => {
  const { keeper, change, pass, written, state, pending } = start('/three')
  change()
  await keeper.finish()
  t.strictSame(written, [2])
  await keeper.finish()
  t.strictSame(written, [2], 'once')
  change()
  state.isSlow = true
  await pass(60_000)
  change()
  let isClosed = false
  const closed = keeper.close().then(() => {
    isClosed = true
  })
  await pass(60_000)
  t.equal(isClosed, false)
  pending.shift()!()
  await closed
  await pass(600_000)
  t.strictSame(written.length, 2, 'and no other write begins')
})

t.test('a write waits for a pending publish', async (t) => {
  const { keeper, change, pass, written, state, lines } = start('/six')
  state.isPublished = false
  change()
  await pass(5000)
  t.strictSame(written, [])
  state.isPublished = true
  await pass(1000)
  t.strictSame(written, [2])
  t.strictSame(lines, [])
  await keeper.close()
})

t.test('a failing disk is logged once, and retried', async (t) => {
  const { keeper, change, pass, written, state, lines } = start('/four')
  state.failure = 'ENOSPC'
  change()
  await pass(600_000)
  t.strictSame(written, [])
  t.strictSame(lines, [`snapshot ${DIRECTORY}/four cannot be written: ENOSPC`])
  const [group] = keeper.problems
  t.match(
    [...group!.problems],
    [{ place: `${DIRECTORY}/four`, reason: '/four cannot be written: ENOSPC; ' }],
  )
  state.failure = ''
  await pass(60_000)
  t.strictSame(written, [2])
  t.equal(lines.at(-1), `snapshot ${DIRECTORY}/four can be written again`)
  t.strictSame(keeper.problems, [])
  await keeper.close()
})

t.test('after a reload the new instance writes; after one that failed the old does', async (t) => {
  const { keeper, createKeeper, change, pass, written, state } = start('/five')
  const reloaded = createKeeper()
  change()
  await pass(60_000)
  t.strictSame(written, [], 'the old one does not')
  change(reloaded)
  await pass(60_000)
  t.strictSame(written, [3])
  await reloaded.close()
  await pass(120_000)
  t.strictSame(written, [3, 3], 'the file was of other options')
  const second = createKeeper()
  await keeper.close()
  state.version++
  second.noteChange()
  await pass(60_000)
  t.strictSame(written, [3, 3, 4])
  await second.close()
})
