import t from 'tap'
import { RefCounted } from '../../src/base/ref-counted.ts'

t.test('made for the first user, ended after the last, and made anew then', async (t) => {
  const ended: number[] = []
  const shared = new RefCounted<number>((item) => ended.push(item))
  let made = 0
  const make = (): number => ++made
  const first = shared.acquire('a', make)
  const second = shared.acquire('a', make)
  const other = shared.acquire('b', make)
  t.strictSame([first.item, second.item, other.item], [1, 1, 2])
  first.release()
  first.release()
  t.strictSame(ended, [], 'giving it back twice counts once')
  second.release()
  t.strictSame(ended, [1])
  t.equal(shared.acquire('a', make).item, 3)
  other.release()
  t.strictSame(ended, [1, 2])
})
