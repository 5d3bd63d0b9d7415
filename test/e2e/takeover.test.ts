import { writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BurstClient } from '../support/burst-client.ts'
import { composeQuery } from '../support/client.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

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
/** Queries over all takeovers of the first address. */
const TOTAL = 1_000_000
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

/** A second server on the addresses of `old`, which is told to end once it serves. */
async function takeOver(t: Test, old: RunningServer, text: string): Promise<RunningServer> {
  const next = await startServer(t, { corefile: text, beside: old, args: ['-takeover'] })
  old.process.kill('SIGTERM')
  return next
}

for (const [bind, server, local] of [
  ['127.0.0.1', '127.0.0.1', '127.0.0.1'],
  ['0.0.0.0', '127.0.0.2', '127.0.0.1'],
  ['::', '::1', '::1'],
  ['::', '127.0.0.2', '127.0.0.1'],
] as const) {
  t.test(`bind ${bind}: nothing sent to ${server} is lost over takeovers`, async (t) => {
    const takeovers = bind === '127.0.0.1' ? TAKEOVERS : 1
    const total = bind === '127.0.0.1' ? TOTAL : 1000
    let running = await startServer(t, { corefile: corefile(bind), files: FILES })
    const client = new BurstClient({
      server,
      local,
      port: running.port,
      sockets: 16,
      window: 12,
      query: QUERY,
    })
    t.teardown(() => client.close())
    const asked = client.run(Number.POSITIVE_INFINITY)
    for (let done = 0; done < takeovers; done++) {
      const goal = client.answered + total / takeovers
      const old = running
      running = await takeOver(t, old, corefile(bind))
      t.equal(await old.exited(), 0)
      await until(() => client.answered > goal || client.isStuck, 'answers', 60_000)
    }
    client.finish()
    await asked
    t.equal(client.sent - client.answered, 0, `${client.sent} sent, ${takeovers} takeovers`)
    t.ok(client.sent >= total)
    t.equal(client.bad, 0)
  })
}

t.test('reloads that change the number of threads lose nothing', async (t) => {
  const server = await startServer(t, { corefile: corefile('127.0.0.1'), files: FILES })
  const client = new BurstClient({
    server: '127.0.0.1',
    local: '127.0.0.1',
    port: server.port,
    sockets: 16,
    window: 8,
    query: QUERY,
  })
  t.teardown(() => client.close())
  const asked = client.run(Number.POSITIVE_INFINITY)
  for (const [done, threads] of [3, 1, 2].entries()) {
    const text = corefile('127.0.0.1').replace('multisocket 2', `multisocket ${threads}`)
    writeFileSync(
      join(server.directory, 'Corefile'),
      text.replaceAll('{PORT}', String(server.port)),
    )
    server.process.kill('SIGUSR1')
    const reloads = () => server.output().split('Reloading complete').length - 1
    await until(() => reloads() > done || client.isStuck, 'the reload')
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

/** Does the same over and over, several at a time, until told to stop; counts what came of it. */
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
  for (let takeovers = 0; takeovers < TAKEOVERS; takeovers++) {
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

t.test('the old one serves on during lameduck', async (t) => {
  const health = await freePort()
  const text = corefile('127.0.0.1', `health 127.0.0.1:${health} {\n lameduck 1s\n }`)
  const old = await startServer(t, { corefile: text, files: FILES })
  const client = new BurstClient({
    server: '127.0.0.1',
    local: '127.0.0.1',
    port: old.port,
    sockets: 16,
    window: 4,
    query: QUERY,
  })
  t.teardown(() => client.close())
  old.process.kill('SIGTERM')
  await until(() => old.output().includes('Going into lameduck'), 'lameduck')
  await client.run(2000)
  t.equal(client.answered, 2000, 'with nobody else there')
  t.equal(old.process.exitCode, null)
  await startServer(t, { corefile: text, beside: old, args: ['-takeover'] })
  const asked = client.run(Number.POSITIVE_INFINITY)
  t.equal(await old.exited(), 0)
  client.finish()
  await asked
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

t.test('where sockets can not be shared -takeover is refused', async (t) => {
  const second = await startServer(t, {
    corefile: corefile('127.0.0.1'),
    files: FILES,
    args: ['-takeover'],
    env: { SEXTANT_UDP: 'dgram' },
    mustStart: false,
  })
  t.equal(await second.exited(), 1)
  t.match(second.output(), /^-takeover needs sockets that .* dgram \(SEXTANT_UDP\)$/m)
})
