import t from 'tap'
import { ListenerSet } from '../../src/server/listener-set.ts'

/** Listeners that write down what happens to them. */
function recorder(refused: readonly string[] = []) {
  const events: string[] = []
  const set = new ListenerSet<string, { use(want: string): void; close(): Promise<void> }>(
    async (address, want) => {
      if (refused.includes(address)) throw new Error(`no ${address}`)
      events.push(`open ${address} ${want}`)
      return {
        use: (next) => events.push(`use ${address} ${next}`),
        close: async () => {
          events.push(`close ${address}`)
        },
      }
    },
  )
  return { set, events }
}

const wants = (entries: Record<string, string>) => new Map(Object.entries(entries))

t.test('a change opens what is new, keeps what stays and closes what goes', async (t) => {
  const { set, events } = recorder()
  await (await set.prepare(wants({ a: '1', b: '1' }))).commit()
  const change = await set.prepare(wants({ b: '2', c: '2' }))
  t.strictSame(events.splice(0), ['open a 1', 'open b 1', 'open c 2'])
  const closed = change.commit()
  t.strictSame(events.slice(0, 1), ['use b 2'], 'swapped before anything is waited for')
  await closed
  t.strictSame(events.splice(0), ['use b 2', 'close a'])
  await set.close()
  t.strictSame(events.sort(), ['close b', 'close c'])
})

t.test('an address that cannot be had undoes the change', async (t) => {
  const { set, events } = recorder(['c'])
  await (await set.prepare(wants({ a: '1' }))).commit()
  await t.rejects(set.prepare(wants({ b: '2', c: '2' })), { message: 'no c' })
  t.strictSame(events, ['open a 1', 'open b 2', 'close b'])
  t.ok(set.get('a'))
  t.notOk(set.get('b'))
})

t.test('a change that is given up leaves the old listeners alone', async (t) => {
  const { set, events } = recorder()
  await (await set.prepare(wants({ a: '1' }))).commit()
  await (await set.prepare(wants({ a: '2', b: '2' }))).abandon()
  t.strictSame(events, ['open a 1', 'open b 2', 'close b'])
})
