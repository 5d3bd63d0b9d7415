import t from 'tap'
import { packetOctets } from '../../../../src/base/packet-memory.ts'
import { Query } from '../../../../src/dns/message/query.ts'
import { writeSockaddr } from '../../../../src/transport/sockaddr.ts'
import { BATCH, LATE_MAX, UNIT_PACKET } from '../../../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../../../src/transport/udp/batch/socket.ts'
import { udpClient } from '../../client.ts'
import { until } from '../../echo.ts'

const libc = loadLibc()
const SOL_SOCKET = 1
const SO_SNDBUF = 7
const SO_RCVBUF = 8
const SO_SNDBUFFORCE = 32
const SO_RCVBUFFORCE = 33

const open = (port = 0, reusePort = false): BatchSocket =>
  new BatchSocket(libc, { host: '127.0.0.1', port, reusePort })

t.test('sockets that share their port each get some of the peers', async (t) => {
  const first = open(0, true)
  const second = open(first.port, true)
  t.equal(second.port, first.port)
  t.throws(() => open(first.port), { code: 'EADDRINUSE' })
  const clients = await Promise.all(Array.from({ length: 40 }, () => udpClient(first.port)))
  for (const client of clients) client.send(Buffer.from([1]))
  const got = [0, 0]
  await until('all came in', () => {
    got[0]! += Math.max(first.receive(), 0)
    got[1]! += Math.max(second.receive(), 0)
    return got[0]! + got[1]! === clients.length
  })
  t.ok(got[0]! > 0 && got[1]! > 0, `${got}`)
  for (const client of clients) await client.close()
  first.close()
  second.close()
})

t.test('packets that the kernel drops are counted, and the others are received', async (t) => {
  // Less than the kernel gives at least, which is a few datagrams.
  const options = { host: '127.0.0.1', port: 0, receiveBufferOctets: 1 }
  const socket = new BatchSocket(libc, options)
  const client = await udpClient(socket.port)
  t.equal(socket.unbuffered(), 0)
  const sent = 200
  for (let i = 0; i < sent; i++) client.send(Buffer.alloc(512))
  await until('some were dropped', () => socket.unbuffered() > 0)
  let got = 0
  await until('each came in or was counted', () => {
    got += Math.max(socket.receive(), 0)
    return got + socket.unbuffered() === sent
  })
  t.ok(got > 0, `${got} came in`)
  const dropped = socket.unbuffered()
  client.send(Buffer.from([1]))
  await until('there is room again', () => socket.receive() === 1)
  t.equal(socket.unbuffered(), dropped)
  await client.close()
  socket.close()
})

/** What the kernel says of an option that is one int. */
function readOption(fd: number, name: number): number {
  const words = new Uint32Array(2)
  const at = libc.addressOf(words)
  words[1] = 4
  if (libc.getsockopt(fd, SOL_SOCKET, name, at, at + 4) !== 0) throw new Error('no such option')
  return words[0]!
}

t.test('buffers have the size that was asked for, or the one that the system gives', async (t) => {
  const unforced = {
    ...libc,
    setsockopt: (...args: Parameters<typeof libc.setsockopt>) => {
      const isForced = args[2] === SO_RCVBUFFORCE || args[2] === SO_SNDBUFFORCE
      return isForced ? -1 : libc.setsockopt(...args)
    },
  }
  const untouched = libc.socket(2, 2, 0)
  const [receive, send] = [SO_RCVBUF, SO_SNDBUF].map((name) => readOption(untouched, name))
  libc.close(untouched)
  // The kernel doubles what it is asked for, for its own bookkeeping (socket(7)).
  const table = [
    { name: 'nothing asked', given: {}, want: [receive, send] },
    { name: 'receive', given: { receiveBufferOctets: 40_000 }, want: [80_000, send] },
    { name: 'send', given: { sendBufferOctets: 30_000 }, want: [receive, 60_000] },
    {
      name: 'both',
      given: { receiveBufferOctets: 20_000, sendBufferOctets: 50_000 },
      want: [40_000, 100_000],
    },
  ]
  for (const [how, calls] of Object.entries({ 'beyond the limit': libc, 'up to it': unforced })) {
    for (const { name, given, want } of table) {
      const socket = new BatchSocket(calls, { host: '127.0.0.1', port: 0, ...given })
      const got = [SO_RCVBUF, SO_SNDBUF].map((option) => readOption(socket.fd, option))
      t.strictSame(got, want, `${name}, ${how}`)
      socket.close()
    }
  }
})

t.test('units are taken until none is left, and come back', async (t) => {
  const [socket, other] = [open(), open()]
  const client = await udpClient(socket.port)
  const query = new Query()
  client.send(Buffer.from([7, 8]))
  await until('it is in', () => socket.receive() === 1)
  const copy = socket.copyUnit(0, query)
  const taken = Array.from({ length: LATE_MAX }, () => other.takeUnit(copy, query))
  t.equal(new Set(taken).size, LATE_MAX)
  t.ok(Math.min(...taken) >= BATCH, 'no slot is among them')
  t.equal(other.canTake, false)
  t.strictSame([...query.packet.subarray(0, query.packetOctets)], [7, 8])
  t.equal(query.peerPort, client.port)
  for (const unit of taken) other.giveBack(unit)
  t.equal(other.canTake, true)
  await client.close()
  socket.close()
  other.close()
})

t.test('a query that one socket copied is answered by another of its place', async (t) => {
  const first = open(0, true)
  const second = open(first.port, true)
  const clients = await Promise.all(Array.from({ length: 8 }, () => udpClient(first.port)))
  for (const [i, client] of clients.entries()) client.send(Buffer.from([i]))
  const copies: Uint8Array[] = []
  const query = new Query()
  await until('all are in', () => {
    for (const socket of [first, second]) {
      const count = Math.max(socket.receive(), 0)
      for (let slot = 0; slot < count; slot++) copies.push(socket.copyUnit(slot, query))
    }
    return copies.length === clients.length
  })
  for (const copy of copies) {
    const unit = second.takeUnit(copy, query)
    second.reply(unit, query.packet.slice(0, query.packetOctets), query.packetOctets)
    second.giveBack(unit)
  }
  t.equal(second.flush(), true)
  // Connected clients: an answer from elsewhere would not come in.
  await until('all are answered', () => clients.every(({ received }) => received.length === 1))
  for (const [i, client] of clients.entries()) t.strictSame([...client.received[0]!], [i])
  for (const client of clients) await client.close()
  first.close()
  second.close()
})

t.test('an ICMP error that a receive returns loses no query', async (t) => {
  const socket = open()
  const client = await udpClient(socket.port)
  const gone = await udpClient(socket.port)
  // Only a connected socket gets the error of a closed port (udp(7)).
  const address = new Uint8Array(16)
  const connect = (port: number): number => {
    const octets = writeSockaddr(address, 0, '127.0.0.1', port)
    return libc.connect(socket.fd, libc.addressOf(address), octets)
  }
  gone.send(Buffer.from([1]))
  await until('it is in', () => socket.receive() === 1)
  t.equal(connect(gone.port), 0)
  await gone.close()
  socket.reply(0, Uint8Array.of(1), 1)
  t.equal(socket.flush(), true)
  t.equal(connect(client.port), 0)
  client.send(Buffer.from([2]))
  await until('the query is in', () => {
    const count = socket.receive()
    t.ok(count >= 0)
    return count === 1
  })
  socket.reply(0, Uint8Array.of(2), 1)
  t.equal(socket.flush(), true)
  await until('it is answered', () => client.received.length === 1)
  t.equal(socket.sendErrors, 0)
  await client.close()
  socket.close()
})

t.test('an ICMP error that a send returns loses no reply', async (t) => {
  const socket = open()
  const client = await udpClient(socket.port)
  const gone = await udpClient(socket.port)
  const address = new Uint8Array(16)
  client.send(Buffer.from([1]))
  await until('it is in', () => socket.receive() === 1)
  const octets = writeSockaddr(address, 0, '127.0.0.1', gone.port)
  t.equal(libc.connect(socket.fd, libc.addressOf(address), octets), 0)
  await gone.close()
  const lost = new Uint8Array(UNIT_PACKET + 1)
  writeSockaddr(lost, 0, '127.0.0.1', gone.port)
  const unit = socket.takeUnit(lost, new Query())
  socket.reply(unit, Uint8Array.of(0), 1)
  t.equal(socket.flush(), true)
  for (let i = 0; i < 3; i++) socket.reply(0, Uint8Array.of(i), 1)
  t.equal(socket.flush(), true)
  await until('the replies behind it arrive', () => client.received.length >= 2)
  t.same([client.received.length, socket.sendErrors], [3, 0])
  await client.close()
  socket.close()
})

t.test('a batch goes out although one of its replies can not', async (t) => {
  const socket = open()
  const client = await udpClient(socket.port)
  for (let i = 0; i < 3; i++) client.send(Buffer.from([i]))
  const reply = new Uint8Array(65_535)
  let slots = 0
  await until('all three are in', () => {
    const count = Math.max(socket.receive(), 0)
    for (let slot = 0; slot < count; slot++) {
      // The second is longer than any datagram over IPv4.
      socket.reply(slot, reply, slots === 1 ? 65_535 : 100)
      slots++
    }
    t.equal(socket.flush(), true)
    return slots === 3
  })
  await until('the others have arrived', () => client.received.length === 2)
  t.equal(socket.sendErrors, 1)
  await client.close()
  socket.close()
})

/** Calls that fail as the test decides, in front of the real ones: what the kernel rarely does on loopback. */
function failing(...reasons: number[]): { libc: typeof libc; calls: number[] } {
  const calls: number[] = []
  let errno = 0
  return {
    calls,
    libc: {
      ...libc,
      errno: () => errno || libc.errno(),
      sendmmsg: (fd, headers, count, flags) => {
        calls.push(count)
        const reason = reasons.shift()
        errno = Math.max(reason ?? 0, 0)
        if (reason === undefined) return libc.sendmmsg(fd, headers, count, flags)
        if (reason > 0) return -1
        return libc.sendmmsg(fd, headers, -reason, flags)
      },
    },
  }
}

const [EINTR, EAGAIN, ECONNREFUSED] = [4, 11, 111]

t.test('replies that a send leaves over are sent next', async (t) => {
  const table = [
    { name: 'two of three', reasons: [-2], flushed: [true], calls: [3, 1], arrive: 3, errors: 0 },
    { name: 'interrupted', reasons: [EINTR], flushed: [true], calls: [3, 3], arrive: 3, errors: 0 },
    {
      name: 'an ICMP error of an earlier reply',
      reasons: [-1, ECONNREFUSED],
      flushed: [true],
      calls: [3, 2, 2],
      arrive: 3,
      errors: 0,
    },
    {
      name: 'one that is refused for good',
      reasons: [-1, ECONNREFUSED, ECONNREFUSED],
      flushed: [true],
      calls: [3, 2, 2, 1],
      arrive: 2,
      errors: 1,
    },
    {
      name: 'a full buffer',
      reasons: [-1, EAGAIN],
      flushed: [false, true],
      calls: [3, 2, 2],
      arrive: 3,
      errors: 0,
    },
  ]
  for (const { name, reasons, flushed, calls, arrive, errors } of table) {
    const fake = failing(...reasons)
    const socket = new BatchSocket(fake.libc, { host: '127.0.0.1', port: 0 })
    const client = await udpClient(socket.port)
    client.send(Buffer.from([1]))
    await until('it is in', () => socket.receive() === 1)
    for (let i = 0; i < 3; i++) socket.reply(0, Uint8Array.of(i, i), 2)
    t.strictSame(
      flushed.map(() => socket.flush()),
      flushed,
      name,
    )
    t.strictSame(fake.calls, calls, name)
    await until('the replies arrive', () => client.received.length === arrive)
    t.equal(socket.sendErrors, errors, name)
    await client.close()
    socket.close()
  }
})

t.test('while the buffer is full a batch is kept, and more is dropped and counted', async (t) => {
  const fake = failing(EAGAIN, EAGAIN, EAGAIN)
  const socket = new BatchSocket(fake.libc, { host: '127.0.0.1', port: 0 })
  const client = await udpClient(socket.port)
  client.send(Buffer.from([1]))
  await until('it is in', () => socket.receive() === 1)
  for (let i = 0; i < BATCH + 2; i++) socket.reply(0, Uint8Array.of(i), 1)
  t.equal(socket.sendErrors, 2)
  t.equal(socket.flush(), false)
  t.equal(socket.flush(), true)
  await until('the batch arrives', () => client.received.length === BATCH)
  t.strictSame(
    client.received.map((reply) => reply[0]),
    Array.from({ length: BATCH }, (_, i) => i),
  )
  await client.close()
  socket.close()
})

t.test('replies of all lengths in one batch stay whole', async (t) => {
  const socket = open()
  const client = await udpClient(socket.port)
  client.send(Buffer.from([1]))
  await until('it is in', () => socket.receive() === 1)
  // In place and copied, from one chunk to eight; more than one batch has room for.
  const lengths = Array.from({ length: 200 }, (_, i) => [1, 512, 513, 1232, 4096, 40][i % 6]!)
  for (const [i, octets] of lengths.entries()) {
    const inPlace = i % 2 === 0 ? socket.room() : undefined
    const bytes = inPlace ?? new Uint8Array(octets)
    bytes.fill(i, 0, octets)
    socket.reply(0, bytes, octets)
    if (i % 20 !== 19) continue
    t.equal(socket.flush(), true)
    await until('they are in', () => client.received.length === i + 1)
  }
  for (const [i, octets] of lengths.entries()) {
    t.ok(Buffer.alloc(octets, i).equals(client.received[i]!), `reply ${i}, ${octets} octets`)
  }
  t.equal(socket.sendErrors, 0)
  await client.close()
  socket.close()
})

t.test('packets of all lengths are read whole, and copied whole', async (t) => {
  const [socket, other] = [open(), open()]
  const client = await udpClient(socket.port)
  const query = new Query()
  for (const octets of [1, 511, 512, 513, 4095, 4096]) {
    const packet = Buffer.from(Array.from({ length: octets }, (_, i) => (i * 7 + octets) & 255))
    client.send(packet)
    await until('it is in', () => socket.receive() === 1)
    socket.describe(0, query)
    t.ok(packet.equals(query.packet.subarray(0, query.packetOctets)), `${octets} octets`)
    other.giveBack(other.takeUnit(socket.copyUnit(0, query), query))
    t.ok(packet.equals(query.packet.subarray(0, query.packetOctets)), `${octets} octets copied`)
    t.equal(query.peerPort, client.port)
  }
  client.send(Buffer.alloc(4097))
  await until('it is in', () => socket.receive() === 1)
  t.equal(socket.packetOctets(0), 4096, 'the rest of a longer one is lost')
  await client.close()
  socket.close()
  other.close()
})

t.test(
  'replies go out from where their packets were, beside others in the same batch',
  async (t) => {
    const owner = open()
    const socket = new BatchSocket(libc, { fd: owner.fd, host: '127.0.0.1', port: owner.port })
    t.equal(owner.packetAt(0), -1, 'who opens a socket does not serve it')
    const clients = await Promise.all(Array.from({ length: 6 }, () => udpClient(owner.port)))
    // Twice: in the second batch the slots point to where the first left them.
    for (const shift of [0, 1]) {
      for (const [i, client] of clients.entries()) client.send(Buffer.from([i, 1, 2, 3]))
      for (let seen = 0; seen < clients.length; ) {
        const count = Math.max(socket.receive(), 0)
        for (let slot = 0; slot < count; slot++) {
          const at = socket.packetAt(slot)
          const number = packetOctets[at]!
          const reply = Uint8Array.of(number, 7, shift)
          const room = socket.room()!
          t.equal(room.byteOffset, socket.roomAt, 'the room is in the packet memory')
          room.set(reply)
          socket.reply(slot, (number + shift) % 2 === 0 ? room : reply, reply.length)
        }
        t.equal(socket.flush(), true)
        seen += count
      }
      await until('all are answered', () =>
        clients.every(({ received }) => received.length > shift),
      )
      for (const [i, client] of clients.entries()) {
        t.strictSame([...client.received[shift]!], [i, 7, shift])
      }
    }
    for (const client of clients) await client.close()
    socket.detach()
    t.equal(socket.packetAt(0), -1, 'its place is for others again')
    owner.close()
  },
)
