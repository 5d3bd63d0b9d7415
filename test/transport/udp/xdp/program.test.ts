import fc from 'fast-check'
import t from 'tap'
import { assembleProgram, type XdpTarget } from '../../../../src/transport/udp/xdp/program.ts'
import { runProgram, XDP_PASS } from './interpreter.ts'
import { composePacket, IPV4_PACKET, IPV6_PACKET, OWN_MAC, PEER_MAC } from './packets.ts'

const MAC = Uint8Array.from(OWN_MAC)
const MAP = 0x01020304

function target(address: readonly number[], port = 53): XdpTarget {
  const octets = new Uint8Array(16)
  octets.set(address)
  return { family: address.length === 4 ? 1 : 2, address: octets, port }
}

const TARGETS = [
  target([192, 0, 2, 1]),
  target([192, 0, 2, 1], 5353),
  target([198, 51, 100, 255]),
  target(IPV6_PACKET.destination),
]

/** What the kernel's verifier gets, one instruction per line: number, octets, meaning. */
const LISTING = `
 0 bf16000000000000  r6 = r1
 1 6162000000000000  r2 = *(u32 *)(r6 + 0)     data
 2 6163040000000000  r3 = *(u32 *)(r6 + 4)     data_end
 3 bf24000000000000  r4 = r2
 4 070400002a000000  r4 += 42
 5 2d34280000000000  if r4 > r3 goto 46
 6 bf24000000000000  r4 = r2
 7 07040000ea060000  r4 += 1770
 8 ad34250000000000  if r4 < r3 goto 46
 9 6125000000000000  r5 = *(u32 *)(r2 + 0)
10 5605230002112233  if w5 != 02:11:22:33 goto 46
11 6925040000000000  r5 = *(u16 *)(r2 + 4)
12 5605210044550000  if w5 != 44:55 goto 46
13 69250c0000000000  r5 = *(u16 *)(r2 + 12)
14 16050d0086dd0000  if w5 == IPv6 goto 28
15 56051e0008000000  if w5 != IPv4 goto 46
16 71250e0000000000  r5 = *(u8 *)(r2 + 14)
17 56051c0045000000  if w5 != 0x45 goto 46
18 6925140000000000  r5 = *(u16 *)(r2 + 20)
19 570500003fff0000  r5 &= 0xff3f              more fragments, fragment offset
20 5605190000000000  if w5 != 0 goto 46
21 7125170000000000  r5 = *(u8 *)(r2 + 23)
22 5605170011000000  if w5 != UDP goto 46
23 61271e0000000000  r7 = *(u32 *)(r2 + 30)
24 6925240000000000  r5 = *(u16 *)(r2 + 36)
25 56070100c0000201  if w7 != 192.0.2.1 goto 27
26 1605150000350000  if w5 == 53 goto 48
27 0500120000000000  goto 46
28 bf24000000000000  r4 = r2
29 070400003e000000  r4 += 62
30 2d340f0000000000  if r4 > r3 goto 46
31 71250e0000000000  r5 = *(u8 *)(r2 + 14)
32 57050000f0000000  r5 &= 0xf0
33 56050c0060000000  if w5 != 0x60 goto 46
34 7125140000000000  r5 = *(u8 *)(r2 + 20)
35 56050a0011000000  if w5 != UDP goto 46
36 6127260000000000  r7 = *(u32 *)(r2 + 38)
37 61282a0000000000  r8 = *(u32 *)(r2 + 42)
38 61292e0000000000  r9 = *(u32 *)(r2 + 46)
39 6120320000000000  r0 = *(u32 *)(r2 + 50)
40 6925380000000000  r5 = *(u16 *)(r2 + 56)
41 5600040000000001  if w0 != 0000:0001 goto 46
42 5609030000000000  if w9 != 0000:0000 goto 46
43 5608020000000000  if w8 != 0000:0000 goto 46
44 5607010020010db8  if w7 != 2001:0db8 goto 46
45 1605020000350000  if w5 == 53 goto 48
46 b700000002000000  r0 = XDP_PASS
47 9500000000000000  exit
48 1811000004030201  r1 = map 0x01020304
49 0000000000000000
50 6162100000000000  r2 = *(u32 *)(r6 + 16)    rx_queue_index
51 b703000002000000  r3 = XDP_PASS
52 8500000033000000  call bpf_redirect_map
53 9500000000000000  exit
`

t.test('the instructions of a program are these', async (t) => {
  const program = Buffer.from(assembleProgram(MAC, [TARGETS[0]!, TARGETS[3]!], MAP))
  const want = LISTING.trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/, 2).join(' '))
  const got = Array.from({ length: program.length / 8 }, (_, i) => {
    return `${i} ${program.toString('hex', i * 8, i * 8 + 8)}`
  })
  t.strictSame(got, want)
})

t.test('only IPv4 targets: IPv6 passes', async (t) => {
  const program = assembleProgram(MAC, TARGETS.slice(0, 3), MAP)
  t.equal(runProgram(program, composePacket(IPV6_PACKET), 0), XDP_PASS)
  t.strictSame(runProgram(program, composePacket(IPV4_PACKET), 3), { map: MAP, queue: 3 })
})

t.test('no targets: everything passes', async (t) => {
  const program = assembleProgram(MAC, [], MAP)
  for (const packet of [IPV4_PACKET, IPV6_PACKET]) {
    t.equal(runProgram(program, composePacket(packet), 0), XDP_PASS)
  }
})

t.test('packets for a target are redirected, and nothing else', async (t) => {
  const program = assembleProgram(MAC, TARGETS, MAP)
  const table = [
    { what: 'IPv4', packet: IPV4_PACKET, goes: true },
    { what: 'IPv6', packet: IPV6_PACKET, goes: true },
    { what: 'second port', packet: { ...IPV4_PACKET, destinationPort: 5353 }, goes: true },
    { what: 'other port', packet: { ...IPV4_PACKET, destinationPort: 54 }, goes: false },
    { what: 'port of IPv4 only', packet: { ...IPV6_PACKET, destinationPort: 5353 }, goes: false },
    {
      what: 'high octets',
      packet: { ...IPV4_PACKET, destination: [198, 51, 100, 255] },
      goes: true,
    },
    { what: 'other MAC', packet: { ...IPV4_PACKET, toMac: PEER_MAC }, goes: false },
    {
      what: 'last octet of the MAC',
      packet: { ...IPV4_PACKET, toMac: [...OWN_MAC.slice(0, 5), 0] },
      goes: false,
    },
    { what: 'broadcast', packet: { ...IPV4_PACKET, toMac: new Array(6).fill(255) }, goes: false },
  ]
  for (const { what, packet, goes } of table) {
    const want = goes ? { map: MAP, queue: 1 } : XDP_PASS
    t.strictSame(runProgram(program, composePacket(packet), 1), want, what)
  }
  for (const packet of [IPV4_PACKET, IPV6_PACKET]) {
    for (let i = 0; i < 16; i++) {
      const destination = packet.destination.map((octet, at) => (at === i ? octet ^ 1 : octet))
      const want = i < destination.length ? XDP_PASS : { map: MAP, queue: 0 }
      const got = runProgram(program, composePacket({ ...packet, destination }), 0)
      t.strictSame(got, want, `octet ${i} of the address`)
    }
  }
})

t.test('fragments, options, extension headers and VLAN tags pass', async (t) => {
  const program = assembleProgram(MAC, TARGETS, MAP)
  const table = [
    { packet: IPV4_PACKET, at: 20, octets: '2000' },
    { packet: IPV4_PACKET, at: 20, octets: '0001' },
    { packet: IPV4_PACKET, at: 20, octets: '1fff' },
    { packet: IPV4_PACKET, at: 14, octets: '46' },
    { packet: IPV4_PACKET, at: 23, octets: '06' },
    { packet: IPV4_PACKET, at: 12, octets: '8100' },
    { packet: IPV6_PACKET, at: 20, octets: '00' },
    { packet: IPV6_PACKET, at: 20, octets: '2c' },
    { packet: IPV6_PACKET, at: 14, octets: '40' },
    { packet: IPV6_PACKET, at: 12, octets: '88a8' },
  ]
  for (const { packet, at, octets } of table) {
    const frame = composePacket(packet)
    frame.write(octets, at, 'hex')
    t.equal(runProgram(program, frame, 0), XDP_PASS, `${octets} at ${at}`)
  }
})

t.test('a frame longer than the memory for one passes', async (t) => {
  const program = assembleProgram(MAC, TARGETS, MAP)
  for (const octets of [1770, 1771]) {
    const packet = { ...IPV4_PACKET, message: new Uint8Array(octets - 42) }
    const want = octets === 1770 ? { map: MAP, queue: 0 } : XDP_PASS
    t.strictSame(runProgram(program, composePacket(packet), 0), want, `${octets} octets`)
  }
})

t.test('no frame makes the program read outside of it', async () => {
  const program = assembleProgram(MAC, TARGETS, MAP)
  const starts = [IPV4_PACKET, IPV6_PACKET].map((packet) => composePacket(packet))
  fc.assert(
    fc.property(fc.constantFrom(...starts), fc.nat(90), fc.uint8Array({ maxLength: 90 }), run),
    { numRuns: 1000 },
  )
  function run(start: Buffer, kept: number, noise: Uint8Array): void {
    runProgram(program, Buffer.concat([start.subarray(0, kept), noise]), 0)
  }
})
