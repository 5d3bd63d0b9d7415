import fc from 'fast-check'
import t from 'tap'
import { Agenda } from '../../../src/health/probes/agenda.ts'

const BUSY_MAX = 4

t.test('the longest overdue comes first, and nothing before its time', (t) => {
  const agenda = new Agenda()
  for (const [id, dueMs] of [
    ['c', 30],
    ['a', 10],
    ['b', 20],
    ['d', 40],
  ] as const) {
    agenda.put(id, id, dueMs, 1)
  }
  t.equal(agenda.nextDueMs(), 10)
  t.equal(agenda.take(9), undefined)
  t.strictSame(
    [agenda.take(30), agenda.take(30), agenda.take(30), agenda.take(30)],
    ['a', 'b', 'c', undefined],
  )
  t.equal(agenda.nextDueMs(), 40)
  t.end()
})

t.test('probes of one address are spread', (t) => {
  const agenda = new Agenda()
  for (let i = 0; i < BUSY_MAX + 2; i++) agenda.put(`same${i}`, 'one', i, 0.5)
  agenda.put('other', 'two', 50, 1)
  const taken = []
  for (let id = agenda.take(100); id !== undefined; id = agenda.take(100)) taken.push(id)
  t.equal(taken.length, BUSY_MAX + 1)
  t.equal(taken.at(-1), 'other', 'others pass those that wait')
  t.equal(agenda.nextDueMs(), Number.POSITIVE_INFINITY)
  agenda.remove(`same${BUSY_MAX}`)
  agenda.finish('same0', true)
  t.equal(
    agenda.take(100),
    `same${BUSY_MAX + 1}`,
    'what was removed while it waited is passed over',
  )
  t.end()
})

t.test('an address that fails has as many attempts as its probes need', (t) => {
  const take = (agenda: Agenda): string[] => {
    const taken = []
    for (let id = agenda.take(100); id !== undefined; id = agenda.take(100)) taken.push(id)
    return taken
  }
  const agenda = new Agenda()
  for (let i = 0; i < 40; i++) agenda.put(`p${i}`, 'one', i, 0.25)
  t.equal(take(agenda).length, BUSY_MAX)
  agenda.finish('p0', false)
  agenda.put('p0', 'one', 200, 0.25)
  t.equal(take(agenda).length, 10 - (BUSY_MAX - 1), '40 probes, each for a quarter of its interval')
  agenda.finish('p1', true)
  agenda.put('p1', 'one', 200, 0.25)
  t.strictSame(take(agenda), [], 'it is healthy again')
  t.end()
})

t.test('an entry that is added again counts once, a removed one not at all', (t) => {
  const agenda = new Agenda()
  for (let i = 0; i < 1000; i++) agenda.put('a', 'x', 1000 - i, 1)
  agenda.put('b', 'x', 5, 1)
  agenda.remove('b')
  t.equal(agenda.take(10), 'a')
  t.equal(agenda.take(10_000), undefined)
  t.end()
})

t.test('taken in any order of puts, it is the order of their times', async () => {
  const entries = fc.uniqueArray(fc.integer({ min: 0, max: 500 }), { maxLength: 200 })
  const property = fc.property(entries, (times) => {
    const agenda = new Agenda()
    for (const dueMs of times) agenda.put(`${dueMs}`, `${dueMs}`, dueMs, 1)
    const taken: number[] = []
    for (let id = agenda.take(500); id !== undefined; id = agenda.take(500)) {
      taken.push(Number(id))
      agenda.finish(id, true)
    }
    return `${taken}` === `${[...times].sort((a, b) => a - b)}`
  })
  fc.assert(property, { seed: 1, numRuns: 200 })
})
