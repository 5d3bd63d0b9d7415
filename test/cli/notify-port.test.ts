import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { openNotifyPort } from '../../src/cli/notify-port.ts'
import { ask, questionOf } from '../../src/client/ask.ts'
import { Opcode, Rcode, RRType } from '../../src/dns/iana/index.ts'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { NotifyReceiver } from '../../src/operator/notify/notify-receiver.ts'
import { KDRNT_ZONE } from '../../src/records/local-zone.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

const NOTIFY = { ...questionOf(KDRNT_ZONE, RRType.SOA), opcode: Opcode.NOTIFY }

async function setUp(t: Test, hosts: readonly string[] = ['127.0.0.1']) {
  const lines: string[] = []
  const outcomes: string[] = []
  let asked = 0
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => false,
  )
  const receiver = new NotifyReceiver({
    clock: systemClock,
    keys: { named: () => [] },
    allowed: [],
    hasten: () => {
      asked++
      return 'hastened'
    },
    count: (outcome) => outcomes.push(outcome),
    refusals: { note: () => {} },
    seed: 1,
  })
  const addresses = await Promise.all(hosts.map(async (host) => ({ host, port: await freePort() })))
  const listeners = await openNotifyPort(addresses, receiver, log)
  const close = async (): Promise<void> => {
    for (const listener of listeners) await listener.close()
  }
  t.teardown(close)
  return { lines, outcomes, asked: () => asked, ports: listeners.map(({ port }) => port), close }
}

async function udp(t: Test): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return socket
}

t.test('a NOTIFY is answered over UDP and TCP, at each address', async (t) => {
  const { ports, asked, lines } = await setUp(t, ['127.0.0.1', '127.0.0.2'])
  t.equal(new Set(ports).size, 2, 'TCP and UDP have one port')
  for (const [i, host] of ['127.0.0.1', '127.0.0.2'].entries()) {
    const server = { host, port: ports[2 * i]! }
    for (const tries of [1, 0]) {
      const answered = await ask({ server, query: NOTIFY, timeoutMs: 10_000, tries })
      t.match(answered, { kind: 'reply', message: { opcode: Opcode.NOTIFY, rcode: Rcode.NOERROR } })
    }
  }
  t.equal(asked(), 4)
  t.match(lines, [/listening for NOTIFY on 127\.0\.0\.1:\d+$/, /127\.0\.0\.2/])
})

t.test('a flood of anything leaves the event loop to others, and the port open', async (t) => {
  const { ports, outcomes } = await setUp(t)
  const port = ports[0]!
  const socket = await udp(t)
  let answers = 0
  socket.on('message', () => answers++)
  const good = composeMessage({ ...NOTIFY, id: 1 })
  let turns = 0
  const count = setInterval(() => turns++, 1)
  t.teardown(() => clearInterval(count))
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 100; i++) {
      const packet = good.slice(0, i % 5 === 0 ? good.length : (i * 7) % good.length)
      socket.send(packet, port, '127.0.0.1')
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  await until(() => outcomes.length > 100, 'the flood')
  t.ok(turns > 0, 'timers had their turn')
  t.ok(answers <= outcomes.length)
  const isAnswered = async () => {
    const server = { host: '127.0.0.1', port }
    return (await ask({ server, query: NOTIFY, timeoutMs: 500, tries: 1 })).kind === 'reply'
  }
  await until(isAnswered, 'an answer after the flood')
})

t.test('connections are few, and those that say nothing go', async (t) => {
  const { ports } = await setUp(t)
  const sockets = Array.from({ length: 20 }, () => connect(ports[0]!, '127.0.0.1'))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  let open = 20
  for (const socket of sockets) {
    socket.on('error', () => {})
    socket.on('close', () => open--)
    // Without a reader nothing is heard of the other side's end.
    socket.resume()
  }
  await until(() => open <= 8, 'those over the limit of one address to be cut')
  await until(() => open === 0, 'the silent ones to be cut')
})

t.test('the port closes during a flood and with open connections', async (t) => {
  const { ports, close } = await setUp(t)
  const port = ports[0]!
  const socket = await udp(t)
  socket.on('error', () => {})
  const good = composeMessage({ ...NOTIFY, id: 1 })
  const flood = setInterval(() => socket.send(good, port, '127.0.0.1', () => {}), 1)
  t.teardown(() => clearInterval(flood))
  const half = connect(port, '127.0.0.1')
  half.on('error', () => {})
  await once(half, 'connect')
  half.write(Buffer.from([0, good.length, 1]))
  await close()
  clearInterval(flood)
  const again = createServer().listen(port, '127.0.0.1')
  await once(again, 'listening')
  again.close()
  half.destroy()
})

t.test('an address that is taken is an error, and leaves none open', async (t) => {
  const port = await freePort()
  const taken = createServer().listen(port, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const receiver = {} as NotifyReceiver
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const other = await freePort()
  const addresses = [
    { host: '127.0.0.3', port: other },
    { host: '127.0.0.1', port },
  ]
  await t.rejects(openNotifyPort(addresses, receiver, log), { code: 'EADDRINUSE' })
  const again = createServer().listen(other, '127.0.0.3')
  await once(again, 'listening')
  again.close()
})
