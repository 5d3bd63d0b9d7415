import t, { type Test } from 'tap'
import { CHECK_MS } from '../../../src/server/data/hang-watchdog.ts'
import { UdpClient } from '../../support/client.ts'
import { DataServer } from '../../support/data-server.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { DIRECTIVES, toys } from './toys.ts'

// Own process: it makes threads hang.

const PATIENCE_MS = 120_000
const CHECKS_MAX = 10
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
  const stand = async (label: string): Promise<void> => {
    const before = toy.counted()
    client.ask(question(label), 1, 1).catch(() => {})
    await until(() => toy.counted() > before, 'the thread to stand still', PATIENCE_MS)
  }
  return { server, client, timers, toy, stand }
}

t.test('a thread that hangs is ended, logged, counted and replaced', async (t) => {
  const { server, client, timers, stand } = await serve(t)
  for (let check = 0; check < 2 * CHECKS_MAX; check++) {
    await client.ask(question('a'), 1, PATIENCE_MS)
    await timers.advance(CHECK_MS)
  }
  t.equal(server.totals.panics, 0, 'not one that is at work')
  await stand('spin')
  // The first one sees the turn in which it hangs.
  await timers.advance(CHECK_MS * CHECKS_MAX)
  t.equal(server.totals.panics, 0, 'not before its time')
  await until(
    async () => {
      await timers.advance(CHECK_MS)
      return server.totals.panics === 1
    },
    'its end',
    PATIENCE_MS,
  )
  const why =
    /Data thread 0 ended, starting another: Error: it hung and was terminated: no turn in \d+ s, [\d.]+ s of processor time/
  t.match(server.lines.join('\n'), why)
  await client.ask(question('a'), 300, 200)
  t.equal(server.workers.length, 2)
})

t.test('a thread that gets no processor is left alone', async (t) => {
  const { server, client, timers, toy, stand } = await serve(t)
  await client.ask(question('a'), 1, PATIENCE_MS)
  for (let pause = 0; pause < 3; pause++) {
    await stand('rest')
    await timers.advance(CHECK_MS * 5 * CHECKS_MAX)
    await until(() => toy.release(), 'the thread to rest', PATIENCE_MS)
    await client.ask(question('a'), 1, PATIENCE_MS)
    await timers.advance(CHECK_MS)
  }
  t.equal(server.totals.panics, 0)
  t.equal(server.workers.length, 1)
})

t.test('a stop waits for a thread that hangs no longer than for its end', async (t) => {
  const { server, client, timers, stand } = await serve(t)
  await client.ask(question('a'), 1, PATIENCE_MS)
  await stand('spin')
  let isStopped = false
  const stopped = server.supervisor.stop().then(() => {
    isStopped = true
  })
  await until(
    async () => {
      await timers.advance(CHECK_MS)
      return isStopped
    },
    'the stop',
    PATIENCE_MS,
  )
  await stopped
  t.equal(timers.count, 0, 'and the watchdog has ended')
})
