import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { ServerChoice } from '../../../src/client/resolver/server-choice.ts'

const servers = [1, 2, 3, 4, 5, 6, 7].map((n) => ({ host: `192.0.2.${n}`, port: 53 }))

t.test('all servers, or some at random', async (t) => {
  const choice = new ServerChoice(new Random(1))
  t.strictSame(choice.choose(servers, Number.POSITIVE_INFINITY, 0), servers)
  const counts = new Map<string, number>()
  for (let i = 0; i < 1400; i++) {
    const chosen = choice.choose(servers, 5, 0)
    t.equal(new Set(chosen).size === 5, true, 'five different ones')
    for (const { host } of chosen) counts.set(host, (counts.get(host) ?? 0) + 1)
  }
  t.ok(
    servers.every(({ host }) => Math.abs((counts.get(host) ?? 0) - 1000) < 120),
    'each as often',
  )
  t.strictSame(choice.choose([], 5, 0), [])
})

t.test('a silent server is left out, and tried now and then', async (t) => {
  const choice = new ServerChoice(new Random(1))
  const [dead, ...others] = servers
  const isAsked = (nowMs: number): boolean => choice.choose(servers, 9, nowMs).includes(dead!)
  for (let i = 0; i < 2; i++) choice.note(dead!, false, 0)
  t.ok(isAsked(0), 'a name may be the reason')
  choice.note(dead!, false, 0)
  t.notOk(isAsked(9999))
  t.ok(isAsked(10_000), 'one query tries it')
  t.notOk(isAsked(10_001))
  choice.note(dead!, false, 12_000)
  t.notOk(isAsked(21_999))
  choice.note(dead!, true, 22_000)
  t.ok(isAsked(22_000))
  for (const server of servers) for (let i = 0; i < 3; i++) choice.note(server, false, 30_000)
  t.equal(choice.choose(servers, 9, 30_001).length, 7, 'if all are silent, all are asked')
  t.strictSame(choice.choose(others.slice(0, 1), 9, 30_002), others.slice(0, 1))
})
