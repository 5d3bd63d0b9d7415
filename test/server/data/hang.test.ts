import t, { type Test } from 'tap'
import { LOOK_MS } from '../../../src/server/data/pulse.ts'
import { UdpClient } from '../../support/client.ts'
import { DataServer } from '../../support/data-server.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { DIRECTIVES, toys } from './toys.ts'

const PATIENCE_MS = 120_000
const LOOKS_MAX = 10
const corefile = 'z.example:0 {\n bind 127.0.0.1\n multisocket 1\n toy 1 7\n}\n'
const question = (label: string) => ({ name: `${label}.z.example`, type: 'A' })

/** A server of one thread, whose looks the test takes. */
async function serve(t: Test) {
  const timers = new FakeTimers()
  const server = new DataServer(t, {
    module: new URL('./toys.ts', import.meta.url),
    directives: DIRECTIVES,
    corefile: { kind: 'text', name: 'Corefile', text: corefile },
    threads: 1,
    timers,
  })
  const client = await UdpClient.connect(await server.start())
  t.teardown(() => client.close())
  const toy = toys.at(-1)!
  const hang = async (): Promise<void> => {
    const before = toy.counted()
    client.ask(question('spin'), 1, 1).catch(() => {})
    await until(() => toy.counted() > before, 'the thread to hang', PATIENCE_MS)
  }
  return { server, client, timers, hang }
}

t.test('a thread that hangs is ended, told of, counted and replaced', async (t) => {
  const { server, client, timers, hang } = await serve(t)
  for (let look = 0; look < 2 * LOOKS_MAX; look++) {
    await client.ask(question('a'), 1, PATIENCE_MS)
    await timers.advance(LOOK_MS)
  }
  t.equal(server.totals.panics, 0, 'not one that is at work')
  await hang()
  // The first one sees the turn in which it hangs.
  await timers.advance(LOOK_MS * LOOKS_MAX)
  t.equal(server.totals.panics, 0, 'not before its time')
  await timers.advance(LOOK_MS)
  await until(() => server.totals.panics === 1, 'its end', PATIENCE_MS)
  t.match(server.lines.join('\n'), /Data thread 0 ended, starting another: Error: it hung/)
  await client.ask(question('a'), 300, 200)
  t.equal(server.workers.length, 2)
})

t.test('a stop waits for a thread that hangs no longer than for its end', async (t) => {
  const { server, client, timers, hang } = await serve(t)
  await client.ask(question('a'), 1, PATIENCE_MS)
  await hang()
  let isStopped = false
  const stopped = server.supervisor.stop().then(() => {
    isStopped = true
  })
  await until(
    async () => {
      await timers.advance(LOOK_MS)
      return isStopped
    },
    'the stop',
    PATIENCE_MS,
  )
  await stopped
  t.equal(timers.count, 0, 'and nobody looks any more')
})
