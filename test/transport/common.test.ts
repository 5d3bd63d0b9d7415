import t from 'tap'
import type { Listener, QueryHandler } from '../../src/transport/exchange.ts'
import { listenTcp } from '../../src/transport/tcp.ts'
import { listenBatch } from '../../src/transport/udp/batch/listener.ts'
import { listenDgram } from '../../src/transport/udp/dgram.ts'
import { type Client, TcpClient, udpClient } from './client.ts'
import { Echo, until, Wish } from './echo.ts'

interface Transport {
  readonly name: string
  readonly protocol: number
  listen(host: string, port: number, handler: QueryHandler, drainMs?: number): Promise<Listener>
  connect(port: number, host?: string): Promise<Client>
}

/** One suite, every transport. */
const TRANSPORTS: readonly Transport[] = [
  {
    name: 'dgram',
    protocol: 0,
    listen: (host, port, handler, drainMs = 5000) => listenDgram({ host, port, handler, drainMs }),
    connect: udpClient,
  },
  {
    name: 'batch',
    protocol: 0,
    listen: (host, port, handler, drainMs = 5000) => listenBatch({ host, port, handler, drainMs }),
    connect: udpClient,
  },
  {
    name: 'tcp',
    protocol: 1,
    listen: (host, port, handler, drainMs = 5000) =>
      listenTcp({ host, port, handler, limits: { drainMs } }),
    connect: (port, host) => TcpClient.connect(port, host),
  },
]

const message = (wish: number, text = ''): Buffer =>
  Buffer.concat([Buffer.from([wish]), Buffer.from(text)])

async function hasIPv6(): Promise<boolean> {
  try {
    await (await listenDgram({ host: '::1', port: 0, handler: new Echo() })).close()
    return true
  } catch {
    return false
  }
}

const ipv6 = await hasIPv6()

for (const { name, protocol, listen, connect } of TRANSPORTS) {
  t.test(name, async (t) => {
    t.test('queries are answered', async (t) => {
      const echo = new Echo()
      const listener = await listen('127.0.0.1', 0, echo)
      t.ok(listener.port > 0)
      const client = await connect(listener.port)
      const texts = Array.from({ length: 50 }, (_, i) => `query ${i}`)
      for (const text of texts) client.send(message(Wish.Echo, text))
      await until('all answers are in', () => client.received.length === 50)
      t.strictSame(client.received.map((m) => m.subarray(1).toString()).sort(), texts.sort())
      t.equal(echo.inFlight, 0)
      await client.close()
      await listener.close()
    })

    t.test('the exchange says who asked', async (t) => {
      const table = [
        { listen: '127.0.0.1', ask: '127.0.0.1', family: 1, address: [127, 0, 0, 1] },
        { listen: '', ask: '127.0.0.1', family: 1, address: [127, 0, 0, 1] },
        ...(ipv6
          ? [{ listen: '', ask: '::1', family: 2, address: [...new Array(15).fill(0), 1] }]
          : []),
      ]
      for (const { listen: host, ask, family, address } of table) {
        const listener = await listen(host, 0, new Echo())
        const client = await connect(listener.port, ask)
        client.send(message(Wish.Peer))
        await until('the answer is in', () => client.received.length === 1)
        const got = client.received[0]!
        t.strictSame([...got.subarray(0, address.length)], address, `${ask} on '${host}'`)
        t.strictSame([got[16], got[17]], [family, protocol])
        t.equal(got.readUInt16BE(18), client.port)
        t.equal(got.readUInt16BE(20), listener.port)
        await client.close()
        await listener.close()
      }
    })

    t.test('silence is silence', async (t) => {
      const echo = new Echo()
      const listener = await listen('127.0.0.1', 0, echo)
      const client = await connect(listener.port)
      client.send(message(Wish.Silence))
      client.send(message(Wish.Echo))
      await until('the second is answered', () => client.received.length === 1 && echo.served === 2)
      t.equal(client.received[0]?.[0], Wish.Echo)
      t.equal(echo.inFlight, 0)
      await client.close()
      await listener.close()
    })

    t.test('answers go out in the order in which they come', async (t) => {
      const echo = new Echo()
      const listener = await listen('127.0.0.1', 0, echo)
      const client = await connect(listener.port)
      client.send(message(Wish.Wait, '1'))
      client.send(message(Wish.Wait, '2'))
      await until('both wait', () => echo.waiting === 2)
      client.send(message(Wish.Echo, '3'))
      await until('the third is answered', () => client.received.length === 1)
      echo.answerWaiting()
      await until('all are answered', () => client.received.length === 3)
      t.strictSame(
        client.received.map((m) => m.subarray(1).toString()),
        ['3', '2', '1'],
      )
      await until('all are released', () => echo.inFlight === 0)
      await client.close()
      await listener.close()
    })

    t.test('a new handler takes over while the old one finishes', async (t) => {
      const [old, young] = [new Echo(), new Echo()]
      const listener = await listen('127.0.0.1', 0, old)
      const client = await connect(listener.port)
      client.send(message(Wish.Wait, 'old'))
      await until('it waits', () => old.waiting === 1)
      listener.setHandler(young)
      client.send(message(Wish.Echo, 'young'))
      await until('the young one answers', () => client.received.length === 1)
      t.equal(young.served, 1)
      old.answerWaiting()
      await until('the old one answers', () => client.received.length === 2)
      await until('both are idle', () => old.inFlight + young.inFlight === 0)
      await client.close()
      await listener.close()
    })

    t.test('close waits for queries in flight', async (t) => {
      const echo = new Echo()
      const listener = await listen('127.0.0.1', 0, echo)
      const client = await connect(listener.port)
      client.send(message(Wish.Wait, 'last'))
      await until('it waits', () => echo.waiting === 1)
      let closed = false
      const closing = listener.close().then(() => {
        closed = true
      })
      t.equal(listener.close() instanceof Promise, true, 'closing twice is harmless')
      await new Promise((resolve) => setImmediate(resolve))
      t.equal(closed, false)
      echo.answerWaiting()
      await until('the answer is in', () => client.received.length === 1)
      await client.close()
      await closing
      t.equal(echo.inFlight, 0)
    })

    t.test('close does not wait for ever', async (t) => {
      const echo = new Echo()
      const listener = await listen('127.0.0.1', 0, echo, 20)
      const client = await connect(listener.port)
      client.send(message(Wish.Wait))
      await until('it waits', () => echo.waiting === 1)
      await listener.close()
      echo.answerWaiting()
      await until('the late answer is dropped', () => echo.inFlight === 0)
      t.equal(client.received.length, 0)
      await client.close()
    })

    t.test('a port in use is an error, and can be had afterwards', async (t) => {
      const listener = await listen('127.0.0.1', 0, new Echo())
      await t.rejects(listen('127.0.0.1', listener.port, new Echo()), { code: 'EADDRINUSE' })
      await listener.close()
      const again = await listen('127.0.0.1', listener.port, new Echo())
      await again.close()
    })
  })
}
