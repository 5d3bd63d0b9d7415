import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { composeQuery } from '../support/client.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { wireQuery } from '../support/wire.ts'
import { BurstClient } from './burst-client.ts'
import { TcpTalk } from './tcp-talk.ts'

// Long: it starts many servers.

const FILES = {
  'records/a.json': JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a', namespace: 'default' },
    spec: {
      rootHost: 'a.z.example',
      endpoints: [{ dnsName: 'a.z.example', recordType: 'A', targets: ['192.0.2.1'] }],
    },
  }),
}
const QUERY = composeQuery({ name: 'a.z.example', type: 'A' }, 0)
/** Queries over all takeovers of the first address: none can be lost except around a takeover. */
const TOTAL = 200_000
const TAKEOVERS = 3

const corefile = (bind: string, extra = '') => `z.example:{PORT} {
    bind ${bind}
    errors
    multisocket 2
    kuadrant {
        manifests records
    }
    ${extra}
}
`

/** A second server on the addresses of `old`, which ends once this one serves. */
async function takeOver(t: Test, old: RunningServer, text: string): Promise<RunningServer> {
  const args = ['-takeover', '-pidfile', 'pid']
  const next = await startServer(t, { corefile: text, beside: old, args })
  old.process.kill('SIGTERM')
  return next
}

/** Asks as fast as answers come, from `local`. */
function load(t: Test, port: number, server: string, local: string, window: number): BurstClient {
  const client = new BurstClient({ server, local, port, sockets: 16, window, query: QUERY })
  t.teardown(() => client.close())
  return client
}

t.test(`none of ${TOTAL} queries over ${TAKEOVERS} takeovers is lost`, async (t) => {
  const text = corefile('127.0.0.1')
  let running = await startServer(t, { corefile: text, files: FILES, args: ['-pidfile', 'pid'] })
  const client = load(t, running.port, '127.0.0.1', '127.0.0.1', 12)
  const asked = client.run(Number.POSITIVE_INFINITY)
  for (let done = 0; done < TAKEOVERS; done++) {
    const goal = client.answered + TOTAL / TAKEOVERS
    const old = running
    running = await takeOver(t, old, text)
    t.equal(await old.exited(), 0)
    const pid = readFileSync(join(old.directory, 'pid'), 'utf8')
    t.equal(pid, `${running.process.pid}\n`, 'the process id is that of the new one')
    await until(() => client.answered > goal || client.isStuck, 'answers', 300_000)
  }
  client.finish()
  await asked
  t.equal(client.sent - client.answered, 0, `${client.sent} sent, ${TAKEOVERS} takeovers`)
  t.ok(client.sent >= TOTAL)
  t.equal(client.bad, 0)
})

for (const [bind, ...peers] of [
  ['0.0.0.0', ['127.0.0.2', '127.0.0.1']],
  ['::', ['::1', '::1'], ['127.0.0.2', '127.0.0.1']],
] as const) {
  t.test(`bind ${bind}: a takeover loses nothing either`, async (t) => {
    const old = await startServer(t, { corefile: corefile(bind), files: FILES })
    const clients = peers.map(([server, local]) => load(t, old.port, server, local, 6))
    const asked = clients.map((client) => client.run(Number.POSITIVE_INFINITY))
    await takeOver(t, old, corefile(bind))
    t.equal(await old.exited(), 0)
    for (const [i, client] of clients.entries()) {
      const goal = client.answered + 1000
      await until(() => client.answered > goal || client.isStuck, 'answers')
      client.finish()
      await asked[i]
      t.equal(client.sent - client.answered, 0, `${client.sent} sent to ${peers[i]![0]}`)
      t.equal(client.bad, 0)
    }
  })
}

/** The kernel's numbers of a process's sockets. */
function socketsOf({ process: { pid } }: RunningServer): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return target.startsWith('socket:') ? [target] : []
    } catch {
      return [] // closed since the directory was read
    }
  })
}

t.test('reloads lose nothing, also those that change the number of threads', async (t) => {
  const server = await startServer(t, { corefile: corefile('127.0.0.1'), files: FILES })
  const client = load(t, server.port, '127.0.0.1', '127.0.0.1', 8)
  const before = socketsOf(server)
  const asked = client.run(Number.POSITIVE_INFINITY)
  for (const [done, threads] of [2, 3, 1, 2].entries()) {
    const text = corefile('127.0.0.1').replace('multisocket 2', `multisocket ${threads}`)
    const path = join(server.directory, 'Corefile')
    writeFileSync(path, text.replaceAll('{PORT}', String(server.port)))
    server.process.kill('SIGUSR1')
    const reloads = () => server.output().split('Reloading complete').length - 1
    await until(() => reloads() > done || client.isStuck, 'the reload')
    if (done === 0) t.same(socketsOf(server), before, 'no socket is closed or opened')
    const goal = client.answered + 10_000
    await until(() => client.answered > goal || client.isStuck, 'answers')
  }
  client.finish()
  await asked
  t.equal(client.sent - client.answered, 0, `${client.sent} sent`)
  t.equal(client.bad, 0)
})

/** Asks one query over a connection of its own; what came back, or how it failed. */
function askOnce(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const frame = Buffer.alloc(2 + QUERY.length)
    frame.writeUInt16BE(QUERY.length)
    frame.set(QUERY, 2)
    let got = Buffer.alloc(0)
    socket.on('connect', () => socket.write(frame))
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk])
      if (got.length < 2 || got.length < 2 + got.readUInt16BE(0)) return
      resolve(`answers ${got.readUInt16BE(2 + 6)}`)
      socket.destroy()
    })
    socket.on('error', (error) => resolve(error.message))
    socket.on('end', () => resolve('ended'))
  })
}

/** One GET over a connection of its own: status, or how it failed. */
function probe(port: number, path: string): Promise<string> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume()
      resolve(String(response.statusCode))
    })
    request.on('error', (error) => resolve(error.message))
  })
}

/** Repeats the same request, several at a time, until the test stops it; counts the results. */
function repeat(act: () => Promise<string>, atOnce: number) {
  const results = new Map<string, number>()
  let isOver = false
  const going = Array.from({ length: atOnce }, async () => {
    while (!isOver) {
      const result = await act()
      results.set(result, (results.get(result) ?? 0) + 1)
    }
  })
  const stop = async () => {
    isOver = true
    await Promise.all(going)
    return Object.fromEntries(results)
  }
  return { stop, count: () => [...results.values()].reduce((sum, n) => sum + n, 0) }
}

t.test('connections and probes fail at no time', async (t) => {
  const [health, ready] = [await freePort(), await freePort()]
  const text = corefile('127.0.0.1', `health 127.0.0.1:${health}\n ready 127.0.0.1:${ready}`)
  let running = await startServer(t, { corefile: text, files: FILES })
  const { port } = running
  const tcp = repeat(() => askOnce(port), 8)
  const alive = repeat(() => probe(health, '/health'), 2)
  const serving = repeat(() => probe(ready, '/ready'), 2)
  // The second takes over from one that took over itself.
  for (let takeovers = 0; takeovers < 2; takeovers++) {
    const old = running
    running = await takeOver(t, old, text)
    t.equal(await old.exited(), 0)
    const before = tcp.count()
    await until(() => tcp.count() > before + 100, 'answers over TCP')
  }
  t.same(Object.keys(await tcp.stop()), ['answers 1'])
  t.same(Object.keys(await alive.stop()), ['200'])
  t.same(Object.keys(await serving.stop()), ['200'])
})

t.test(
  'connections stay open and lose no query, whatever the pauses of their clients',
  async (t) => {
    const keepalive = wireQuery({ name: 'a.z.example', edns: { options: [[11, Buffer.alloc(0)]] } })
    const manners = [
      { query: QUERY, pauseMs: 0 },
      { query: QUERY, pauseMs: 0, window: 8 },
      { query: QUERY, pauseMs: 20 },
      { query: QUERY, pauseMs: 400 },
      { query: QUERY, pauseMs: 3000 },
      { query: keepalive, pauseMs: 0 },
      { query: keepalive, pauseMs: 400 },
    ]
    // A server that is at rest for seconds, or a client, is no reason to end a connection.
    const text = corefile('127.0.0.1', 'timeouts {\n read 5m\n idle 5m\n }')
    let running = await startServer(t, { corefile: text, files: FILES })
    const talks = manners.flatMap((manner) =>
      [1, 2, 3, 4].map(() => new TcpTalk(running.port, manner)),
    )
    const sum = (of: (talk: TcpTalk) => number) => talks.reduce((all, talk) => all + of(talk), 0)
    const answered = () => sum((talk) => talk.answered)
    for (let takeovers = 0; takeovers < 4; takeovers++) {
      const before = answered()
      await until(() => answered() > before + 200, 'answers')
      const old = running
      running = await takeOver(t, old, text)
      t.equal(await old.exited(), 0)
    }
    await Promise.all(talks.map((talk) => talk.stop()))
    t.comment(`${answered()} answers`)
    t.equal(
      sum((talk) => talk.lost),
      0,
    )
    t.equal(
      sum((talk) => talk.connections),
      talks.length,
      'each client has one connection all the time',
    )
  },
)

t.test('the old one serves on during lameduck', async (t) => {
  const health = await freePort()
  const text = corefile('127.0.0.1', `health 127.0.0.1:${health} {\n lameduck 10s\n }`)
  const old = await startServer(t, { corefile: text, files: FILES })
  const client = load(t, old.port, '127.0.0.1', '127.0.0.1', 4)
  old.process.kill('SIGTERM')
  await old.prints(/Going into lameduck/)
  await client.run(2000)
  t.equal(client.answered, 2000, 'without another server')
  t.equal(old.process.exitCode, null)
  await startServer(t, { corefile: text, beside: old, args: ['-takeover'] })
  let hasEnded = false
  const ended = old.exited().finally(() => {
    hasEnded = true
  })
  // A burst every now and then: the lameduck is long, and the load of a busy client is tested above.
  const ask = async () => {
    await client.run(client.answered + 100)
    return hasEnded || client.isStuck
  }
  await until(ask, 'the end of the lameduck')
  t.equal(await ended, 0)
  t.equal(client.sent - client.answered, 0)
})

t.test('without -takeover a second server is refused', async (t) => {
  const old = await startServer(t, { corefile: corefile('127.0.0.1'), files: FILES })
  const second = await startServer(t, {
    corefile: corefile('127.0.0.1'),
    beside: old,
    mustStart: false,
  })
  t.equal(await second.exited(), 1)
  t.match(second.output(), /listen udp 127\.0\.0\.1:\d+: address already in use/)
  t.equal(await askOnce(old.port), 'answers 1')
})

t.test('-takeover is refused if sockets can not be shared', async (t) => {
  const second = await startServer(t, {
    corefile: corefile('127.0.0.1'),
    files: FILES,
    args: ['-takeover'],
    env: { SEXTANT_UDP: 'dgram' },
    mustStart: false,
  })
  t.equal(await second.exited(), 1)
  t.match(second.output(), /^-takeover requires batched UDP, but UDP is dgram \(SEXTANT_UDP\)$/m)
})
