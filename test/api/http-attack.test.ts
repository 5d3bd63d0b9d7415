import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openHttp } from '../../src/api/http.ts'
import { until } from '../support/until.ts'

// Long: it attacks a server for tens of seconds.

const PLACES = 256
const PLACES_PER_CLIENT = 16

const CONNECTIONS = PLACES + 64
/** Larger than what the kernel takes in for a client that does not read. */
const METRICS = 'x'.repeat(8_000_000)

/** What an attacker sends on each connection. */
const ATTACKS: readonly { name: string; send: string }[] = [
  { name: 'nothing', send: '' },
  { name: 'half a header', send: 'GET /health HTTP/1.1\r\nX-A: b\r\n' },
  {
    name: 'a body that never ends',
    send: 'POST /health HTTP/1.1\r\nContent-Length: 9999\r\n\r\nx',
  },
  { name: 'a request whose reply is not read', send: 'GET /metrics HTTP/1.1\r\n\r\n' },
  { name: 'many requests at once', send: 'GET /metrics HTTP/1.1\r\n\r\n'.repeat(500) },
  { name: 'large headers', send: `GET /health HTTP/1.1\r\nX: ${'a'.repeat(100_000)}` },
]

async function open(t: Test) {
  let printed = 0
  const route = (path: string, body: string) => ({
    path,
    reply: () => {
      if (path === '/metrics') printed++
      return { status: 200, contentType: 'text/plain', body }
    },
  })
  const listener = await openHttp({
    address: '127.0.0.1:0',
    routes: [route('/health', 'OK'), route('/metrics', METRICS)],
    onError: (_path, error) => t.fail(String(error)),
  })
  t.teardown(() => listener.close())
  return { listener, port: listener.port, printed: () => printed }
}

/** The status of a probe from `localAddress`, or why there is none. */
function probe(port: number, localAddress: string): Promise<string> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, localAddress, path: '/health', agent: false }
    get(options, (response) => {
      response.resume()
      response.on('end', () => resolve(`${response.statusCode}`))
    }).on('error', (error) => resolve(error.message))
  })
}

/** Connections from 127.1.0.1 on, as many of each address; `closed`: how many the server has ended. */
async function attack(t: Test, port: number, send: string, perAddress: number) {
  const state = { closed: 0 }
  const sockets: Socket[] = []
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (let i = 0; i < CONNECTIONS; i++) {
    const n = Math.floor(i / perAddress) + 1
    const localAddress = `127.1.${n >> 8}.${n & 255}`
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('close', () => state.closed++)
    // Never reads.
    socket.pause()
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
    socket.write(send)
  }
  return { state, sockets }
}

t.test('probes are answered during an attack, by whatever addresses', async (t) => {
  for (const { name, send } of ATTACKS) {
    for (const perAddress of [1, 10, CONNECTIONS]) {
      await t.test(`${name}, ${perAddress} connections of each address`, async (t) => {
        const { port, printed } = await open(t)
        t.equal(await probe(port, '127.0.0.2'), '200', 'a kubelet is there before')
        const { state, sockets } = await attack(t, port, send, perAddress)
        for (const from of ['127.0.0.1', '127.0.0.2']) {
          t.equal(await probe(port, from), '200', `from ${from}, in the attack`)
        }
        t.ok(printed() <= CONNECTIONS, 'a connection has one reply at a time')
        const places = perAddress === CONNECTIONS ? PLACES_PER_CLIENT : PLACES
        await until(() => {
          // To read would be to read gigabytes; who writes learns of an end as well.
          for (const socket of sockets) if (!socket.destroyed) socket.write('\r\n')
          return state.closed >= CONNECTIONS - places
        }, 'the others to be ended')
      })
    }
  }
})

t.test('connections that neither ask nor read end soon', async (t) => {
  for (const { name, send } of ATTACKS.slice(0, 4)) {
    const { port } = await open(t)
    const socket = connect({ host: '127.0.0.1', port })
    socket.on('error', () => {})
    socket.write(send)
    if (!name.includes('not read')) socket.resume()
    // Without reading, a write shows that the connection has ended.
    await until(() => {
      if (!socket.destroyed && name.includes('not read')) socket.write('\r\n')
      return socket.destroyed
    }, name)
    t.pass(name)
  }
})

t.test('a close waits for no client that does not ask', async (t) => {
  const { port, listener } = await open(t)
  const socket = connect({ host: '127.0.0.1', port })
  await new Promise((resolve) => socket.once('connect', resolve))
  t.equal(await probe(port, '127.0.0.1'), '200', 'the connection before was accepted')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume()
  await listener.close()
  await closed
})

t.test('a close waits for no client whose header arrives octet by octet', async (t) => {
  const { port, listener } = await open(t)
  const socket = connect({ host: '127.0.0.1', port })
  await new Promise((resolve) => socket.once('connect', resolve))
  const drip = setInterval(() => socket.write('x'), 500)
  t.teardown(() => clearInterval(drip))
  // It is reset.
  socket.on('error', () => {})
  socket.write('GET /health HTTP/1.1\r\nX-A: ')
  t.equal(await probe(port, '127.0.0.1'), '200', 'the connection before was accepted')
  let isClosed = false
  void listener.close().then(() => (isClosed = true))
  await until(() => isClosed, 'the listener closes')
  t.pass('it closes')
})
