import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { PACKET_OCTETS_MAX } from '../../../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { listenBatch } from '../../../../src/transport/udp/batch/listener.ts'
import { udpClient } from '../../client.ts'
import { Echo, until, Wish } from '../../echo.ts'

const ipv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)

/** Asks `host` from an unconnected socket, which takes answers from anywhere; says where it came from. */
async function answererOf(host: string, port: number): Promise<string> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  socket.send(Buffer.from([Wish.Echo]), port, host)
  const [, from] = (await once(socket, 'message')) as [Buffer, RemoteInfo]
  socket.close()
  t.equal(from.port, port)
  return from.address
}

t.test('replies leave from the address that was asked', async (t) => {
  const table = [
    { host: '0.0.0.0', asked: ['127.0.0.1', '127.0.0.5', '127.9.9.9'] },
    { host: '127.0.0.5', asked: ['127.0.0.5'] },
    ...(ipv6
      ? [
          { host: '::', asked: ['127.0.0.1', '127.0.0.5', '::1'] },
          { host: '', asked: ['127.0.0.5', '::1'] },
          { host: '::1', asked: ['::1'] },
        ]
      : []),
  ]
  for (const { host, asked } of table) {
    const listener = await listenBatch({ host, port: 0, handler: new Echo() })
    for (const address of asked) {
      t.equal(await answererOf(address, listener.port), address, `${address} on '${host}'`)
    }
    await listener.close()
  }
})

t.test('the exchange says which address was asked', async (t) => {
  const echo = new Echo()
  const asked: string[] = []
  const listener = await listenBatch({
    host: ipv6 ? '::' : '0.0.0.0',
    port: 0,
    handler: {
      acquire: () => echo.acquire(),
      serve: (exchange) => {
        const { localFamily, localAddress } = exchange.query
        asked.push(
          `${localFamily} ${localAddress.subarray(0, localFamily === 1 ? 4 : 16).join('.')}`,
        )
        return exchange.query.packetOctets
      },
      release: (exchange) => echo.release(exchange as Parameters<typeof echo.release>[0]),
    },
  })
  await answererOf('127.0.0.5', listener.port)
  if (ipv6) await answererOf('::1', listener.port)
  const want = ['1 127.0.0.5', '2 0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1']
  t.strictSame(asked, want.slice(0, ipv6 ? 2 : 1))
  await listener.close()
})

t.test('late answers keep the packet, the peer and the address that was asked', async (t) => {
  const echo = new Echo()
  const listener = await listenBatch({ host: '0.0.0.0', port: 0, handler: echo })
  const clients = await Promise.all(
    ['127.0.0.1', '127.0.0.5', '127.0.0.6'].map((host) => udpClient(listener.port, host)),
  )
  for (const [i, client] of clients.entries()) client.send(Buffer.from([Wish.Wait, i]))
  await until('all wait', () => echo.waiting === clients.length)
  // Enough others to go round every slot.
  const other = await udpClient(listener.port)
  for (let i = 0; i < 200; i++) other.send(Buffer.from([Wish.Echo, 99]))
  await until('the others are answered', () => other.received.length === 200)
  echo.answerWaiting()
  // Connected sockets: an answer from any other address than the one asked would not come in.
  await until('each has its answer', () => clients.every(({ received }) => received.length === 1))
  for (const [i, client] of clients.entries()) {
    t.strictSame([...(client.received[0] ?? [])], [Wish.Wait, i])
  }
  for (const client of [...clients, other]) await client.close()
  await listener.close()
  t.equal(echo.inFlight, 0)
})

t.test('more late answers than a batch holds', async (t) => {
  const echo = new Echo()
  const listener = await listenBatch({ host: '127.0.0.1', port: 0, handler: echo })
  const client = await udpClient(listener.port)
  for (let round = 1; round <= 20; round++) {
    for (let i = 0; i < 100; i++) client.send(Buffer.from([Wish.Wait, i]))
    await until('they wait', () => echo.waiting === 100)
    echo.answerWaiting()
    await until('they are answered', () => client.received.length === 100 * round)
    const numbers = client.received.slice(-100).map((reply) => reply[1] ?? -1)
    t.equal(new Set(numbers).size, 100, 'each once')
  }
  t.equal(echo.inFlight, 0)
  await client.close()
  await listener.close()
})

t.test('a datagram longer than a query may be is dropped and counted', async (t) => {
  const echo = new Echo()
  const listener = await listenBatch({ host: '127.0.0.1', port: 0, handler: echo })
  const client = await udpClient(listener.port)
  client.send(Buffer.alloc(PACKET_OCTETS_MAX + 1, Wish.Echo))
  client.send(Buffer.alloc(60_000, Wish.Echo))
  client.send(Buffer.alloc(PACKET_OCTETS_MAX, Wish.Echo))
  client.send(Buffer.alloc(0))
  await until('what fits and what is empty is served', () => echo.served === 2)
  await until('what fits is answered', () => client.received.length === 1)
  t.equal(client.received[0]?.length, PACKET_OCTETS_MAX)
  t.equal(listener.counters.oversize, 2)
  t.equal(echo.inFlight, 0)
  await client.close()
  await listener.close()
})

t.test('answers to ports that are closed do no harm', async (t) => {
  const echo = new Echo()
  const listener = await listenBatch({ host: '0.0.0.0', port: 0, handler: echo })
  for (let round = 0; round < 5; round++) {
    const gone = await udpClient(listener.port)
    for (let i = 0; i < 10; i++) gone.send(Buffer.from([Wish.Wait]))
    await until('they wait', () => echo.waiting === 10)
    await gone.close()
    echo.answerWaiting()
    const client = await udpClient(listener.port)
    client.send(Buffer.from([Wish.Echo]))
    await until('others are served', () => client.received.length === 1)
    await client.close()
  }
  t.equal(listener.counters.socketErrors, 0)
  await until('all are released', () => echo.inFlight === 0)
  await listener.close()
})

t.test('microtasks of a handler run without waiting for another event', async (t) => {
  const echo = new Echo()
  const listener = await listenBatch({
    host: '127.0.0.1',
    port: 0,
    handler: {
      acquire: () => echo.acquire(),
      serve: async (exchange) => {
        for (let i = 0; i < 10; i++) await Promise.resolve()
        await new Promise((resolve) => process.nextTick(resolve))
        return exchange.query.packetOctets
      },
      release: (exchange) => echo.release(exchange as Parameters<typeof echo.release>[0]),
    },
  })
  t.equal(await answererOf('127.0.0.1', listener.port), '127.0.0.1')
  await listener.close()
})

t.test('while the socket is full nothing is read, and replies wait', async (t) => {
  const libc = loadLibc()
  const EAGAIN = 11
  let [full, failed, tries] = [false, false, 0]
  const listener = await listenBatch(
    { host: '127.0.0.1', port: 0, handler: new Echo() },
    {
      ...libc,
      errno: () => (failed ? EAGAIN : libc.errno()),
      recvmmsg: (fd, headers, count, flags, timeout) => {
        failed = false
        return libc.recvmmsg(fd, headers, count, flags, timeout)
      },
      sendmmsg: (fd, headers, count, flags) => {
        tries++
        failed = full
        return full ? -1 : libc.sendmmsg(fd, headers, count, flags)
      },
    },
  )
  const client = await udpClient(listener.port)
  full = true
  client.send(Buffer.from([Wish.Echo, 1]))
  await until('it was tried more than once', () => tries > 2)
  client.send(Buffer.from([Wish.Echo, 2]))
  const later = tries + 3
  await until('it was tried again', () => tries > later)
  t.equal(client.received.length, 0)
  full = false
  await until('both are answered', () => client.received.length === 2)
  t.strictSame(
    client.received.map((reply) => reply[1]),
    [1, 2],
  )
  t.equal(listener.counters.sendErrors, 0)
  await client.close()
  await listener.close()
})
