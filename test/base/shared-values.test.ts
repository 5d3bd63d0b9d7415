import t from 'tap'
import { key, lazyKey, SharedValues } from '../../src/base/shared-values.ts'

const COUNT = key<number>('count')
const OTHER = key<number>('count')
const LIST = lazyKey('list', (): string[] => [])

t.test('a value is found by its key only', async (t) => {
  const values = new SharedValues()
  t.equal(values.find(COUNT), undefined)
  values.provide(COUNT, 1)
  t.equal(values.find(COUNT), 1)
  t.equal(values.find(OTHER), undefined, 'keys of one name differ')
  values.provide(COUNT, 2)
  t.equal(values.find(COUNT), 2, 'the last value counts')
})

t.test('a lazy value is created once for each set of values', async (t) => {
  const values = new SharedValues()
  t.equal(values.find(LIST), undefined)
  values.acquire(LIST).push('a')
  values.acquire(LIST).push('b')
  t.strictSame(values.find(LIST), ['a', 'b'])
  t.strictSame(new SharedValues().acquire(LIST), [])
})
