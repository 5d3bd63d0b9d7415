import fc from 'fast-check'
import t from 'tap'
import type { TcpLimits } from '../../src/transport/tcp-limits.ts'
import { frame, TcpClient } from './client.ts'
import { Echo, until, Wish } from './echo.ts'
import { message, start } from './tcp-fixture.ts'

// Long: it opens thousands of connections.

t.test('waits end', async (t) => {
  const table: {
    name: string
    limits: Partial<TcpLimits>
    act: (client: TcpClient) => void
    answers: number
  }[] = [
    { name: 'for the first query', limits: { readMs: 40 }, act: () => {}, answers: 0 },
    {
      name: 'for the rest of a message',
      limits: { readMs: 40 },
      act: (client) => client.socket.write(Buffer.from([0, 9, Wish.Echo])),
      answers: 0,
    },
    {
      name: 'for the next query',
      limits: { idleMs: 40 },
      act: (client) => client.send(message(Wish.Echo)),
      answers: 1,
    },
    {
      name: 'for the rest of the second message',
      limits: { readMs: 1000 },
      act: (client) =>
        client.socket.write(Buffer.concat([frame(message(Wish.Echo)), Buffer.from([0])])),
      answers: 1,
    },
  ]
  for (const { name, limits, act, answers } of table) {
    const { listener, client } = await start(limits)
    act(client)
    await until('the connection is cut', () => client.closed || client.ended)
    t.equal(client.received.length, answers, name)
    await until('it is counted', () => listener.counters.timedOut === 1)
    await client.close()
    await listener.close()
  }
})

t.test('trickling octets do not prolong a message', async (t) => {
  const { listener, client } = await start({ readMs: 100 })
  client.socket.write(Buffer.from([0xff, 0xff]))
  const trickle = setInterval(() => client.socket.write(Buffer.from([0])), 5)
  await until('the connection is cut', () => client.ended)
  clearInterval(trickle)
  t.equal(listener.counters.timedOut, 1)
  await client.close()
  await listener.close()
})

t.test('a query that waits for its answer is not idle', async (t) => {
  const { listener, client, echo } = await start({ idleMs: 1000, readMs: 1000 })
  client.send(message(Wish.Wait))
  await until('it waits', () => echo.waiting === 1)
  const start_ = performance.now()
  await until('the timeouts have passed', () => performance.now() - start_ > 2500)
  t.equal(client.ended, false)
  echo.answerWaiting()
  await until('it is answered', () => client.received.length === 1)
  await client.close()
  await listener.close()
})

t.test('a client that does not read is disconnected', async (t) => {
  const { listener, client, echo } = await start({ writeMs: 60 })
  client.socket.pause()
  const asked = Buffer.concat(Array.from({ length: 1000 }, () => frame(message(Wish.Big))))
  client.socket.write(asked)
  await until('the connection is cut', () => listener.connections === 0)
  t.equal(listener.counters.timedOut, 1)
  t.ok(echo.served < 1000, `no more were answered than the kernel took: ${echo.served}`)
  t.equal(echo.inFlight, 0)
  await client.close()
  await listener.close()
})

t.test('too many unread octets at once cut the connection too', async (t) => {
  const { listener, client, echo } = await start({ unsentOctetsMax: 10_000, inFlightMax: 100 })
  client.socket.pause()
  client.socket.write(Buffer.concat(Array.from({ length: 1000 }, () => frame(message(Wish.Big)))))
  await until('the connection is cut', () => listener.connections === 0)
  t.equal(listener.counters.overrun, 1)
  t.equal(echo.inFlight, 0)
  await client.close()
  await listener.close()
})

t.test('all unread octets together are bounded: connections with the most are cut', async (t) => {
  // A connection that is full has one or two replies of 60 000 octets, by Node's version. A greedy one has
  // four more, which it asked for before it was full.
  const [all, each, octets] = [800_000, 3, 60_000]
  const { listener, client, echo } = await start({
    allUnsentOctetsMax: all,
    inFlightMax: 8,
    writeMs: 60_000,
  })
  const clients = [client]
  while (clients.length < 2 * each) clients.push(await TcpClient.connect(listener.port))
  const greedy = clients.slice(each)
  const asked = Buffer.concat(Array.from({ length: 1000 }, () => frame(message(Wish.Big))))
  const late = frame(message(Wish.Wait, 'x'.repeat(octets - 1)))
  for (const one of greedy) for (let i = 0; i < 4; i++) one.socket.write(late)
  await until('the greedy ones wait', () => echo.waiting === 4 * each)
  for (const { socket } of clients) {
    socket.pause()
    socket.write(asked)
  }
  let served = 0
  await until('all are full', () => {
    const isSteady = served === echo.served
    served = echo.served
    return isSteady && listener.unsentOctets > 2 * each * octets
  })
  t.equal(listener.counters.overrun, 0)
  echo.answerWaiting()
  await until('some are cut', () => listener.counters.overrun > 0)
  await until(
    'they are closed',
    () => listener.connections === 2 * each - listener.counters.overrun,
  )
  t.ok(listener.unsentOctets <= all, `${listener.unsentOctets} octets`)
  t.ok(listener.unsentOctets > all - 6 * octets, 'no more are cut than need to be')
  for (const { socket } of clients) socket.resume()
  await until('the cut ones know', () => {
    return greedy.filter((one) => one.ended).length === listener.counters.overrun
  })
  t.notOk(clients.slice(0, each).some((one) => one.ended))
  const other = await TcpClient.connect(listener.port)
  other.send(message(Wish.Echo, 'other'))
  await until('another one is answered', () => other.received.length === 1)
  for (const one of [...clients, other]) await one.close()
  await until('all are closed', () => listener.connections === 0)
  t.equal(listener.unsentOctets, 0)
  await listener.close()
})

t.test('a slow reader that reads on gets everything', async (t) => {
  const { listener, client, echo } = await start()
  client.socket.pause()
  client.socket.write(Buffer.concat(Array.from({ length: 200 }, () => frame(message(Wish.Big)))))
  await until('the server has filled what it can', () => echo.served > 0)
  client.socket.resume()
  await until('all are answered', () => client.received.length === 200)
  t.ok(client.received.every((reply) => reply.length === 60_000))
  await client.close()
  await listener.close()
})

t.test('limits on connections', async (t) => {
  const table = [
    { name: 'in all', limits: { connectionsMax: 3, sparedMs: Number.POSITIVE_INFINITY } },
    {
      name: 'of one address',
      limits: { connectionsPerAddressMax: 3, sparedMs: Number.POSITIVE_INFINITY },
    },
  ]
  for (const { name, limits } of table) {
    const { listener, client } = await start(limits)
    const more = await Promise.all([1, 2].map(() => TcpClient.connect(listener.port)))
    await until('three are open', () => listener.connections === 3)
    const fourth = await TcpClient.connect(listener.port)
    await until('the fourth is cut', () => fourth.closed || fourth.ended)
    t.equal(listener.counters.refused, 1, name)
    await client.close()
    await until('one has gone', () => listener.connections === 2)
    const fifth = await TcpClient.connect(listener.port)
    fifth.send(message(Wish.Echo))
    await until('there is room again', () => fifth.received.length === 1)
    await Promise.all([...more, fourth, fifth].map((c) => c.close()))
    await listener.close()
  }
})

t.test('the connection with the longest silence is closed for a new one', async (t) => {
  const { listener, client, echo } = await start({ connectionsMax: 3, sparedMs: 0 })
  client.send(message(Wish.Wait))
  await until('one waits for its answer', () => echo.waiting === 1)
  const asking = await TcpClient.connect(listener.port)
  await until('two are open', () => listener.connections === 2)
  const trickling = await TcpClient.connect(listener.port)
  await until('three are open', () => listener.connections === 3)
  asking.send(message(Wish.Echo))
  await until('one has an answer', () => asking.received.length === 1)
  // Octets that make no query do not count.
  trickling.socket.write(Buffer.of(0))
  const fourth = await TcpClient.connect(listener.port)
  await until('the one that asked nothing is cut', () => trickling.closed || trickling.ended)
  fourth.send(message(Wish.Echo))
  await until('the new one is answered', () => fourth.received.length === 1)
  const fifth = await TcpClient.connect(listener.port)
  await until('the one that asked first is cut', () => asking.closed || asking.ended)
  t.equal(listener.connections, 3)
  t.equal(listener.counters.refused, 2)
  echo.answerWaiting()
  await until('who waited has the answer', () => client.received.length === 1)
  await Promise.all([client, fourth, fifth].map((c) => c.close()))
  await listener.close()
})

t.test('a client that does not read its answers is evicted before idle ones', async (t) => {
  const { listener, client, echo } = await start({ connectionsMax: 3, sparedMs: 0 })
  const idle = await TcpClient.connect(listener.port)
  const clogged = await TcpClient.connect(listener.port)
  await until('three are open', () => listener.connections === 3)
  clogged.socket.pause()
  clogged.socket.write(Buffer.concat(Array.from({ length: 1000 }, () => frame(message(Wish.Big)))))
  await until(
    'no more are served',
    stands(() => echo.served),
  )
  const fourth = await TcpClient.connect(listener.port)
  fourth.send(message(Wish.Echo))
  await until('the new one is answered', () => fourth.received.length === 1)
  for (const one of [client, idle]) one.send(message(Wish.Echo))
  await until('the idle ones are there', () => client.received.length + idle.received.length === 2)
  clogged.socket.resume()
  await until('the clogged one is not', () => clogged.ended)
  t.equal(listener.counters.refused, 1)
  await Promise.all([client, idle, clogged, fourth].map((c) => c.close()))
  await listener.close()
})

/** True once the value has been the same for many turns of the loop. */
function stands(value: () => number): () => boolean {
  let last = -1
  let turns = 0
  return () => {
    turns = value() === last && last > 0 ? turns + 1 : 0
    last = value()
    return turns > 50
  }
}

t.test('those that hold most make room, however busy they are', async (t) => {
  const { listener, client, echo } = await start({ connectionsMax: 8 })
  const other = await TcpClient.connect(listener.port, '127.0.0.1', '127.0.9.9')
  // One network, many addresses, and each connection waits for an answer.
  const many: TcpClient[] = []
  for (let i = 0; i < 20; i++) {
    const one = await TcpClient.connect(listener.port, '127.0.0.1', `127.0.1.${i}`)
    one.send(message(Wish.Wait))
    many.push(one)
    await until('all are in', () => listener.counters.refused === Math.max(0, i - 5))
  }
  for (const one of [client, other]) one.send(message(Wish.Echo))
  await until('the others have answers', () => client.received.length + other.received.length === 2)
  const third = await TcpClient.connect(listener.port, '127.0.0.1', '127.0.10.1')
  third.send(message(Wish.Echo))
  await until('a new one has, too', () => third.received.length === 1)
  t.equal(listener.connections, 8)
  echo.answerWaiting()
  await until('all is given back', () => echo.inFlight === 0)
  await Promise.all([client, other, third, ...many].map((c) => c.close()))
  await listener.close()
})

t.test('where all clients have few connections, an idle one makes room', async (t) => {
  // A fortieth of them is few: two.
  const { listener, client, echo } = await start({ connectionsMax: 80, sparedMs: 0 })
  const idle = [client]
  for (let i = 1; i < 78; i++) {
    idle.push(await TcpClient.connect(listener.port, '127.0.0.1', `127.1.${i}.1`))
  }
  const busy: TcpClient[] = []
  for (let i = 0; i < 2; i++) {
    busy.push(await TcpClient.connect(listener.port, '127.0.0.1', '127.2.0.1'))
    busy[i]!.send(message(Wish.Wait))
  }
  await until('both wait for an answer', () => echo.inFlight === 2)
  const late = await TcpClient.connect(listener.port, '127.0.0.1', '127.3.0.1')
  late.send(message(Wish.Echo))
  await until('the new one is answered', () => late.received.length === 1)
  await until('an idle one is ended', () => idle.some(({ ended }) => ended))
  echo.answerWaiting()
  await until('those that waited have answers', () =>
    busy.every((one) => one.received.length === 1),
  )
  t.equal(listener.counters.refused, 1)
  await Promise.all([...idle, ...busy, late].map((one) => one.close()))
  await listener.close()
})

t.test('evictions cost no client its places', async () => {
  const steps = fc.array(fc.record({ close: fc.boolean(), address: fc.nat(3), which: fc.nat(9) }), {
    minLength: 10,
    maxLength: 40,
  })
  const perAddress = 3
  const property = fc.asyncProperty(steps, async (steps) => {
    const { listener, client } = await start({
      connectionsMax: 5,
      connectionsPerAddressMax: perAddress,
      sparedMs: -1,
    })
    await client.close()
    const connect = (address: number) =>
      TcpClient.connect(listener.port, '127.0.0.1', `127.0.${address >> 1}.${address}`)
    const open: TcpClient[] = []
    for (const { close, address, which } of steps) {
      if (close) await open[which]?.close()
      else open.push(await connect(address))
      for (const [i, one] of open.entries()) if (one.ended) open.splice(i, 1)
    }
    await Promise.all(open.map((one) => one.close()))
    await until('all are gone', () => listener.connections === 0)
    const { refused } = listener.counters
    for (let address = 0; address < 4; address++) {
      const all = await Promise.all(Array.from({ length: perAddress }, () => connect(address)))
      for (const one of all) one.send(message(Wish.Echo))
      await until('all are answered', () => all.every(({ received }) => received.length === 1))
      await Promise.all(all.map((one) => one.close()))
      await until('all are gone again', () => listener.connections === 0)
    }
    await listener.close()
    return listener.counters.refused === refused
  })
  await fc.assert(property, { seed: 16, numRuns: 20 })
})

t.test('a limit on queries ends the connection after the last answer', async (t) => {
  const { listener, client, echo } = await start({ queriesMax: 3 })
  client.socket.write(
    Buffer.concat([1, 2, 3, 4, 5].map((i) => frame(message(i === 2 ? Wish.Wait : Wish.Echo)))),
  )
  await until('one waits', () => echo.waiting === 1)
  t.equal(echo.served, 3)
  echo.answerWaiting()
  await until('the server ends', () => client.ended)
  t.equal(client.received.length, 3)
  t.equal(echo.served, 3)
  await client.close()
  await listener.close()
})

t.test('overload cuts the connection', async (t) => {
  const { listener, client, echo } = await start({}, new Echo(1))
  client.send(message(Wish.Wait))
  await until('it waits', () => echo.waiting === 1)
  client.send(message(Wish.Echo))
  await until('the connection is cut', () => client.ended)
  t.equal(listener.counters.dropped, 1)
  echo.answerWaiting()
  await until('the exchange is back', () => echo.inFlight === 0)
  await client.close()
  await listener.close()
})
