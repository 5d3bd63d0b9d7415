import t from 'tap'
import { HOST_BOUNDS_DEFAULT, HOST_MS, HostPoll } from '../../src/peering/host-poll.ts'
import type { SiteState } from '../../src/peering/peer-endpoint.ts'
import { HOST, share } from './samples.ts'

t.test('a tick queries more hosts than are queried at a time', async (t) => {
  let [asked, atATime, most] = [0, 0, 0]
  const poll = new HostPoll({
    ask: async () => {
      asked++
      most = Math.max(most, ++atATime)
      await new Promise((resolve) => setImmediate(resolve))
      atATime--
      return { kind: 'failed', reason: 'no answer' }
    },
    bounds: HOST_BOUNDS_DEFAULT,
    nowMs: () => 0,
    onChange: () => {},
    onAnswer: () => {},
    onProblems: () => {},
  })
  const pass = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  for (let i = 0; i < 200; i++) poll.want(`app-${i}.k.example.com`)
  poll.tick()
  await pass()
  t.equal(asked, 64, 'a tick has an end')
  t.equal(most, 16, 'and so has what is under way at a time')
  poll.tick()
  poll.close()
  await pass()
  t.equal(asked, 80, 'what was closed begins nothing more')
})

/** A peer whose answers come when the test lets them. */
function slowPeer(
  shares: () => readonly SiteState[],
  ttlSeconds: () => number | undefined = () => undefined,
) {
  const waiting: { readonly host: string; readonly answer: () => void }[] = []
  const clock = { nowMs: 0 }
  const poll = new HostPoll({
    ask: (host) => {
      const said = shares()
      return new Promise((resolve) => {
        waiting.push({
          host,
          answer: () => {
            resolve({ kind: 'shares', siteStates: said, problems: [], ttlSeconds: ttlSeconds() })
          },
        })
      })
    },
    bounds: HOST_BOUNDS_DEFAULT,
    nowMs: () => clock.nowMs,
    onChange: () => {},
    onAnswer: () => {},
    onProblems: () => {},
  })
  const answerAll = async (): Promise<string[]> => {
    const asked = waiting.splice(0)
    for (const { answer } of asked) answer()
    await new Promise((resolve) => setImmediate(resolve))
    return asked.map(({ host }) => host)
  }
  return { poll, clock, waiting, answerAll }
}

// It was seen only a quarter of a minute later.
t.test('a host that changes during its query is queried again', async (t) => {
  let reported: readonly SiteState[] = [share('a', [{}])]
  const { poll, clock, answerAll, waiting } = slowPeer(() => reported)
  poll.want(HOST)
  poll.tick()
  reported = [share('a', [{ targets: ['192.0.2.2'] }])]
  poll.hurry()
  poll.tick()
  t.equal(waiting.length, 1, 'once at a time')
  await answerAll()
  poll.tick()
  t.strictSame(await answerAll(), [HOST])
  t.strictSame(poll.siteStatesOf(HOST, clock.nowMs), reported)
  poll.tick()
  t.equal(waiting.length, 0, 'and then it is due in its time')
})

t.test(
  'a host that is wanted anew while it is being asked for is asked for once more',
  async (t) => {
    const { poll, answerAll, waiting } = slowPeer(() => [share('a', [{}])])
    poll.want(HOST)
    poll.tick()
    poll.forget(HOST)
    poll.want(HOST)
    poll.tick()
    t.equal(waiting.length, 1)
    await answerAll()
    poll.tick()
    t.strictSame(await answerAll(), [HOST])
  },
)

t.test('a host that is answered for before it is wanted anew has one turn, not two', async (t) => {
  const { poll, clock, answerAll, waiting } = slowPeer(() => [share('a', [{}])])
  poll.want(HOST)
  poll.tick()
  poll.close()
  poll.forget(HOST)
  poll.want(HOST)
  await answerAll()
  poll.tick()
  t.equal(waiting.length, 1)
  clock.nowMs += HOST_MS
  poll.tick()
  t.equal(waiting.length, 1, 'once at a time')
})

t.test('a host is asked for again when its answer is over, within bounds', async (t) => {
  const table = [
    { name: 'the TTL', ttlSeconds: 60, wantMs: 60_000 },
    { name: 'one that is too short', ttlSeconds: 0, wantMs: 5000 },
    { name: 'one that is too long', ttlSeconds: 86_400, wantMs: 900_000 },
    { name: 'none', ttlSeconds: undefined, wantMs: HOST_MS },
  ]
  for (const { name, ttlSeconds, wantMs } of table) {
    const { poll, clock, waiting, answerAll } = slowPeer(
      () => [],
      () => ttlSeconds,
    )
    poll.want(HOST)
    poll.tick()
    await answerAll()
    clock.nowMs += wantMs - 1
    poll.tick()
    t.equal(waiting.length, 0, `${name}: not before`)
    clock.nowMs += 1
    poll.tick()
    t.equal(waiting.length, 1, `${name}: then`)
  }
})

t.test(
  'what is due earlier comes first, whenever it was asked for; news come before',
  async (t) => {
    const ttls = new Map([
      ['slow.k.example.com', 600],
      ['quick.k.example.com', 10],
      ['middle.k.example.com', 60],
    ])
    let ttlSeconds = 0
    const { poll, clock, answerAll } = slowPeer(
      () => [],
      () => ttlSeconds,
    )
    for (const [host, ttl] of ttls) {
      ttlSeconds = ttl
      poll.want(host)
      poll.tick()
      await answerAll()
    }
    clock.nowMs += 60_000
    poll.tick()
    ttlSeconds = 600
    t.strictSame(await answerAll(), ['quick.k.example.com', 'middle.k.example.com'])
    poll.tick()
    t.strictSame(await answerAll(), [])
    poll.want('new.k.example.com')
    poll.hurry()
    poll.tick()
    const all = ['new.k.example.com', ...ttls.keys()].sort()
    t.strictSame((await answerAll()).sort(), all, 'a new serial hurries what is not due for long')
    poll.forget('quick.k.example.com')
    clock.nowMs += 600_000
    poll.tick()
    t.strictSame(
      (await answerAll()).sort(),
      all.filter((host) => host !== 'quick.k.example.com'),
    )
  },
)

// Hosts may not be asked for in a quarter of an hour, and their peer be heard every second.
t.test('states from the peer cache have the age of the last answer', async (t) => {
  const { poll, answerAll } = slowPeer(() => [share('a', [{}])])
  poll.want(HOST)
  poll.tick()
  await answerAll()
  const heardMs = 1_000_000
  t.match([...poll.exported(0, heardMs)], [[HOST, [{ seenMs: heardMs }]]])
})
