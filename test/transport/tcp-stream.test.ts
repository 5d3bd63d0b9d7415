import t from 'tap'
import { Query } from '../../src/dns/message/query.ts'
import type { ReplyStream } from '../../src/dns/message/reply-stream.ts'
import { type Exchange, type QueryHandler, STREAMED } from '../../src/transport/exchange.ts'
import { listenTcp } from '../../src/transport/tcp.ts'
import type { TcpLimits } from '../../src/transport/tcp-limits.ts'
import { TcpClient } from './client.ts'
import { until } from './echo.ts'

/** Messages of one reply: numbered, `octets` long. */
class Numbers implements ReplyStream {
  isBroken = false
  closed = 0
  sent = 0
  readonly #count: number
  readonly #octets: number
  readonly #breaksAt: number

  constructor(count: number, octets: number, breaksAt: number) {
    this.#count = count
    this.#octets = octets
    this.#breaksAt = breaksAt
  }

  next(out: Uint8Array): number {
    if (this.sent === this.#breaksAt) this.isBroken = true
    if (this.isBroken || this.sent === this.#count) return 0
    out.fill(0, 0, this.#octets)
    out[0] = this.sent++ & 0xff
    return this.#octets
  }

  close(): void {
    this.closed++
  }
}

interface StreamExchange extends Exchange {
  stream?: ReplyStream | undefined
}

/** Answers `n…` with a stream of as many messages as the second octet says, all else with itself. */
class Streamer implements QueryHandler<StreamExchange> {
  inFlight = 0
  octets = 1000
  breaksAt = -1
  readonly streams: Numbers[] = []

  acquire(): StreamExchange {
    this.inFlight++
    return { query: new Query(), reply: new Uint8Array(65535), replyAt: -1 }
  }

  serve(exchange: StreamExchange): number {
    const { packet, packetOctets } = exchange.query
    if (packet[0] === 0x6e) {
      const stream = new Numbers(packet[1]!, this.octets, this.breaksAt)
      this.streams.push(stream)
      exchange.stream = stream
      return STREAMED
    }
    exchange.reply.set(packet)
    return packetOctets
  }

  release(): void {
    this.inFlight--
  }
}

async function start(handler: Streamer, limits: Partial<TcpLimits> = {}) {
  const options = { host: '127.0.0.1', port: 0, handler }
  const listener = await listenTcp({
    ...options,
    limits: { messageOctetsMin: 1, messageOctetsMax: 65_535, ...limits },
  })
  t.teardown(() => listener.close())
  return { listener, client: await TcpClient.connect(listener.port) }
}

t.test(
  'the messages of a stream go out in order, and what was asked behind it after them',
  async (t) => {
    const handler = new Streamer()
    handler.octets = 40_000
    const { client } = await start(handler)
    client.send(Buffer.from([0x6e, 200]))
    client.send(Buffer.from('x'))
    client.send(Buffer.from([0x6e, 3]))
    await until('all came', () => client.received.length === 204)
    t.strictSame(
      client.received.map((message) => message[0]),
      [...Array(200).keys(), 0x78, 0, 1, 2],
    )
    await until('all is given back', () => handler.inFlight === 0)
    t.strictSame(
      handler.streams.map(({ closed }) => closed),
      [1, 1],
    )
    await client.close()
  },
)

t.test('a stream that breaks has its connection cut', async (t) => {
  const handler = new Streamer()
  handler.breaksAt = 2
  const { client, listener } = await start(handler)
  client.send(Buffer.from([0x6e, 9]))
  await until('it is cut', () => listener.connections === 0)
  t.equal(handler.streams[0]?.closed, 1)
  t.equal(handler.inFlight, 0)
  await client.close()
})

t.test('a peer that does not read is cut, and no more is composed than it was sent', async (t) => {
  const handler = new Streamer()
  handler.octets = 65_000
  const { client, listener } = await start(handler, { writeMs: 50, streamWriteMs: 100 })
  client.socket.pause()
  for (let i = 0; i < 3; i++) client.send(Buffer.from([0x6e, 255]))
  await until('it is cut', () => listener.connections === 0)
  t.equal(listener.counters.timedOut, 1)
  t.ok(handler.streams[0]!.sent < 255, `${handler.streams[0]!.sent} messages`)
  t.equal(handler.streams.length, 1, 'the next was not begun')
  t.equal(handler.streams[0]?.closed, 1)
  t.equal(handler.inFlight, 0)
  await client.close()
})

t.test(
  'a peer that reads nothing of a stream for longer than a write may take gets all',
  async (t) => {
    const handler = new Streamer()
    handler.octets = 65_000
    const { client, listener } = await start(handler, { writeMs: 20 })
    client.socket.pause()
    client.send(Buffer.from([0x6e, 255]))
    await until('it has begun', () => handler.streams.length === 1)
    const startMs = performance.now()
    await until('the time of a write is over', () => performance.now() - startMs > 500)
    t.ok(handler.streams[0]!.sent < 255, `${handler.streams[0]!.sent} messages`)
    client.socket.resume()
    await until('all came', () => client.received.length === 255)
    t.equal(listener.counters.timedOut, 0)
    await client.close()
  },
)

t.test('a stream that is ended for another has its connection cut', async (t) => {
  const handler = new Streamer()
  handler.octets = 65_000
  const { client, listener } = await start(handler, { writeMs: 20 })
  client.socket.pause()
  client.send(Buffer.from([0x6e, 255]))
  await until('it has begun', () => handler.streams.length === 1)
  handler.streams[0]!.isBroken = true
  await until('it is cut', () => listener.connections === 0)
  t.equal(handler.streams[0]?.closed, 1)
  t.equal(handler.inFlight, 0)
  await client.close()
})

t.test('a peer that leaves in the middle leaves nothing behind', async (t) => {
  const handler = new Streamer()
  handler.octets = 65_000
  const { client, listener } = await start(handler)
  client.send(Buffer.from([0x6e, 255]))
  await until('some came', () => client.received.length > 0)
  client.socket.destroy()
  await until('it is gone', () => listener.connections === 0)
  t.equal(handler.streams[0]?.closed, 1)
  t.equal(handler.inFlight, 0)
})

t.test('the stream of a peer that does not read makes room for another', async (t) => {
  const handler = new Streamer()
  handler.octets = 65_000
  const { client, listener } = await start(handler, { streamsMax: 2 })
  const stuck = [client, await TcpClient.connect(listener.port)]
  for (const one of stuck) {
    one.socket.pause()
    one.send(Buffer.from([0x6e, 255]))
  }
  await until('both have begun', () => handler.streams.length === 2)
  const sent = () => handler.streams.reduce((sum, stream) => sum + stream.sent, 0)
  let last = -1
  let turns = 0
  await until('both stand', () => {
    turns = sent() === last ? turns + 1 : 0
    last = sent()
    return turns > 50
  })
  const other = await TcpClient.connect(listener.port)
  other.send(Buffer.from([0x6e, 9]))
  await until('it has all', () => other.received.length === 9)
  t.equal(listener.counters.refused, 1)
  t.equal(listener.connections, 2)
  t.equal(handler.inFlight, 1, 'what the stream held is free')
  // Its place is free again, and no other has to go.
  other.send(Buffer.from([0x6e, 9]))
  await until('it has all again', () => other.received.length === 18)
  t.equal(listener.counters.refused, 1)
  await Promise.all([...stuck, other].map((one) => one.close()))
})
