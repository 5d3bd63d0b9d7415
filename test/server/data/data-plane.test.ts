import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { CookieJar } from '../../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../../src/dns/edns/cookie-secrets.ts'
import { ServerCounts, ServerTotals } from '../../../src/server/counters.ts'
import { DataPlane } from '../../../src/server/data/data-plane.ts'
import { openDnsListener } from '../../../src/server/dns-listener.ts'
import { Supervisor } from '../../../src/server/supervisor.ts'
import { tcpDriver } from '../../../src/transport/tcp-driver.ts'
import { loadLibc } from '../../../src/transport/udp/batch/libc.ts'
import { composeQuery } from '../../support/client.ts'
import { lineBufferTo } from '../../support/line-buffer.ts'
import { until } from '../../support/until.ts'
import { type Client, TcpClient, udpClient } from '../../transport/client.ts'
import { feeds, Gate, LINES, TOY_NAMES, TOYS, waiting } from './toy-directives.ts'

// Long: it starts a server with threads for each case.

const IN_FLIGHT_MAX = 1024

// Threads start slowly on a machine that is busy.
const PATIENCE_MS = 60_000
/** A server with real data threads over toy directives; `text` is its Corefile. */
async function serve(t: Test, text: string) {
  const path = join(t.testdir({ Corefile: text }), 'Corefile')
  const lines: string[] = []
  const buffer = lineBufferTo(lines)
  const sink = (line: string): void => void lines.push(line)
  const log = createLogger('', sink, () => false)
  const counts = new ServerCounts()
  const totals = new ServerTotals(counts)
  const cookieSecrets = CookieSecrets.of(new Uint8Array(16))
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const plane = new DataPlane({
    libc: loadLibc(),
    start: (init, port) => {
      const url = new URL('./toy-data-thread.ts', import.meta.url)
      return new Worker(url, { workerData: { init, port, gate }, transferList: [port] })
    },
    socketsDefault: 1,
    dnsPort: 0,
    cookieSecrets: cookieSecrets.memory,
    groupsReplies: true,
    maxQueryAgeMs: 200,
    totals,
    counts,
    lines: buffer,
    log,
    timers: systemTimers,
    takesOver: false,
  })
  const supervisor = new Supervisor(
    { kind: 'file', path },
    {
      loadDirectives: async () => TOYS,
      directiveNames: TOY_NAMES,
      dnsPort: 0,
      env: {},
      clock: systemClock,
      timers: systemTimers,
      random: Math.random,
      metrics: new MetricsRegistry(),
      serverCounters: totals,
      sink,
      lines: buffer,
      openDns: (plan) =>
        openDnsListener(plan, {
          clock: systemClock,
          random: new Random(1),
          cookies: new CookieJar(cookieSecrets),
          counters: counts,
          log,
          drivers: [plane, tcpDriver()],
        }),
      openHttp: () => Promise.reject(new Error('no HTTP here')),
      openAdmin: () => Promise.reject(new Error('no admin API here')),
      dataThreads: plane,
    },
  )
  t.teardown(() => supervisor.stop())
  await supervisor.start()
  const { port } = supervisor.plans[0]!
  const client = await udpClient(port)
  t.teardown(() => client.close())
  const write = (text: string): void => writeFileSync(path, text)
  return { supervisor, totals, lines, client, port, write, gate }
}

let lastId = 0

/** Asks until it is answered, and returns the rcode: what comes to a thread that ends is lost. */
async function ask(client: Client, name: string): Promise<number> {
  const id = ++lastId & 0xffff
  const query = composeQuery({ name, type: 'A' }, id)
  const find = () => client.received.find((reply) => reply.readUInt16BE(0) === id)
  let sentMs = Number.NEGATIVE_INFINITY
  await until(
    () => {
      if (performance.now() > sentMs + 200 && find() === undefined) {
        client.send(query)
        sentMs = performance.now()
      }
      return find() !== undefined
    },
    `an answer for ${name}`,
    PATIENCE_MS,
  )
  return find()![3]! & 15
}

t.test('waiting queries are bounded, and delay no other query', async (t) => {
  const text = 'slow.example {\n slow\n}\nquick.example {\n quick\n}\n'
  const { totals, client, port } = await serve(t, text)
  const overloaded = () => totals.losses.overloaded ?? 0
  const query = composeQuery({ name: 'a.slow.example', type: 'A' }, 7)
  const total = 4 * IN_FLIGHT_MAX
  for (let sent = 0; sent < total; sent++) {
    client.send(query)
    // No more at a time than the kernel's buffers take.
    const inTime = () => waiting.length + overloaded() > sent - 100
    await until(inTime, 'queries to be taken', PATIENCE_MS)
  }
  await until(() => waiting.length + overloaded() === total, 'all to be taken', PATIENCE_MS)
  t.equal(waiting.length, IN_FLIGHT_MAX, 'the rest is dropped and counted')
  t.equal(client.received.length, 0)
  t.equal(await ask(client, 'a.quick.example'), 3)
  const tcp = await TcpClient.connect(port)
  tcp.send(composeQuery({ name: 'a.quick.example', type: 'A' }, 9))
  await until(() => tcp.received.length === 1 || tcp.closed, 'an answer over TCP')
  t.equal(tcp.received.length, 1, 'nor are connections cut')
  await tcp.close()
  while (waiting.length > 0) {
    const goal = client.received.length + Math.min(waiting.length, 64)
    for (const answer of waiting.splice(0, 64)) answer()
    await until(() => client.received.length === goal, 'the late answers', PATIENCE_MS)
  }
  client.send(query)
  await until(() => waiting.length === 1, 'room for more', PATIENCE_MS)
  waiting.splice(0)[0]?.()
})

t.test('a thread that ends is replaced, also while a reload is under way', async (t) => {
  const text = 'z.example {\n mortal\n quick\n}\n'
  const { supervisor, totals, lines, client, port, write } = await serve(t, text)
  t.equal(await ask(client, 'a.z.example'), 3)
  for (const [deaths, zone] of ['y', 'w', 'v'].entries()) {
    client.send(composeQuery({ name: 'x.z.example', type: 'A' }, 0))
    await until(() => totals.panics === deaths + 1, 'the death to be noticed', PATIENCE_MS)
    // The second and the third die within a second of their start: the next does not exist at once.
    write(`${text}${zone}.example {\n quick\n}\n`)
    t.equal(await supervisor.reload(), true, lines.join('\n'))
    t.equal(await ask(client, `a.${zone}.example`), 3, 'by the new instance')
    t.equal(await ask(client, 'a.z.example'), 3)
  }
  t.equal(supervisor.plans[0]!.port, port)
  const ended = lines.filter((line) => line.includes('Data thread 0 ended, starting another'))
  t.equal(ended.length, 3)
})

t.test('a thread that can not follow is replaced', async (t) => {
  const { totals, lines, client } = await serve(t, 'z.example {\n published\n quick\n}\n')
  feeds.at(-1)!.publish('bad')
  await until(() => totals.panics === 1, 'its end', PATIENCE_MS)
  feeds.at(-1)!.publish('good')
  t.equal(await ask(client, 'a.z.example'), 3)
  t.match(lines.join('\n'), /ended, starting another: Error: that can not be followed/)
})

t.test('a setup that fails in data threads only changes nothing', async (t) => {
  const text = 'z.example {\n quick\n}\n'
  const { supervisor, lines, client, write } = await serve(t, text)
  write(`${text}y.example {\n picky\n quick\n}\n`)
  t.equal(await supervisor.reload(), false)
  t.match(lines.join('\n'), /Restart failed: data thread: TypeError: not in this thread/)
  t.equal(await ask(client, 'a.z.example'), 3)
  t.equal(await ask(client, 'a.y.example'), 5, 'not served')
  write(`${text}y.example {\n quick\n}\n`)
  t.equal(await supervisor.reload(), true)
  t.equal(await ask(client, 'a.y.example'), 3)
})

t.test('a thread goes on serving while it loads what a reload names', async (t) => {
  const text = 'z.example {\n published\n quick\n}\n'
  const { supervisor, totals, lines, client, write, gate } = await serve(t, text)
  write(`${text}y.example {\n late\n quick\n}\n`)
  const served = feeds.at(-1)!
  const reloaded = supervisor.reload()
  await until(() => Atomics.load(gate, 0) === Gate.Wanted, 'the load', PATIENCE_MS)
  for (let i = 0; i < 20; i++) t.equal(await ask(client, `a${i}.z.example`), 3)
  served.publish('good')
  t.equal(await ask(client, 'a.y.example'), 5, 'not served yet')
  Atomics.store(gate, 0, Gate.Open)
  t.equal(await reloaded, true, lines.join('\n'))
  t.equal(await ask(client, 'a.y.example'), 3)
  t.equal(totals.panics, 0)
})

t.test('a directive that can not be loaded changes nothing', async (t) => {
  const text = 'z.example {\n quick\n}\n'
  const { supervisor, totals, lines, client, write } = await serve(t, text)
  write(`${text}y.example {\n absent\n quick\n}\n`)
  t.equal(await supervisor.reload(), false)
  t.match(lines.join('\n'), /Restart failed: data thread: Error: there is no such module/)
  t.equal(await ask(client, 'a.z.example'), 3)
  t.equal(await ask(client, 'a.y.example'), 5, 'not served')
  write(`${text}y.example {\n published\n quick\n}\n`)
  t.equal(await supervisor.reload(), true)
  t.equal(await ask(client, 'a.y.example'), 3)
  t.equal(totals.panics, 0)
})

t.test('faults are bounded as well', async (t) => {
  const text = 'liar.example {\n liar\n}\nquick.example {\n quick\n}\n'
  const { totals, lines, client } = await serve(t, text)
  const total = 3000
  for (let sent = 1; sent <= total; sent++) {
    client.send(composeQuery({ name: 'a.liar.example', type: 'A' }, sent))
    await until(() => totals.panics > sent - 100, 'queries to be taken', PATIENCE_MS)
  }
  await until(() => totals.panics === total, 'all to be taken', PATIENCE_MS)
  t.equal(await ask(client, 'a.quick.example'), 3)
  const logged = lines.filter((line) =>
    line.includes('a handler waits in a thread that cannot wait'),
  )
  t.ok(logged.length > 0 && logged.length <= total, `${logged.length} of ${total} logged`)
})

t.test('lines beyond what a thread may leave unread are dropped and counted', async (t) => {
  const { totals, lines, client } = await serve(t, 'z.example {\n chatty\n quick\n}\n')
  t.equal(await ask(client, 'a.z.example'), 3)
  const written = () => lines.filter((line) => line.includes('xxx')).length
  const dropped = () => totals.losses.lines ?? 0
  // It was asked more than once where the thread was slow to start.
  const isWhole = () => written() > 0 && (written() + dropped()) % LINES === 0
  await until(isWhole, 'the lines', PATIENCE_MS)
  t.ok(dropped() > 0)
  t.ok(written() > 100, `${written()} written, ${dropped()} dropped`)
})
