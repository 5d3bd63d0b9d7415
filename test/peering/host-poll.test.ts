import t from 'tap'
import { HostPoll } from '../../src/peering/host-poll.ts'
import type { SiteShare } from '../../src/peering/shared-endpoint.ts'
import { HOST, share } from './samples.ts'

t.test('more hosts are asked for in a tick than at a time', async (t) => {
  let [asked, atATime, most] = [0, 0, 0]
  const poll = new HostPoll({
    ask: async () => {
      asked++
      most = Math.max(most, ++atATime)
      await new Promise((resolve) => setImmediate(resolve))
      atATime--
      return { kind: 'failed', reason: 'nobody is there' }
    },
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
function slowPeer(shares: () => readonly SiteShare[]) {
  const waiting: { readonly host: string; readonly answer: () => void }[] = []
  const clock = { nowMs: 0 }
  const poll = new HostPoll({
    ask: (host) => {
      const said = shares()
      return new Promise((resolve) => {
        waiting.push({
          host,
          answer: () => resolve({ kind: 'shares', shares: said, problems: [] }),
        })
      })
    },
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
t.test('what changes while a host is being asked for has it asked for again', async (t) => {
  let told: readonly SiteShare[] = [share('a', [{}])]
  const { poll, clock, answerAll, waiting } = slowPeer(() => told)
  poll.want(HOST)
  poll.tick()
  told = [share('a', [{ targets: ['192.0.2.2'] }])]
  poll.hurry()
  poll.tick()
  t.equal(waiting.length, 1, 'once at a time')
  await answerAll()
  poll.tick()
  t.strictSame(await answerAll(), [HOST])
  t.strictSame(poll.sharesOf(HOST, clock.nowMs), told)
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
