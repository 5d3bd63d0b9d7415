import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { HttpServer } from '../../../src/api/http-server.ts'
import { ReusePortBinder } from '../../../src/transport/handover/reuse-port-binder.ts'
import { listenTcp } from '../../../src/transport/tcp.ts'
import { loadLibc } from '../../../src/transport/udp/batch/libc.ts'
import { selfSigned } from '../../support/certificate.ts'
import { until } from '../../support/until.ts'
import { TcpClient } from '../client.ts'
import { Echo, Wish } from '../echo.ts'

const CLIENTS = 90
/** More connections than can be accepted in 100 ms, if each takes `ACCEPT_MS`. */
const QUEUED = 110
const ACCEPT_MS = 1

t.test('many connections are accepted in one turn of the event loop', async (t) => {
  const listener = await listenTcp({
    host: '127.0.0.1',
    port: 0,
    handler: new Echo(),
    reusePortBinder: new ReusePortBinder(loadLibc(), false, () => {}),
    limits: { messageOctetsMin: 1 },
  })
  t.teardown(() => listener.close())
  const sockets = Array.from({ length: CLIENTS }, () => {
    return connect({ host: '127.0.0.1', port: listener.port })
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  let most = 0
  for (let before = 0; before < CLIENTS; before = listener.connections) {
    await nextTurn()
    most = Math.max(most, listener.connections - before)
  }
  t.ok(most > 5, `at most ${most} in one turn`)
  for (const socket of sockets) socket.destroy()
  await until(() => listener.connections === 0, 'the end of all')
})

/** Keeps the thread busy. */
function spin(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

const activeMs = (): number => performance.eventLoopUtilization().active

/** Takes `ACCEPT_MS` for each connection, and notes when it accepts, in milliseconds of the thread's active time. */
class SlowBinder extends ReusePortBinder {
  calls = 0
  firstMs = 0
  lastMs = 0

  override accept(fd: number): number {
    if (this.calls++ === 0) this.firstMs = activeMs()
    spin(ACCEPT_MS)
    const accepted = super.accept(fd)
    this.lastMs = activeMs()
    return accepted
  }
}

/** Connects `QUEUED` times while the thread that accepts is busy, and counts the connections in `connected`. */
const CLIENTS_THREAD = `
  const { port, connected } = require('node:worker_threads').workerData
  const connect = () => require('node:net').connect({ host: '127.0.0.1', port }, () => {
    Atomics.add(connected, 0, 1)
    Atomics.notify(connected, 0)
  })
  Array.from({ length: ${QUEUED} }, connect)
`

t.test('a busy thread accepts for as long as its other work took, at most 100 ms', async (t) => {
  const binder = new SlowBinder(loadLibc(), false, () => {})
  const listener = await listenTcp({
    host: '127.0.0.1',
    port: 0,
    handler: new Echo(),
    reusePortBinder: binder,
    limits: { connectionsPerAddressMax: 1000 },
  })
  t.teardown(() => listener.close())
  const first = await TcpClient.connect(listener.port)
  await until(() => binder.calls === 1, 'the first connection')
  const previousMs = binder.lastMs
  binder.calls = 0
  const connected = new Int32Array(new SharedArrayBuffer(4))
  const workerData = { port: listener.port, connected }
  const clients = new Worker(CLIENTS_THREAD, { eval: true, workerData })
  const busyFromMs = activeMs()
  for (let n = 0; n < QUEUED; n = Atomics.load(connected, 0))
    if (Atomics.wait(connected, 0, n, 60_000) === 'timed-out') throw new Error(`${n} connected`)
  spin(20)
  const busyEndMs = activeMs()
  while (binder.calls === 0) await nextTurn()
  const acceptedMs = binder.lastMs - busyEndMs
  const otherMs = binder.firstMs - previousMs
  const took = `${binder.calls} in ${acceptedMs} ms after ${otherMs} ms of other work`
  // On a busy machine the active time was 6 ms behind that of the accepts.
  t.ok(acceptedMs >= 0.8 * Math.min(busyEndMs - busyFromMs, 100), `long enough: ${took}`)
  t.ok(binder.calls <= Math.min(otherMs, 100) / ACCEPT_MS + 1, `no longer: ${took}`)
  await until(() => listener.connections === QUEUED + 1, 'the rest')
  await clients.terminate()
  await first.close()
})

t.test('such a connection is served as any other, and ends with the listener', async (t) => {
  const listener = await listenTcp({
    host: '127.0.0.1',
    port: 0,
    handler: new Echo(),
    reusePortBinder: new ReusePortBinder(loadLibc(), false, () => {}),
    limits: { messageOctetsMin: 1, quietMs: 0 },
  })
  const clients = await Promise.all(
    Array.from({ length: 20 }, () => TcpClient.connect(listener.port)),
  )
  for (const [i, client] of clients.entries()) client.send(Buffer.of(Wish.Echo, i))
  await until(() => clients.every(({ received }) => received.length === 1), 'all replies')
  t.strictSame(
    clients.map(({ received }) => received[0]![1]),
    clients.map((_, i) => i),
  )
  await listener.close()
  await until(() => clients.every(({ ended }) => ended), 'the end of all')
})

t.test(
  'a client that ends a connection during the handshake of TLS leaves no socket',
  async (t) => {
    const { cert, key } = selfSigned('localhost')
    const server = new HttpServer({ answer: () => {}, replyMsMax: () => 1000, tls: { cert, key } })
    const binder = new ReusePortBinder(loadLibc(), false, () => {})
    let more = 0
    const port = await server.listen('127.0.0.1:0', {
      bind: (host, port) => binder.bind(host, port),
      claim: (fd) => binder.claim(fd),
      accept: (fd) => {
        const accepted = binder.accept(fd)
        if (accepted !== -1) more++
        return accepted
      },
    })
    t.teardown(() => server.close())
    let opened = 0
    let open = 0
    let late = 0
    server.server.on('connection', (socket) => {
      opened++
      open++
      socket.once('close', () => open--)
    })
    server.server.on('tlsClientError', (error) => {
      if ('code' in error && error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') late++
    })
    const sockets = Array.from({ length: 8 }, () => {
      const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
      return socket.on('error', () => {}).once('connect', () => socket.end())
    })
    t.teardown(() => {
      for (const socket of sockets) socket.destroy()
    })
    await until(() => opened === sockets.length && open === 0, 'the end of all')
    t.ok(more > 0, `${more} were accepted in the turn of another`)
    t.equal(late, 0, 'none waited for the timeout of the handshake')
  },
)
