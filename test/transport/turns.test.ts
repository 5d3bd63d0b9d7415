import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { Turns } from '../../src/transport/turns.ts'

/** Uses the turn up. */
function spend(turns: Turns): void {
  while (!turns.isOver());
}

t.test(
  'a turn is over after two milliseconds, and the next turn of the loop has a new one',
  async (t) => {
    const turns = new Turns()
    const startMs = performance.now()
    t.equal(turns.isOver(), false)
    spend(turns)
    t.ok(performance.now() - startMs >= 2)
    t.equal(turns.isOver(), true, 'and stays so')
    await nextTurn()
    t.equal(turns.isOver(), false)
  },
)

t.test('those that wait come in order, the longest waiting first', async (t) => {
  const turns = new Turns()
  const ran: string[] = []
  const greedy = (name: string, again: number) => (): void => {
    ran.push(name)
    spend(turns)
    if (again > 0) turns.wait(greedy(name, again - 1))
  }
  spend(turns)
  for (const name of ['a', 'b', 'c']) turns.wait(greedy(name, 1))
  for (let i = 0; i < 20 && ran.length < 6; i++) await nextTurn()
  t.strictSame(ran, ['a', 'b', 'c', 'a', 'b', 'c'])
})
