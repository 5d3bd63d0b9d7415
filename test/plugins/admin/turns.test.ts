import t from 'tap'
import { Turns } from '../../../src/plugins/admin/turns.ts'

t.test('tasks run one at a time, and at most 32 wait', async (t) => {
  const turns = new Turns()
  let [running, runningMax, started] = [0, 0, 0]
  const task = async (): Promise<number> => {
    runningMax = Math.max(runningMax, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    return ++started
  }
  const results = await Promise.all(Array.from({ length: 40 }, () => turns.run(task)))
  t.strictSame([runningMax, started], [1, 32])
  t.equal(results.filter((result) => result === undefined).length, 8)
  t.equal(await turns.run(task), 33)
})

t.test('a task that fails does not stop the next one', async (t) => {
  const turns = new Turns()
  const wrong = turns.run(() => Promise.reject(new Error('no')))
  const right = turns.run(async () => 1)
  await t.rejects(wrong, { message: 'no' })
  t.equal(await right, 1)
})
