import t from 'tap'
import { frame, TcpClient } from './client.ts'
import { Echo, until, Wish } from './echo.ts'
import { message, start } from './tcp-fixture.ts'

t.test('a message may come octet by octet', async (t) => {
  const { listener, client } = await start()
  const octets = Buffer.concat([frame(message(Wish.Echo, 'one')), frame(message(Wish.Echo, 'two'))])
  for (const octet of octets) {
    client.socket.write(Buffer.from([octet]))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await until('both are answered', () => client.received.length === 2)
  t.strictSame(
    client.received.map((m) => m.toString()),
    ['eone', 'etwo'],
  )
  await client.close()
  await listener.close()
})

t.test('a hundred queries in one segment', async (t) => {
  const { listener, client, echo } = await start({ inFlightMax: 8 })
  const all = Array.from({ length: 100 }, (_, i) => frame(message(Wish.Echo, `${i}`)))
  client.socket.write(Buffer.concat(all))
  await until('all are answered', () => client.received.length === 100)
  t.strictSame(
    client.received.map((m) => Number(m.subarray(1))),
    [...Array(100).keys()],
  )
  t.equal(echo.inFlight, 0)
  await client.close()
  await listener.close()
})

/** An echo that takes a tenth of a millisecond per query; runs of queries between turns are recorded. */
class SlowEcho extends Echo {
  longestRun = 0
  #run = 0
  #loop: NodeJS.Immediate | undefined

  override serve(exchange: ReturnType<Echo['acquire']> & {}): number | Promise<number> {
    const end = performance.now() + 0.1
    while (performance.now() < end);
    this.longestRun = Math.max(this.longestRun, ++this.#run)
    return super.serve(exchange)
  }

  /** Counts turns of the event loop as a timer or a UDP socket would get them. */
  watch(): void {
    this.#run = 0
    this.#loop = setImmediate(() => this.watch())
  }

  unwatch(): void {
    clearImmediate(this.#loop)
  }
}

t.test('a connection full of queries leaves the loop to others', async (t) => {
  const echo = new SlowEcho()
  const { listener, client } = await start({}, echo)
  const other = await TcpClient.connect(listener.port)
  const count = 1000
  echo.watch()
  const asked = Array.from({ length: count }, (_, i) => frame(message(Wish.Echo, `${i}`)))
  client.socket.write(Buffer.concat(asked))
  await until('the first are served', () => echo.served > 0)
  other.send(message(Wish.Echo, 'other'))
  await until('the other is answered', () => other.received.length === 1)
  t.ok(echo.served < count, `answered after ${echo.served} queries`)
  client.socket.end()
  await until('all are answered', () => client.ended)
  echo.unwatch()
  t.strictSame(
    client.received.map((m) => Number(m.subarray(1))),
    [...Array(count).keys()],
    'in order, and also what was read before the end',
  )
  // Two turns of 2 ms fit between two looks.
  t.ok(echo.longestRun <= 50, `${echo.longestRun} queries without a turn for others`)
  t.equal(echo.inFlight, 0)
  await other.close()
  await client.close()
  await listener.close()
})

t.test('many new connections at once delay only few queries of others', async (t) => {
  const echo = new SlowEcho()
  const { listener, client } = await start({ connectionsPerAddressMax: 1000 }, echo)
  const [queries, connections] = [4000, 400]
  const asked = Array.from({ length: queries }, (_, i) => frame(message(Wish.Echo, `${i}`)))
  client.socket.write(Buffer.concat(asked))
  await until('the first are served', () => echo.served > 0)
  const connect = () => TcpClient.connect(listener.port)
  const others = Promise.all(Array.from({ length: connections }, connect))
  await until('all are accepted', () => listener.connections === connections + 1)
  // The event loop accepts one connection in each of its turns: with 20 queries in each, this would take all of them.
  t.ok(echo.served < queries / 2, `accepted after ${echo.served} queries`)
  for (const other of await others) await other.close()
  await client.close()
  await listener.close()
})

t.test(
  'a connection that is reset while it waits, or whose listener closes, does no harm',
  async (t) => {
    const echo = new SlowEcho()
    const { listener, client } = await start({}, echo)
    const leaving = await TcpClient.connect(listener.port)
    const asked = Buffer.concat(Array.from({ length: 500 }, () => frame(message(Wish.Echo))))
    for (const { socket } of [leaving, client]) socket.write(asked)
    await until('some are served', () => echo.served > 0)
    leaving.socket.resetAndDestroy()
    await until('one has gone', () => listener.connections === 1)
    const closing = listener.close()
    await until('the other has its answers', () => client.received.length === 500)
    client.socket.end()
    await closing
    t.equal(echo.inFlight, 0)
  },
)

t.test('the longest message, in pieces', async (t) => {
  const { listener, client } = await start()
  client.socket.write(frame(Buffer.alloc(65_535, 'e')))
  await until('it is answered', () => client.received.length === 1)
  t.equal(client.received[0]?.length, 65_535)
  await client.close()
  await listener.close()
})

t.test('no more than the bound are in flight; the rest is read later', async (t) => {
  const { listener, client, echo } = await start({ inFlightMax: 4 })
  for (let i = 0; i < 10; i++) client.send(message(Wish.Wait, `${i}`))
  for (const [answered, served] of [
    [4, 4],
    [8, 8],
    [10, 10],
  ] as const) {
    await until(`${served} are served`, () => echo.served === served)
    t.ok(echo.waiting <= 4)
    echo.answerWaiting()
    await until(`${answered} are answered`, () => client.received.length === answered)
  }
  await client.close()
  await listener.close()
})

t.test('a client that has shut down writing still gets the answers, then the end', async (t) => {
  const { listener, client, echo } = await start()
  client.send(message(Wish.Wait))
  client.send(message(Wish.Echo))
  client.socket.end()
  await until('it waits', () => echo.waiting === 1)
  t.equal(client.ended, false)
  echo.answerWaiting()
  await until('the server ends', () => client.ended)
  t.equal(client.received.length, 2)
  await until('nothing is left', () => listener.connections === 0)
  await listener.close()
})

t.test('half a message and then the end', async (t) => {
  const { listener, client } = await start()
  client.socket.end(frame(message(Wish.Echo, 'whole')).subarray(0, 4))
  await until('the server ends', () => client.ended)
  t.equal(client.received.length, 0)
  await until('nothing is left', () => listener.connections === 0)
  await listener.close()
})

t.test('a message that is too short or too long ends the connection', async (t) => {
  for (const octets of [0, 1, 11, 16_385, 0xffff]) {
    const limits = { messageOctetsMin: 12, messageOctetsMax: 16_384 }
    const { listener, client, echo } = await start(limits)
    client.send(Buffer.alloc(12, Wish.Echo))
    client.send(Buffer.alloc(16_384, Wish.Echo))
    await until('the shortest and the longest are answered', () => client.received.length === 2)
    // Its length is enough: the octets need not come.
    client.socket.write(Buffer.of(octets >> 8, octets & 0xff))
    await until('the connection is cut', () => client.ended)
    t.equal(listener.counters.malformed, 1, `${octets} octets`)
    t.equal(echo.inFlight, 0)
    await client.close()
    await listener.close()
  }
})

t.test('a reset while a query waits does no harm', async (t) => {
  const { listener, client, echo } = await start()
  client.send(message(Wish.Wait))
  await until('it waits', () => echo.waiting === 1)
  client.socket.resetAndDestroy()
  await until('the connection has gone', () => listener.connections === 0)
  echo.answerWaiting()
  await until('the exchange is back', () => echo.inFlight === 0)
  const next = await TcpClient.connect(listener.port)
  next.send(message(Wish.Echo))
  await until('others are served', () => next.received.length === 1)
  t.equal(listener.connections, 1)
  await next.close()
  await listener.close()
})

t.test('close answers what is on its way, and takes no new connections', async (t) => {
  const { listener, client, echo } = await start()
  client.send(message(Wish.Wait))
  await until('it waits', () => echo.waiting === 1)
  const closing = listener.close()
  client.send(message(Wish.Echo))
  await until('it is answered', () => client.received.length === 1)
  await t.rejects(TcpClient.connect(listener.port), { code: 'ECONNREFUSED' })
  echo.answerWaiting()
  await until('the server ends, since the client is silent', () => client.ended)
  t.equal(client.received.length, 2)
  client.socket.end()
  await closing
})

t.test('close waits for clients that go on asking, and ends behind an answer', async (t) => {
  const { listener, client } = await start({ drainMs: 200 })
  let sent = 0
  // It asks when it has the answer to the question before, a bit later: the end comes right behind the answer.
  const ask = (): void => {
    if (client.ended) return
    sent++
    client.send(message(Wish.Echo))
  }
  // A timer that is late on a busy machine runs before the end is read, which has arrived by then.
  client.socket.on('data', () => setTimeout(() => setImmediate(ask), 1))
  ask()
  const startMs = performance.now()
  const closing = listener.close()
  await until('the server ends', () => client.ended)
  t.ok(performance.now() - startMs >= 200, 'it had time to end by itself')
  t.equal(client.received.length, sent, 'every query was answered')
  client.socket.end()
  await closing
})

t.test('close ends connections that ask all the time as well', async (_t) => {
  const { listener, client } = await start({ drainMs: 100 })
  const closing = listener.close()
  await until('the server ends', () => {
    if (!client.ended) client.send(message(Wish.Echo))
    return client.ended
  })
  client.socket.end()
  await closing
})

t.test('queries say that the listener closes', async (t) => {
  const ends: boolean[] = []
  class Watching extends Echo {
    override serve(exchange: ReturnType<Echo['acquire']> & {}): number | Promise<number> {
      ends.push(exchange.query.connectionEnds)
      return super.serve(exchange)
    }
  }
  const { listener, client } = await start({}, new Watching())
  client.send(message(Wish.Echo))
  await until('it is answered', () => client.received.length === 1)
  const closing = listener.close()
  client.send(message(Wish.Echo))
  await until('it is answered, too', () => client.received.length === 2)
  client.socket.end()
  await closing
  t.strictSame(ends, [false, true])
})
