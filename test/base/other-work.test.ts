import t from 'tap'
import { noteConnectionsMs, OtherWork } from '../../src/base/other-work.ts'

t.test('what accepts and what serves do not count each other', async (t) => {
  let nowMs = 0
  /** Uses as much time as the thread did other work, at least 2 ms. */
  const user = () => {
    const other = new OtherWork()
    return (): number => {
      const ms = Math.max(2, Math.min(100, other.since(nowMs)))
      nowMs += ms
      noteConnectionsMs(ms)
      other.begin(nowMs)
      return ms
    }
  }
  const [accept, serve] = [user(), user()]
  const used: number[] = []
  for (let turn = 0; turn < 100; turn++) {
    nowMs += 5
    used.push(accept(), serve())
  }
  t.equal(Math.max(...used), 5)
})

t.test('there is none before the begin and after the end', async (t) => {
  const other = new OtherWork()
  t.equal(other.since(10), 0)
  other.begin(10)
  t.equal(other.since(17), 7)
  other.end()
  t.equal(other.since(20), 0)
})
