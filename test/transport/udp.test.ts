import t from 'tap'
import { listenUdp } from '../../src/transport/udp.ts'
import { udpClient } from './client.ts'
import { Echo, until, Wish } from './echo.ts'

t.test('queries that find no exchange are dropped and counted', async (t) => {
  const echo = new Echo(2)
  const listener = await listenUdp({ host: '127.0.0.1', port: 0, handler: echo })
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
  const listener = await listenUdp({ host: '127.0.0.1', port: 0, handler: echo })
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

t.test('a reply too long for a datagram is counted, and its exchange comes back', async (t) => {
  const echo = new Echo()
  const listener = await listenUdp({
    host: '127.0.0.1',
    port: 0,
    handler: {
      acquire: () => echo.acquire(),
      serve: () => 65_535,
      release: (exchange) => echo.release(exchange as Parameters<typeof echo.release>[0]),
    },
    receiveBufferOctets: 1 << 17,
    sendBufferOctets: 1 << 17,
  })
  const client = await udpClient(listener.port)
  client.send(Buffer.from([Wish.Echo]))
  await until('it is counted', () => listener.counters.sendErrors === 1)
  t.equal(echo.inFlight, 0)
  await client.close()
  await listener.close()
})

t.test('replies keep their octets under load', async (t) => {
  const echo = new Echo(8)
  const listener = await listenUdp({ host: '127.0.0.1', port: 0, handler: echo })
  const client = await udpClient(listener.port)
  const seen = new Set<string>()
  for (let round = 0; round < 20; round++) {
    const before = client.received.length
    for (let i = 0; i < 50; i++) {
      client.send(Buffer.concat([Buffer.from([Wish.Echo]), Buffer.alloc(900, `${round}.${i} `)]))
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
