import t from 'tap'
import { QUERY_OCTETS_MAX, REPLY_OCTETS_MAX } from '../../../src/transport/udp/udp.ts'
import { udpClient } from '../client.ts'
import { Echo, until, Wish } from '../echo.ts'
import { faults, UDP_TRANSPORTS } from '../transports.ts'

for (const { name, listen } of UDP_TRANSPORTS) {
  t.test(name, async (t) => {
    t.test('queries that find no exchange are dropped and counted', async (t) => {
      const echo = new Echo(2)
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: echo })
      const client = await udpClient(listener.port)
      for (let i = 0; i < 5; i++) client.send(Buffer.from([Wish.Wait]))
      await until('three are dropped', () => listener.counters.dropped === 3)
      t.equal(echo.waiting, 2)
      echo.answerWaiting()
      await until('the two are answered', () => client.received.length === 2)
      client.send(Buffer.from([Wish.Echo]))
      await until('there is room again', () => client.received.length === 3)
      await client.close()
      await listener.close()
    })

    t.test('a peer that has gone does no harm', async (t) => {
      const echo = new Echo()
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: echo })
      const gone = await udpClient(listener.port)
      for (let i = 0; i < 3; i++) gone.send(Buffer.from([Wish.Wait]))
      await until('they wait', () => echo.waiting === 3)
      await gone.close()
      echo.answerWaiting()
      await until('the exchanges are back', () => echo.inFlight === 0)
      const client = await udpClient(listener.port)
      client.send(Buffer.from([Wish.Echo]))
      await until('others are served', () => client.received.length === 1)
      t.equal(echo.inFlight, 0)
      await client.close()
      await listener.close()
    })

    t.test('a reply too long for a datagram is counted, and its exchange comes back', async () => {
      const echo = new Echo()
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: echo })
      const client = await udpClient(listener.port)
      client.send(Buffer.from([Wish.Long]))
      await until('it is counted', () => listener.counters.sendErrors === 1)
      await until('its exchange is back', () => echo.inFlight === 0)
      await client.close()
      await listener.close()
    })

    t.test('replies keep their octets under load', async (t) => {
      const echo = new Echo(8)
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: echo })
      const client = await udpClient(listener.port)
      const seen = new Set<string>()
      for (let round = 0; round < 20; round++) {
        const before = client.received.length
        for (let i = 0; i < 50; i++) {
          client.send(
            Buffer.concat([Buffer.from([Wish.Echo]), Buffer.alloc(900, `${round}.${i} `)]),
          )
        }
        await until('the round is answered', () => client.received.length === before + 50)
      }
      for (const reply of client.received) {
        const text = reply.subarray(1).toString()
        const [mark] = text.split(' ')
        if (text !== Buffer.alloc(900, `${mark} `).toString()) t.fail(`mixed up: ${text}`)
        seen.add(mark ?? '')
      }
      t.equal(seen.size, 1000)
      await client.close()
      await listener.close()
    })

    t.test('replies of any length that the transport has room for arrive whole', async (t) => {
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: new Echo() })
      const client = await udpClient(listener.port)
      client.send(Buffer.from([Wish.Big, 7]))
      client.send(Buffer.from([Wish.Echo, 8]))
      await until('both are in', () => client.received.length === 2)
      const big = client.received.find((reply) => reply[0] === Wish.Big)
      t.equal(big?.length, name === 'batch' ? REPLY_OCTETS_MAX : 60_000)
      t.equal(big?.[1], 7)
      t.ok(client.received.some((reply) => reply.length === 2 && reply[1] === 8))
      await client.close()
      await listener.close()
    })

    t.test('the first octets of a long datagram are answered', async (t) => {
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: new Echo() })
      const client = await udpClient(listener.port)
      for (const octets of [1, 512, 513, 4095, 4096, 4097, 5000, 65_507]) {
        const before = client.received.length
        const packet = Buffer.from(Array.from({ length: octets }, (_, i) => (i % 251) ^ Wish.Echo))
        client.send(packet)
        // An empty datagram is one too.
        client.send(Buffer.alloc(0))
        await until('it is answered', () => client.received.length > before)
        t.ok(packet.subarray(0, QUERY_OCTETS_MAX).equals(client.received.at(-1)!), `${octets}`)
      }
      await client.close()
      await listener.close()
    })

    t.test('the message of a bind error', async (t) => {
      const echo = new Echo()
      const listener = await listen({ host: '127.0.0.1', port: 0, handler: echo })
      const { port } = listener
      await t.rejects(listen({ host: '127.0.0.1', port, handler: echo }), {
        code: 'EADDRINUSE',
        errno: -98,
        syscall: 'bind',
        address: '127.0.0.1',
        port,
        message: `bind EADDRINUSE 127.0.0.1:${port}`,
      })
      await t.rejects(listen({ host: '192.0.2.1', port: 0, handler: echo }), {
        code: 'EADDRNOTAVAIL',
        syscall: 'bind',
        message: 'bind EADDRNOTAVAIL 192.0.2.1',
      })
      await listener.close()
    })
  })
}

t.test('threads had nothing to complain of', async (t) => t.strictSame(faults(), []))
