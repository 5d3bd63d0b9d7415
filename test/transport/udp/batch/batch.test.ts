import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { needsIPv6 } from '../../../support/ipv6.ts'
import { udpClient } from '../../client.ts'
import { Echo, until, Wish } from '../../echo.ts'
import { EchoThreads } from '../../echo-threads.ts'

/* What batches in data threads do and node:dgram does not: the rest is in ../../common.test.ts. */

const threads = new EchoThreads()
t.teardown(() => threads.stop())

/** What an unconnected socket, which takes replies from anywhere, gets from `host`, and from where. */
async function ask(
  host: string,
  port: number,
  wish: number,
  meanwhile: () => Promise<void> = async () => {},
): Promise<{ from: string; reply: Buffer }> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const answered = once(socket, 'message') as Promise<[Buffer, RemoteInfo]>
  socket.send(Buffer.from([wish]), port, host)
  await meanwhile()
  const [reply, from] = await answered
  socket.close()
  t.equal(from.port, port)
  return { from: from.address, reply }
}

const BINDS = [
  { host: '0.0.0.0', asked: ['127.0.0.1', '127.0.0.2', '127.9.9.9'] },
  { host: '127.0.0.2', asked: ['127.0.0.2'] },
]
const IPV6_BINDS = [
  { host: '::', asked: ['127.0.0.1', '127.0.0.2', '::1'] },
  { host: '', asked: ['127.0.0.2', '::1'] },
  { host: '::1', asked: ['::1'] },
]

async function checkSenders(t: Test, binds: typeof BINDS): Promise<void> {
  for (const { host, asked } of binds) {
    const echo = new Echo()
    const listener = await threads.listen({ host, port: 0, handler: echo })
    for (const address of asked) {
      const name = `${address} on '${host}'`
      t.equal((await ask(address, listener.port, Wish.Echo)).from, address, name)
      t.equal((await ask(address, listener.port, Wish.Big)).from, address, `${name}, long`)
      const late = await ask(address, listener.port, Wish.Wait, async () => {
        await until('it waits', () => echo.waiting === 1)
        echo.answerWaiting()
      })
      t.equal(late.from, address, `${name}, by the control thread`)
    }
    await listener.close()
  }
}

t.test('replies leave from the address that was asked', (t) => checkSenders(t, BINDS))

t.test('replies leave from the address that was asked, by IPv6', needsIPv6(), (t) =>
  checkSenders(t, IPV6_BINDS),
)

async function checkAsked(t: Test, asked: string, family: number, address: number[]) {
  const listener = await threads.listen({ host: '', port: 0, handler: new Echo() })
  const { reply } = await ask(asked, listener.port, Wish.Local)
  t.strictSame([...reply.subarray(0, address.length)], address)
  t.equal(reply[16], family)
  await listener.close()
}

t.test('the exchange says which address was asked', (t) =>
  checkAsked(t, '127.0.0.2', 1, [127, 0, 0, 2]),
)

t.test('the exchange says which address was asked, by IPv6', needsIPv6(), (t) =>
  checkAsked(t, '::1', 2, [...new Array(15).fill(0), 1]),
)

t.test('a late answer keeps its packet, its peer and the address that was asked', async (t) => {
  const echo = new Echo()
  const listener = await threads.listen({ host: '0.0.0.0', port: 0, handler: echo })
  const clients = await Promise.all(
    ['127.0.0.1', '127.0.0.5', '127.0.0.6'].map((host) => udpClient(listener.port, host)),
  )
  for (const [i, client] of clients.entries()) client.send(Buffer.from([Wish.Wait, i]))
  await until('all wait', () => echo.waiting === clients.length)
  // Enough others to use the slots of both threads again.
  const others = await Promise.all(Array.from({ length: 8 }, () => udpClient(listener.port)))
  for (const other of others) {
    for (let i = 0; i < 20; i++) other.send(Buffer.from([Wish.Echo, 99]))
  }
  await until('the others are answered', () => others.every((o) => o.received.length === 20))
  echo.answerWaiting()
  // Connected sockets: an answer from any other address than the one asked would not come in.
  await until('each has its answer', () => clients.every(({ received }) => received.length === 1))
  for (const [i, client] of clients.entries()) {
    t.strictSame([...(client.received[0] ?? [])], [Wish.Wait, i])
  }
  for (const client of [...clients, ...others]) await client.close()
  await listener.close()
  t.equal(echo.inFlight, 0)
})

t.test('more late answers than a batch holds', async (t) => {
  const echo = new Echo()
  const listener = await threads.listen({ host: '127.0.0.1', port: 0, handler: echo })
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

t.test('answers to ports that are closed do no harm', async (t) => {
  const echo = new Echo()
  const listener = await threads.listen({ host: '0.0.0.0', port: 0, handler: echo })
  for (let round = 0; round < 5; round++) {
    const gone = await udpClient(listener.port)
    for (let i = 0; i < 10; i++) gone.send(Buffer.from([Wish.Wait]))
    await until('they wait', () => echo.waiting === 10)
    await gone.close()
    echo.answerWaiting()
    const client = await udpClient(listener.port)
    client.send(Buffer.from([Wish.Echo]))
    // The new client may have the port of the one that is gone, and get its answers.
    const isServed = () => client.received.some(([wish]) => wish === Wish.Echo)
    await until('others are served', isServed)
    await client.close()
  }
  t.equal(listener.counters.socketErrors, 0)
  await until('all are released', () => echo.inFlight === 0)
  await listener.close()
})

t.test('sockets that are closed because there are too many answer what they had', async (t) => {
  const echo = new Echo()
  const listener = await threads.listen({ host: '127.0.0.1', port: 0, handler: echo })
  const clients = await Promise.all(Array.from({ length: 16 }, () => udpClient(listener.port)))
  for (const client of clients) client.send(Buffer.from([Wish.Wait]))
  // Some of them are still on their way from the threads.
  const shrunk = listener.shrink(1)
  await until('all wait', () => echo.waiting === clients.length)
  echo.answerWaiting()
  await until('all are answered', () => clients.every(({ received }) => received.length === 1))
  await shrunk
  for (const client of clients) client.send(Buffer.from([Wish.Echo]))
  await until('one socket serves all', () => clients.every((c) => c.received.length === 2))
  t.equal(listener.counters.dropped, 0)
  for (const client of clients) await client.close()
  await listener.close()
})

t.test('threads had nothing to complain of', async (t) => t.strictSame(threads.faults, []))
