import t, { type Test } from 'tap'
import { needs, needsRoot } from '../support/peer.ts'
import { until } from '../support/until.ts'
import { readMessage, wireQuery } from '../support/wire.ts'
import { composePacket, mendIPv4, type PacketFields } from '../transport/udp/xdp/packets.ts'
import { corefile, SERVER, SERVER6, XdpPlace } from './xdp-place.ts'

/*
 * Frames of every kind, good and bad, that a client sends to an interface with AF_XDP. The kernel's counters show whether
 * a query went through a socket.
 */

t.setTimeout(600_000)

const NEEDS = { ...needsRoot(), ...needs('ip', 'dig') }
const BROADCAST = new Array(6).fill(255)
const IPV4_AT = 14
const IPV4_UDP = 34
const IPV6_UDP = 54

type Way = 'past' | 'sockets' | 'dropped'

interface Kind {
  readonly what: string
  readonly way: Way
  readonly frames: (query: Uint8Array) => readonly Buffer[]
}

const patched = (frame: Buffer, at: number, octets: string): Buffer => {
  frame.write(octets, at, 'hex')
  return frame
}

const inserted = (frame: Buffer, at: number, octets: string): Buffer =>
  Buffer.concat([frame.subarray(0, at), Buffer.from(octets, 'hex'), frame.subarray(at)])

/** Adds options to the IPv4 header. */
function withOptions(frame: Buffer, octets: string): Buffer {
  const result = inserted(frame, IPV4_UDP, octets)
  const headerOctets = 20 + octets.length / 2
  result[IPV4_AT] = 0x40 | (headerOctets / 4)
  result.writeUInt16BE(result.length - IPV4_AT, 16)
  return mendIPv4(result, headerOctets)
}

/** Adds an extension header, whose next header is UDP. */
function withExtension(frame: Buffer, type: number, octets: string): Buffer {
  const result = inserted(frame, IPV6_UDP, `11${octets}`)
  result[20] = type
  result.writeUInt16BE(result.length - IPV6_UDP, 18)
  return result
}

const FIRST_OCTETS = 24

/** The two fragments of a packet. */
function fragmentsOf(frame: Buffer, isIPv6: boolean): Buffer[] {
  const udp = isIPv6 ? IPV6_UDP : IPV4_UDP
  const parts = [frame.subarray(udp, udp + FIRST_OCTETS), frame.subarray(udp + FIRST_OCTETS)]
  return parts.map((part, i) => {
    const bare = Buffer.concat([frame.subarray(0, udp), part])
    const isFirst = i === 0
    if (isIPv6) {
      bare.writeUInt16BE(part.length, 18)
      return withExtension(bare, 44, `00${isFirst ? '0001' : '0018'}00000007`)
    }
    bare.writeUInt16BE(bare.length - IPV4_AT, 16)
    bare.write(isFirst ? '00072000' : '00070003', 18, 'hex')
    return mendIPv4(bare)
  })
}

function kindsOf(packet: PacketFields): Kind[] {
  const isIPv6 = packet.source.length === 16
  const udp = isIPv6 ? IPV6_UDP : IPV4_UDP
  const compose = (message: Uint8Array, fields: Partial<PacketFields> = {}): Buffer =>
    composePacket({ ...packet, message, ...fields })
  const kind = (what: string, way: Way, frames: Kind['frames']): Kind => ({
    what: `${isIPv6 ? 'IPv6' : 'IPv4'}: ${what}`,
    way,
    frames,
  })
  const fields = (what: string, way: Way, changed: Partial<PacketFields>): Kind =>
    kind(what, way, (query) => [compose(query, changed)])
  const change = (what: string, way: Way, at: number, octets: string): Kind =>
    kind(what, way, (query) => {
      const frame = patched(compose(query), at, octets)
      return [isIPv6 ? frame : mendIPv4(frame)]
    })
  return [
    fields('a query', 'past', {}),
    // A sender on the same machine leaves the checksum unfinished.
    fields('a wrong UDP checksum', 'past', { udpChecksum: 0x1234 }),
    fields('no UDP checksum', 'past', { udpChecksum: 0 }),
    fields('one hop left', 'past', { hops: 1 }),
    fields('padding', 'past', { padding: 17 }),
    fields('a traffic class', 'past', { trafficClass: 0xb9 }),
    kind('fragments', 'sockets', (query) => fragmentsOf(compose(query), isIPv6)),
    kind('the last fragment', 'dropped', (query) => fragmentsOf(compose(query), isIPv6).slice(1)),
    fields('a broadcast frame', 'sockets', { toMac: BROADCAST }),
    fields('a frame for another MAC address', 'dropped', { toMac: [2, 1, 1, 1, 1, 1] }),
    fields('from a broadcast MAC address', 'dropped', { fromMac: BROADCAST }),
    fields('from a MAC address of a group', 'dropped', { fromMac: [3, 0, 0, 0, 0, 1] }),
    fields('from port 0', 'dropped', { sourcePort: 0 }),
    fields('another port', 'dropped', { destinationPort: 54 }),
    fields('from our own address', 'dropped', { source: packet.destination }),
    kind('a VLAN tag of priority only', 'sockets', (query) => [
      inserted(compose(query), 12, '8100a000'),
    ]),
    kind('a VLAN tag', 'dropped', (query) => [inserted(compose(query), 12, '81000007')]),
    change('a UDP length above the packet', 'dropped', udp + 4, 'ffff'),
    change('a UDP length below its header', 'dropped', udp + 4, '0007'),
    change('an IP length above the frame', 'dropped', isIPv6 ? 18 : 16, 'ffff'),
    change('an IP length below UDP', 'dropped', isIPv6 ? 18 : 16, isIPv6 ? '0007' : '001b'),
    change('a response', 'dropped', udp + 8 + 2, '8180'),
    kind('a DNS header cut', 'dropped', (query) => [compose(query.subarray(0, 11))]),
    kind('no message', 'dropped', () => [compose(new Uint8Array(0))]),
    kind('cut anywhere', 'dropped', (query) => {
      const frame = compose(query)
      return Array.from({ length: frame.length - IPV4_AT }, (_, i) =>
        frame.subarray(0, IPV4_AT + i),
      )
    }),
  ]
}

const only4 = (packet: PacketFields): Kind[] => [
  {
    what: 'a wrong checksum of the IPv4 header',
    way: 'dropped',
    frames: (message) => [patched(composePacket({ ...packet, message }), 24, '1234')],
  },
  ...['94040000', '01010101', '8303100000000000'].map((octets): Kind => {
    return {
      // A source route is refused by default.
      way: octets.startsWith('83') ? 'dropped' : 'sockets',
      what: `IPv4 options ${octets}`,
      frames: (message) => [withOptions(composePacket({ ...packet, message }), octets)],
    }
  }),
  ...[[192, 0, 2, 255], [127, 0, 0, 1], [0, 0, 0, 0], BROADCAST.slice(2), [224, 0, 0, 1]].map(
    (source): Kind => {
      return {
        what: `from ${source.join('.')}`,
        way: 'dropped',
        frames: (message) => [composePacket({ ...packet, message, source })],
      }
    },
  ),
]

const only6 = (packet: PacketFields): Kind[] =>
  [
    { what: 'hop-by-hop options', type: 0, octets: '00010400000000' },
    { what: 'destination options', type: 60, octets: '00010400000000' },
    { what: 'a packet that is its only fragment', type: 44, octets: '00000000000009' },
  ].map(({ what, type, octets }): Kind => {
    return {
      what,
      way: 'sockets',
      frames: (message) => [withExtension(composePacket({ ...packet, message }), type, octets)],
    }
  })

/** Sends frames of each kind, each followed by a good query. */
async function checkKinds(t: Test, place: XdpPlace, kinds: readonly Kind[]): Promise<void> {
  const client = place.openFrames()
  const base = await place.packets()
  const message = (id: number): Uint8Array => wireQuery({ id, name: 'www.example.org' })
  const idOf = (i: number): number => 1000 + 2 * i
  for (const [i, { what, way, frames }] of kinds.entries()) {
    const before = await place.socketDatagrams()
    const id = idOf(i)
    await client.send(frames(message(id)))
    await client.send([composePacket({ ...base.ipv4, message: message(id + 1) })])
    await until(() => client.replies().has(id + 1), `the query after ${what}`)
    if (way !== 'dropped') await until(() => client.replies().has(id), what)
    const datagrams = (await place.socketDatagrams()) - before
    if (way === 'past') t.equal(datagrams, 0, what)
    if (way === 'sockets') t.equal(datagrams, 1, what)
  }
  for (const [i, { what, way }] of kinds.entries()) {
    const reply = client.replies().get(idOf(i))
    if (way === 'dropped') t.equal(reply, undefined, what)
    else t.strictSame([...readMessage(reply!).answer[0]!.rdata], [198, 51, 100, 1], what)
  }
}

for (const mode of ['generic', 'native']) {
  t.test(`${mode}: frames of each kind`, NEEDS, async (t) => {
    const place = await XdpPlace.create(t)
    const server = await place.start(corefile(`xdp eth0 {\n mode ${mode}\n queues 1\n}`))
    await server.prints(new RegExp(`INFO. xdp eth0: ${mode} `))
    await place.untilPast(true)
    await place.keepVlanTags()
    const { ipv4, ipv6 } = await place.packets()
    const kinds = [...kindsOf(ipv4), ...kindsOf(ipv6), ...only4(ipv4), ...only6(ipv6)]
    await checkKinds(t, place, kinds)
    t.notMatch(server.output(), /panic|Recovered|WARNING/)
  })
}

/** An ICMP echo request to the host of `packet`. */
function echoRequest(packet: PacketFields): Buffer {
  const frame = composePacket({ ...packet, message: Buffer.alloc(24) })
  // Type 8, code 0, checksum, zeros.
  patched(frame, 23, '01').fill(0, IPV4_UDP)
  patched(frame, IPV4_UDP, '0800f7ff')
  return mendIPv4(frame)
}

t.test('a flood: queries, TCP and ICMP are answered meanwhile', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start()
  await server.prints(/INFO. xdp eth0/)
  await place.untilPast(true)
  const { ipv4, ipv6 } = await place.packets()
  const query = wireQuery({ id: 1, name: 'www.example.org' })
  const kinds = [...kindsOf(ipv4), ...kindsOf(ipv6), ...only4(ipv4), ...only6(ipv6)]
  const noise = Array.from({ length: 200 }, (_, i) => {
    const message = Buffer.alloc(12 + i, Buffer.from([i, 255 - i, i >> 1]))
    return composePacket({ ...(i % 2 === 0 ? ipv4 : ipv6), message, destinationPort: 53 + (i % 3) })
  })
  const segments = noise.map((frame, i) => {
    return i % 2 === 0 ? mendIPv4(patched(frame, 23, '06')) : patched(frame, 20, '06')
  })
  const frames = [...kinds.flatMap((kind) => kind.frames(query)), ...noise, ...segments]
  const client = place.openFrames()
  const one = place.openFrames()
  let isOver = false
  const flood = (async () => {
    while (!isOver) await client.send(frames)
  })()
  try {
    for (let i = 0; i < 10; i++) {
      // A ring that is full for a moment may cost a try, as the buffer of a socket would.
      const words = ['www.example.org', '+short', '+time=1', '+tries=10']
      t.equal((await place.dig(`@${SERVER}`, ...words)).trim(), '198.51.100.1')
      t.equal((await place.dig(`@${SERVER}`, ...words, '+tcp')).trim(), '198.51.100.1')
      const echoed = async () => (await place.counters()).Icmp!.OutEchoReps!
      const before = await echoed()
      await one.send([echoRequest(ipv4)])
      await until(async () => (await echoed()) > before, 'the reply to a ping')
    }
  } finally {
    isOver = true
    await flood
  }
  t.ok((await client.end()) > 10_000)
  t.equal(await place.isPast(), true)
  t.equal(await place.isPast(SERVER6), true)
  t.notMatch(server.output(), /panic|Recovered|WARNING/)
})
