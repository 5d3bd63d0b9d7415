import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
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
    const server = new HttpServer({ answer: () => {}, replyMsMax: 1000, tls: { cert, key } })
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
