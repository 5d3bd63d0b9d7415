import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Query } from '../../../../src/dns/message/query.ts'
import { BATCH } from '../../../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../../../src/transport/udp/batch/socket.ts'
import { Targets } from '../../../../src/transport/udp/xdp/targets.ts'
import { XdpSocket } from '../../../../src/transport/udp/xdp/xdp-socket.ts'
import { needsIPv6 } from '../../../support/ipv6.ts'
import { MemoryKernel } from './memory-kernel.ts'
import { composePacket, IPV4_PACKET, IPV6_PACKET, type PacketFields, replyTo } from './packets.ts'

const EBUSY = 16
const ENETDOWN = 100

function target(address: readonly number[], lane: number, port = 53) {
  const octets = new Uint8Array(16)
  octets.set(address)
  return { family: address.length === 4 ? 1 : 2, address: octets, port, lane }
}

const TARGETS = [
  target(IPV6_PACKET.destination, 1),
  target([192, 0, 2, 9], 1),
  target(IPV4_PACKET.destination, 0),
  target(IPV4_PACKET.destination, 1, 5353),
]

function open(t: Test, { host = '127.0.0.1', mtuOctets = 1500, isZeroCopy = false } = {}) {
  const memory = new MemoryKernel(isZeroCopy)
  const udp = new BatchSocket(loadLibc(), { host, port: 0 })
  const lanes = [{ socket: udp }, { socket: udp }]
  const targets = new Targets(TARGETS, TARGETS)
  const socket = new XdpSocket(memory.kernel, memory.place, { targets, lanes, mtuOctets })
  t.teardown(() => {
    socket.detach()
    udp.close()
  })
  return { memory, socket, udp, lanes, targets }
}

/** Serves a batch; `answer` returns the octets of the reply in the room; 0 = no reply. */
function serve(socket: XdpSocket, answer: (query: Query, room: Uint8Array) => number): number {
  const query = new Query()
  const count = socket.receive()
  for (let slot = 0; slot < count; slot++) {
    if (socket.laneOf(slot) < 0) continue
    const room = socket.room()
    socket.describe(slot, query)
    const octets = answer(query, room)
    if (octets > 0) socket.reply(slot, room, octets)
  }
  socket.flush()
  return count
}

const echo = (query: Query, room: Uint8Array): number => {
  room.set(query.packet.subarray(0, query.packetOctets))
  return query.packetOctets
}

t.test('a query is described, and its reply is sent', async (t) => {
  for (const packet of [IPV4_PACKET, IPV6_PACKET]) {
    const { memory, socket } = open(t)
    memory.receive(composePacket(packet))
    const answer = Buffer.from('an answer')
    const count = serve(socket, (query, room) => {
      const octets = packet.source.length
      t.strictSame([...query.peerAddress.subarray(0, octets)], packet.source)
      t.strictSame([...query.localAddress.subarray(0, octets)], packet.destination)
      t.equal(query.peerFamily, octets === 4 ? 1 : 2)
      t.equal(query.localFamily, query.peerFamily)
      t.equal(query.peerPort, packet.sourcePort)
      t.equal(query.localPort, 53)
      t.equal(Buffer.from(query.packet.subarray(0, query.packetOctets)).toString(), 'a question')
      t.ok(query.packetAt >= 0)
      room.set(answer)
      return answer.length
    })
    t.equal(count, 1)
    t.strictSame(memory.sent, [replyTo(packet, answer)])
  }
})

t.test('a frame is served wherever a driver puts it, also by the next thread', async (t) => {
  const { memory, socket, lanes, targets } = open(t)
  const wanted = [256, 277, 278, 279, 280, 301].flatMap((frameAt) =>
    [IPV4_PACKET, IPV6_PACKET].map((packet) => ({ frameAt, packet })),
  )
  for (const { frameAt, packet } of wanted) {
    memory.frameAt = frameAt
    memory.receive(composePacket(packet))
  }
  t.equal(socket.receive(), wanted.length)
  // The thread ends here.
  const next = new XdpSocket(memory.kernel, memory.place, { targets, lanes, mtuOctets: 1500 })
  t.teardown(() => next.detach())
  t.equal(serve(next, echo), wanted.length)
  t.strictSame(
    memory.sent,
    wanted.map(({ packet }) => replyTo(packet, packet.message)),
  )
  next.receive()
  t.equal(memory.held, 0)
})

t.test('a thread serves any number of sockets', async (t) => {
  const all = Array.from({ length: 40 }, () => open(t))
  for (const [i, { memory }] of all.entries()) {
    memory.receive(composePacket({ ...IPV4_PACKET, message: Buffer.from(`question ${i}`) }))
  }
  for (const { socket } of all) t.equal(serve(socket, echo), 1)
  for (const [i, { memory }] of all.entries()) {
    t.strictSame(memory.sent, [replyTo(IPV4_PACKET, Buffer.from(`question ${i}`))])
  }
})

t.test('the destination decides the lane', async (t) => {
  const { memory, socket } = open(t)
  const table = [
    { packet: IPV4_PACKET, lane: 0 },
    { packet: { ...IPV4_PACKET, destinationPort: 5353 }, lane: 1 },
    { packet: { ...IPV4_PACKET, destination: [192, 0, 2, 9] }, lane: 1 },
    { packet: { ...IPV4_PACKET, destination: [192, 0, 2, 10] }, lane: -1 },
    { packet: { ...IPV4_PACKET, destinationPort: 54 }, lane: -1 },
    { packet: IPV6_PACKET, lane: 1 },
    { packet: { ...IPV6_PACKET, destinationPort: 5353 }, lane: -1 },
    // Our own addresses are no source.
    { packet: { ...IPV4_PACKET, source: [192, 0, 2, 9] }, lane: -1 },
    { packet: { ...IPV6_PACKET, source: IPV6_PACKET.destination }, lane: -1 },
  ]
  for (const { packet } of table) memory.receive(composePacket(packet))
  t.equal(socket.receive(), table.length)
  t.strictSame(
    table.map((_, slot) => socket.laneOf(slot)),
    table.map(({ lane }) => lane),
  )
  socket.flush()
  t.equal(memory.held, 0, 'frames without a reply are free again')
})

t.test('frames are never lost, whatever is answered', async (t) => {
  const event = fc.record({
    arrives: fc.integer({ min: 0, max: 200 }),
    replies: fc.integer({ min: 1, max: 4 }),
    budget: fc.integer({ min: 1, max: 100 }),
    error: fc.constantFrom(0, 0, 0, EBUSY, ENETDOWN, 105, 11),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const { memory, socket, udp } = open(t)
      let arrived = 0
      let served = 0
      let replies = 0
      for (const { arrives, replies: every, budget, error } of events) {
        memory.budget = budget
        if (error !== 0) memory.errors.push(error)
        for (let i = 0; i < arrives; i++) memory.receive(composePacket(IPV4_PACKET))
        arrived += arrives
        for (let i = 0; i < 2; i++) {
          served += serve(socket, (query, room) => {
            if (query.packetOctets === 0 || served % every !== 0) return 0
            replies++
            return echo(query, room)
          })
        }
      }
      memory.errors.length = 0
      for (let more = BATCH; more > 0; ) {
        more = serve(socket, () => 0)
        served += more
      }
      for (let i = 0; i < 3000 && !socket.flush(); i++);
      // Completed frames are given back at the next receive.
      socket.receive()
      socket.flush()
      t.equal(memory.held, 0)
      t.equal(served, arrived - memory.dropped)
      t.ok(memory.sent.length <= replies)
      t.ok(memory.sent.length + socket.sendErrors >= replies)
      socket.detach()
      udp.close()
    }),
    { numRuns: 30 },
  )
})

t.test(
  'what a thread left behind in the middle of a batch is served by the next one',
  async (t) => {
    const { memory, socket, lanes, targets } = open(t)
    const wanted = Array.from({ length: 100 }, (_, i) => ({ ...IPV4_PACKET, sourcePort: 1000 + i }))
    for (const packet of wanted) memory.receive(composePacket(packet))
    serve(socket, echo)
    t.equal(socket.receive(), 100 - BATCH)
    // The thread ends here.
    const next = new XdpSocket(memory.kernel, memory.place, { targets, lanes, mtuOctets: 1500 })
    t.teardown(() => next.detach())
    t.equal(serve(next, echo), 100 - BATCH)
    t.strictSame(
      memory.sent,
      wanted.map((packet) => replyTo(packet, packet.message)),
    )
    next.receive()
    t.equal(memory.held, 0)
  },
)

t.test('zero-copy: one call starts the device', async (t) => {
  const { memory, socket } = open(t, { isZeroCopy: true })
  memory.budget = 0
  memory.receive(composePacket(IPV4_PACKET))
  serve(socket, echo)
  t.equal(socket.flush(), true)
  t.equal(socket.sendErrors, 0)
})

t.test('a device that never sends does not stop the thread', async (t) => {
  const { memory, socket } = open(t)
  memory.budget = 0
  memory.receive(composePacket(IPV4_PACKET))
  serve(socket, echo)
  t.equal(socket.flush(), false)
  memory.budget = 32
  t.equal(socket.flush(), true)
  t.equal(memory.sent.length, 1)
})

/** A client of the loopback interface, whose queries arrive in frames. */
async function checkElsewhere(t: Test, host: string, client: string, packet: PacketFields) {
  const { memory, socket, udp } = open(t, { host, mtuOctets: 576 })
  const peer = new BatchSocket(loadLibc(), { host: client, port: 0 })
  t.teardown(() => peer.close())
  // The scan refuses loopback, so the address of the client is written after it.
  memory.receive(composePacket({ ...packet, sourcePort: peer.port }))
  socket.receive()
  t.ok(socket.laneOf(0) >= 0)
  const frames = Buffer.from(memory.kernel.view(memory.place.frames.address, 0))
  const isIPv6 = packet.source.length === 16
  const loopback = isIPv6 ? [...new Array(15).fill(0), 1] : [127, 0, 0, 1]
  frames.set(loopback, 278 + (isIPv6 ? 22 : 26))
  frames.set(loopback, 278 + (isIPv6 ? 38 : 30))
  const unit = socket.copyUnit(0)
  const handed = new Query()
  udp.giveBack(udp.takeUnit(unit, handed))
  t.equal(handed.peerPort, peer.port)
  t.equal(handed.peerFamily, isIPv6 ? 2 : 1)
  t.strictSame([...handed.peerAddress.subarray(0, loopback.length)], loopback)
  t.equal(Buffer.from(handed.packet).toString(), 'a question')
  const room = socket.room()
  room.fill(7, 0, 1200)
  socket.reply(0, room, 1200)
  socket.flush()
  t.equal(memory.sent.length, 0)
  t.equal(memory.held, 0)
  t.equal(peer.receive(), 1, 'the reply came from the UDP socket')
  const query = new Query()
  peer.describe(0, query)
  t.equal(query.packetOctets, 1200)
  t.equal(query.peerPort, udp.port)
}

t.test('a reply longer than the MTU leaves through the UDP socket', async (t) => {
  await checkElsewhere(t, '127.0.0.1', '127.0.0.1', IPV4_PACKET)
  await checkElsewhere(t, '0.0.0.0', '127.0.0.1', IPV4_PACKET)
})

t.test('also where that is an IPv6 socket', needsIPv6(), async (t) => {
  await checkElsewhere(t, '::', '127.0.0.1', IPV4_PACKET)
  await checkElsewhere(t, '::', '::1', IPV6_PACKET)
  await checkElsewhere(t, '::1', '::1', IPV6_PACKET)
})
