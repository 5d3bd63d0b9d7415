import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import { RRType } from '../../src/dns/iana/index.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import { openDnsListener } from '../../src/server/dns-listener.ts'
import type { ListenPlan } from '../../src/server/listen-plan.ts'
import { tcpDriver } from '../../src/transport/tcp-driver.ts'
import { dgramDriver } from '../../src/transport/udp/dgram.ts'
import { until } from '../support/until.ts'

const parts = {
  drivers: [dgramDriver(), tcpDriver()],
  clock: systemClock,
  random: new Random(1),
  log: createLogger(
    '',
    () => {},
    () => false,
  ),
  counters: new ServerCounts(),
  cookies: new CookieJar(CookieSecrets.of(new Uint8Array(16))),
}

/** Serves the root with one rcode for everything. */
function plan(rcode: number, port = 0, readMs = 3000): ListenPlan {
  const chain = { name: 'toy', serve: () => rcode }
  const block = { zone: new Uint8Array(1), zoneText: '.', chain, filters: [], viewName: '' }
  return {
    address: `dns://127.0.0.1:${port}`,
    scheme: 'dns',
    host: '127.0.0.1',
    port,
    blocks: [{ ...block, bufsizeOctets: 1232, debug: false }],
    sockets: 0,
    configs: [],
    waitingMax: 0,
    timeouts: { readMs, writeMs: 5000, idleMs: 10_000, queriesMax: -1 },
    asked: { key: `dns://.:${port} on 127.0.0.1`, position: { file: 'Corefile', line: 7 } },
  }
}

async function open(t: Test, first: ListenPlan) {
  const listener = await openDnsListener(first, parts)
  t.teardown(() => listener.close())
  return listener
}

const QUERY = Buffer.from('000101000001000000000000000001' + '0001', 'hex')

async function askUdp(port: number): Promise<number> {
  const socket = createSocket('udp4')
  socket.send(QUERY, port, '127.0.0.1')
  const [reply] = await once(socket, 'message')
  socket.close()
  return reply[3] & 15
}

async function askTcp(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.write(Buffer.concat([Buffer.from([0, QUERY.length]), QUERY]))
  const [reply] = await once(socket, 'data')
  socket.destroy()
  return reply[5] & 15
}

t.test('both sockets have one port, and serve with the given function', async (t) => {
  const listener = await open(t, plan(5))
  t.ok(listener.port > 0)
  t.strictSame([await askUdp(listener.port), await askTcp(listener.port)], [5, 5])
  listener.use(plan(2))
  t.strictSame([await askUdp(listener.port), await askTcp(listener.port)], [2, 2])
})

t.test('new timeouts hold for the next connection', async (t) => {
  const listener = await open(t, plan(5, 0, 60_000))
  listener.use(plan(5, 0, 20))
  const socket = connect(listener.port, '127.0.0.1')
  socket.resume()
  await once(socket, 'close')
  t.pass('closed long before the first timeout')
})

t.test('an address in use names who asked for it', async (t) => {
  const { port } = await open(t, plan(5))
  await t.rejects(openDnsListener(plan(5, port), parts), {
    position: { file: 'Corefile', line: 7 },
    message: `listen udp 127.0.0.1:${port}: address already in use (asked for by dns://.:${port} on 127.0.0.1)`,
  })
})

t.test('queries that directives let wait do not take the room of others', async (t) => {
  const WAITING_MAX = 1500
  const NS = Buffer.from('000101000001000000000000000002' + '0001', 'hex')
  let waiting = 0
  const ends: ((rcode: number) => void)[] = []
  const serve = ({ query }: Transaction): number | Promise<number> => {
    if (query.qtype !== RRType.NS) return 5
    waiting++
    return new Promise((end) => ends.push(end))
  }
  const first = plan(5)
  const blocks = first.blocks.map((block) => ({ ...block, chain: { name: 'toy', serve } }))
  const { port } = await open(t, { ...first, blocks, waitingMax: WAITING_MAX })
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  // In steps that the buffer of a socket holds.
  while (waiting < WAITING_MAX) {
    const next = waiting + 50
    for (let i = waiting; i < next; i++) socket.send(NS, port, '127.0.0.1')
    await until(() => waiting >= next, 'the queries')
  }
  t.equal(await askUdp(port), 5)
  for (const end of ends) end(2)
})
