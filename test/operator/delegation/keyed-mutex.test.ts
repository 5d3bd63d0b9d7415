import t from 'tap'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'

t.test('work on one thing waits for its turn, and on others does not', async (t) => {
  const turns = new KeyedMutex()
  const done: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string) => async (): Promise<string> => {
    done.push(`begin ${name}`)
    await new Promise<void>((end) => ends.push(end))
    done.push(`end ${name}`)
    return name
  }
  const first = turns.take('a', work('first'))
  const second = turns.take('a', work('second'))
  const other = turns.take('b', work('other'))
  await new Promise(setImmediate)
  t.strictSame(done, ['begin first', 'begin other'])
  ends[0]!()
  t.equal(await first, 'first')
  await new Promise(setImmediate)
  t.strictSame(done.slice(2), ['end first', 'begin second'])
  for (const end of ends) end()
  t.strictSame([await second, await other], ['second', 'other'])
  t.equal(turns.size, 0, 'nothing is kept')
})

t.test('work that fails is over as well', async (t) => {
  const turns = new KeyedMutex()
  const failing = turns.take('a', async () => {
    throw new Error('refused')
  })
  const next = turns.take('a', async () => 'next')
  await t.rejects(failing, /refused/)
  t.equal(await next, 'next')
  t.equal(turns.size, 0)
})
