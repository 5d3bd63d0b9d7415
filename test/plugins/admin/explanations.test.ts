import assert from 'node:assert/strict'
import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { Explanations } from '../../../src/plugins/admin/explanations.ts'
import { FakeTimers } from '../../support/setup.ts'

const QUESTION = { name: 'app.example.org', client: '192.0.2.1' }

/** Counts explainers that are open, and explanations of one turn of the event loop. */
function stage(open?: () => Promise<void>) {
  const counts = { opened: 0, closed: 0, explained: 0, inTurn: 0, inTurnMax: 0 }
  const explainer = {
    lines: () => [],
    whatIf: async () => {
      throw new Error('unused')
    },
    explain: ({ name }: { readonly name: string }) => {
      if (name === '') throw new InputError(undefined, 'invalid name')
      counts.explained++
      counts.inTurnMax = Math.max(counts.inTurnMax, ++counts.inTurn)
      setImmediate(() => counts.inTurn--)
      return { name }
    },
    map: async (): Promise<never> => assert.fail('no map is made'),
    close: () => void counts.closed++,
  }
  const timers = new FakeTimers()
  const explanations = new Explanations(async () => {
    counts.opened++
    await open?.()
    return explainer
  }, timers)
  return { counts, timers, explanations }
}

t.test('one explanation at a time, and at most 32 wait', async (t) => {
  const { counts, explanations } = stage()
  const all = Array.from({ length: 40 }, () => explanations.explain(QUESTION))
  const results = await Promise.all(all)
  t.equal(results.filter((result) => result === undefined).length, 8)
  t.strictSame(results[0], { name: QUESTION.name })
  t.strictSame([counts.opened, counts.explained, counts.inTurnMax], [1, 32, 1])
  t.strictSame(await explanations.explain(QUESTION), { name: QUESTION.name })
})

t.test('a fault of one question leaves the next ones alone', async (t) => {
  let fails = true
  const { explanations } = stage(async () => {
    if (fails) throw new Error('the database is broken')
  })
  await t.rejects(explanations.explain(QUESTION), { message: 'the database is broken' })
  fails = false
  const wrong = explanations.explain({ ...QUESTION, name: '' })
  const right = explanations.explain(QUESTION)
  await t.rejects(wrong, { name: 'InputError' })
  t.strictSame(await right, { name: QUESTION.name })
})

t.test('the explainer is closed when idle, and at the end, also while it opens', async (t) => {
  const idle = stage()
  await idle.explanations.explain(QUESTION)
  await idle.timers.advance(10 * 60_000)
  t.equal(idle.counts.closed, 1)
  await idle.explanations.explain(QUESTION)
  t.equal(idle.counts.opened, 2)
  idle.explanations.close()
  t.equal(await idle.explanations.explain(QUESTION), undefined)
  t.equal(idle.counts.closed, 2)

  const opening = stage(async () => opening.explanations.close())
  t.equal(await opening.explanations.explain(QUESTION), undefined)
  t.strictSame([opening.counts.opened, opening.counts.closed], [1, 1])
})
