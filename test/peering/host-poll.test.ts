import t from 'tap'
import { HostPoll } from '../../src/peering/host-poll.ts'

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
