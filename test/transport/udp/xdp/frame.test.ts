import fc from 'fast-check'
import t from 'tap'
import {
  copyAndSum,
  copyWords,
  IS_IPV6,
  REFUSED,
  scanFrame,
  turnIPv4,
  turnIPv6,
} from '../../../../src/transport/udp/xdp/frame.ts'
import {
  composePacket,
  IPV4_PACKET,
  IPV6_PACKET,
  internetChecksum,
  mendIPv4,
  OWN_MAC,
  type PacketFields,
  replyTo,
} from './packets.ts'

/** Where a frame starts in its memory, and the word of its IP header. */
const FRAME_AT = 278
const IP = (FRAME_AT + 14) / 4

/** Memory with something everywhere, as other frames leave it. */
const memoryOf = (octets = 4096): Buffer => Buffer.from(new ArrayBuffer(octets)).fill(0xff)
const wordsOf = (memory: Buffer): Int32Array => new Int32Array(memory.buffer)

/** The frame where others are in front of it and behind it, as in the memory of a socket. */
function place(frame: Uint8Array): Buffer {
  const memory = memoryOf()
  memory.set(frame, FRAME_AT)
  return memory
}

const scan = (frame: Uint8Array, octets = frame.length): number => {
  return scanFrame(wordsOf(place(frame)), IP, octets)
}

/** Turns the frame into one with `answer`, and returns it. */
function turn(frame: Uint8Array, isIPv6: boolean, answer: Uint8Array): Buffer {
  const memory = place(frame)
  const words = wordsOf(memory)
  const room = memoryOf()
  room.set(answer, 64)
  const octets = answer.length
  const sum = copyAndSum(wordsOf(room), 16, words, IP + (isIPv6 ? 12 : 7), octets)
  if (isIPv6) turnIPv6(words, IP, octets, sum)
  else turnIPv4(words, IP, octets, sum)
  const headers = isIPv6 ? 62 : 42
  const whole = FRAME_AT + headers + ((octets + 3) & ~3)
  const before = place(frame)
  if (
    !memory.subarray(0, FRAME_AT).equals(before.subarray(0, FRAME_AT)) ||
    !memory.subarray(whole).equals(before.subarray(whole))
  ) {
    throw new Error('octets outside of the frame have changed')
  }
  return memory.subarray(FRAME_AT, FRAME_AT + headers + octets)
}

const octet = fc.integer({ min: 0, max: 255 })
const mac = fc.array(octet, { minLength: 6, maxLength: 6 }).map(([first, ...rest]) => {
  return [first! & 0xfe, ...rest]
})
const ipv4 = fc
  .array(octet, { minLength: 4, maxLength: 4 })
  .filter(([first]) => first !== 0 && first !== 127 && first! < 224)
const ipv6 = fc
  .array(octet, { minLength: 16, maxLength: 16 })
  .filter(([first, ...rest]) => first !== 0 && first !== 0xff && rest.length === 15)
const port = fc.integer({ min: 1, max: 65_535 })
const message = fc.uint8Array({ maxLength: 1500 })
const fields = fc.record({
  toMac: mac,
  fromMac: mac,
  sourcePort: port,
  destinationPort: port,
  message,
  hops: octet,
  identification: fc.integer({ min: 0, max: 65_535 }),
  trafficClass: octet,
  dontFragment: fc.boolean(),
  padding: fc.integer({ min: 0, max: 30 }),
})
const addresses = fc.oneof(
  fc.record({ source: ipv4, destination: ipv4 }),
  fc.record({ source: ipv6, destination: ipv6 }),
)
const packet: fc.Arbitrary<PacketFields> = fc
  .tuple(fields, addresses)
  .map(([some, others]) => ({ ...some, ...others }))

t.test('a packet is read, and its reply is what another implementation composes', async (t) => {
  fc.assert(
    fc.property(packet, message, (packet, answer) => {
      const frame = composePacket(packet)
      const isIPv6 = packet.source.length === 16
      t.equal(scan(frame), packet.message.length | (isIPv6 ? IS_IPV6 : 0))
      const sent = turn(frame, isIPv6, answer)
      t.equal(sent.toString('hex'), replyTo(packet, answer).toString('hex'))
    }),
    { numRuns: 300 },
  )
})

t.test('a UDP checksum of 0 is sent as 0xffff', async (t) => {
  for (const packet of [IPV4_PACKET, IPV6_PACKET]) {
    const at = packet.source.length === 4 ? 42 : 62
    // The message is the complement of the rest.
    const zero = replyTo(packet, Buffer.alloc(2)).readUInt16BE(at - 2)
    const answer = Uint8Array.of(zero >> 8, zero & 255)
    const want = replyTo(packet, answer)
    t.equal(want.readUInt16BE(at - 2), 0xffff)
    const frame = turn(composePacket(packet), at === 62, answer)
    t.equal(frame.readUInt16BE(at - 2), 0xffff)
  }
})

t.test('the UDP checksum of a query does not matter', async (t) => {
  for (const packet of [IPV4_PACKET, IPV6_PACKET]) {
    t.not(scan(composePacket({ ...packet, udpChecksum: 0x1234 })), REFUSED)
    t.not(scan(composePacket({ ...packet, udpChecksum: 0 })), REFUSED)
  }
})

t.test('a frame that is cut anywhere is refused', async (t) => {
  for (const packet of [IPV4_PACKET, IPV6_PACKET]) {
    const frame = composePacket(packet)
    for (let octets = 0; octets < frame.length; octets++) {
      t.equal(scan(frame, octets), REFUSED, `${octets} octets`)
    }
  }
})

/** `change`: what is done to the frame. The checksum of an IPv4 header is right again afterwards. */
const BAD: readonly {
  readonly what: string
  readonly packet: PacketFields
  readonly change: (frame: Buffer) => void
}[] = [
  ...[IPV4_PACKET, IPV6_PACKET].flatMap((packet) => {
    const ip = packet.source.length === 4 ? 20 : 40
    return [
      { what: 'multicast MAC', packet, change: (f: Buffer) => f.writeUInt8(0x07, 6) },
      { what: 'broadcast MAC', packet, change: (f: Buffer) => f.fill(0xff, 6, 12) },
      { what: 'VLAN', packet, change: (f: Buffer) => f.writeUInt16BE(0x8100, 12) },
      { what: 'ARP', packet, change: (f: Buffer) => f.writeUInt16BE(0x0806, 12) },
      { what: 'port 0', packet, change: (f: Buffer) => f.writeUInt16BE(0, 14 + ip) },
      { what: 'UDP of 7', packet, change: (f: Buffer) => f.writeUInt16BE(7, 14 + ip + 4) },
      { what: 'UDP too long', packet, change: (f: Buffer) => f.writeUInt16BE(19, 14 + ip + 4) },
      { what: 'UDP 65535', packet, change: (f: Buffer) => f.writeUInt16BE(0xffff, 14 + ip + 4) },
    ]
  }),
  { what: 'version 5', packet: IPV4_PACKET, change: (f) => f.writeUInt8(0x55, 14) },
  { what: 'IPv4 options', packet: IPV4_PACKET, change: (f) => f.writeUInt8(0x46, 14) },
  { what: 'short header', packet: IPV4_PACKET, change: (f) => f.writeUInt8(0x44, 14) },
  { what: 'IPv4 too long', packet: IPV4_PACKET, change: (f) => f.writeUInt16BE(39, 16) },
  { what: 'IPv4 65535', packet: IPV4_PACKET, change: (f) => f.writeUInt16BE(65_535, 16) },
  {
    what: 'IPv4 shorter than its header',
    packet: IPV4_PACKET,
    change: (f) => f.writeUInt16BE(19, 16),
  },
  { what: 'IPv4 without UDP', packet: IPV4_PACKET, change: (f) => f.writeUInt16BE(20, 16) },
  { what: 'first fragment', packet: IPV4_PACKET, change: (f) => f.writeUInt16BE(0x2000, 20) },
  { what: 'last fragment', packet: IPV4_PACKET, change: (f) => f.writeUInt16BE(0x0001, 20) },
  { what: 'TCP', packet: IPV4_PACKET, change: (f) => f.writeUInt8(6, 23) },
  { what: '0.0.0.0', packet: IPV4_PACKET, change: (f) => f.writeUInt32BE(0, 26) },
  { what: '127.0.0.1', packet: IPV4_PACKET, change: (f) => f.writeUInt32BE(0x7f000001, 26) },
  { what: '224.0.0.1', packet: IPV4_PACKET, change: (f) => f.writeUInt32BE(0xe0000001, 26) },
  { what: '255.255.255.255', packet: IPV4_PACKET, change: (f) => f.writeUInt32BE(0xffffffff, 26) },
  { what: 'version 4', packet: IPV6_PACKET, change: (f) => f.writeUInt8(0x40, 14) },
  { what: 'extension header', packet: IPV6_PACKET, change: (f) => f.writeUInt8(0, 20) },
  { what: 'fragment', packet: IPV6_PACKET, change: (f) => f.writeUInt8(44, 20) },
  { what: 'IPv6 too long', packet: IPV6_PACKET, change: (f) => f.writeUInt16BE(19, 18) },
  { what: 'jumbo', packet: IPV6_PACKET, change: (f) => f.writeUInt16BE(0, 18) },
  { what: '::', packet: IPV6_PACKET, change: (f) => f.fill(0, 22, 38) },
  { what: '::1', packet: IPV6_PACKET, change: (f) => f.fill(0, 22, 37).writeUInt8(1, 37) },
  { what: 'ff02::1', packet: IPV6_PACKET, change: (f) => f.writeUInt16BE(0xff02, 22) },
  {
    what: '::ffff:192.0.2.1',
    packet: IPV6_PACKET,
    change: (f) => f.fill(0, 22, 38).writeUInt16BE(0xffff, 32),
  },
]

t.test('a frame that must not be answered is refused', async (t) => {
  for (const { what, packet, change } of BAD) {
    const frame = composePacket(packet)
    change(frame)
    if (packet.source.length === 4) mendIPv4(frame)
    t.equal(scan(frame), REFUSED, what)
  }
  const damaged = composePacket(IPV4_PACKET)
  damaged.writeUInt8(63, 22)
  t.equal(scan(damaged), REFUSED, 'the checksum of the IPv4 header')
})

t.test('no octets crash the scan, and what is accepted is within the frame', async (t) => {
  const start = composePacket({ ...IPV4_PACKET, toMac: OWN_MAC })
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat(60), (noise, kept) => {
      const frame = Buffer.concat([start.subarray(0, kept), noise])
      const found = scan(frame)
      if (found === REFUSED) return
      const at = (found & IS_IPV6) === 0 ? 42 : 62
      t.ok(at + (found & ~IS_IPV6) <= frame.length)
    }),
    { numRuns: 2000 },
  )
})

t.test('messages are copied and summed, whatever their length and place', async (t) => {
  const place = fc.nat(40)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1500 }), place, place, (octets, fromAt, toAt) => {
      const from = memoryOf()
      from.set(octets, fromAt * 4)
      const start = toAt * 4
      const end = start + octets.length
      const whole = (end + 3) & ~3
      const others = (memory: Buffer): boolean =>
        memory.every((octet, i) => octet === 0xff || (i >= start && i < whole))
      const copied = memoryOf()
      copyWords(wordsOf(from), fromAt, wordsOf(copied), toAt, octets.length)
      t.ok(copied.subarray(start, end).equals(octets))
      t.ok(others(copied))
      const summed = memoryOf()
      const sum = copyAndSum(wordsOf(from), fromAt, wordsOf(summed), toAt, octets.length)
      t.ok(summed.subarray(start, end).equals(octets))
      t.ok(summed.subarray(end, whole).every((octet) => octet === 0))
      t.ok(others(summed))
      const folded = sum % 0xffff
      // 0 and 0xffff are the same number of this arithmetic.
      const want = (0xffff - internetChecksum(octets)) % 0xffff
      t.equal(((folded & 0xff) << 8) | (folded >> 8), want)
    }),
    { numRuns: 500 },
  )
})
