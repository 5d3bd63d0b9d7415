import fc from 'fast-check'
import t from 'tap'
import { parsePeerAddress, peerOfText } from '../../src/transport/peer-address.ts'

t.test('addresses as Node prints them', async (t) => {
  const zeros = (n: number): number[] => new Array(n).fill(0)
  const table: { given: string; family: number; want: number[] }[] = [
    { given: '192.0.2.1', family: 1, want: [192, 0, 2, 1] },
    { given: '255.255.255.255', family: 1, want: [255, 255, 255, 255] },
    { given: '0.0.0.0', family: 1, want: [0, 0, 0, 0] },
    { given: '::ffff:192.0.2.1', family: 1, want: [192, 0, 2, 1] },
    { given: '::ffff:c000:201', family: 1, want: [192, 0, 2, 1] },
    { given: '::', family: 2, want: zeros(16) },
    { given: '::1', family: 2, want: [...zeros(15), 1] },
    { given: '2001:db8::', family: 2, want: [0x20, 1, 0x0d, 0xb8, ...zeros(12)] },
    {
      given: '2001:db8::8:800:200c:417a',
      family: 2,
      want: [0x20, 1, 0x0d, 0xb8, ...zeros(4), 0, 8, 8, 0, 0x20, 0x0c, 0x41, 0x7a],
    },
    { given: 'fe80::1%eth0', family: 2, want: [0xfe, 0x80, ...zeros(13), 1] },
    {
      given: '64:ff9b::192.0.2.33',
      family: 2,
      want: [0, 0x64, 0xff, 0x9b, ...zeros(8), 192, 0, 2, 33],
    },
    { given: '1:2:3:4:5:6:7:8', family: 2, want: [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8] },
    { given: '::ffff:0:0:1', family: 2, want: [...zeros(8), 0xff, 0xff, ...zeros(5), 1] },
  ]
  for (const { given, family, want } of table) {
    const out = new Uint8Array(16).fill(9)
    t.equal(parsePeerAddress(given, out), family, given)
    t.strictSame([...out], [...want, ...zeros(16 - want.length)], given)
  }
})

t.test('any text at all is read to its end and no further', async () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9a-f:.%]{0,60}$/), (text) => {
      const out = new Uint8Array(16)
      const family = parsePeerAddress(text, out)
      return family === 1 || family === 2
    }),
    { seed: 5, numRuns: 3000 },
  )
})

t.test('clients and networks of addresses', async (t) => {
  const table: { name: string; given: [string, string]; same: 'client' | 'network' | 'none' }[] = [
    { name: 'one address', given: ['192.0.2.1', '192.0.2.1'], same: 'client' },
    { name: 'two addresses of a /24', given: ['192.0.2.1', '192.0.2.255'], same: 'network' },
    { name: 'two /24', given: ['192.0.2.1', '192.0.3.1'], same: 'none' },
    { name: 'a mapped address', given: ['192.0.2.1', '::ffff:192.0.2.1'], same: 'client' },
    { name: 'two mapped addresses', given: ['::ffff:192.0.2.2', '192.0.2.1'], same: 'network' },
    { name: 'one /64', given: ['2001:db8:0:1::1', '2001:db8:0:1:ffff::'], same: 'client' },
    { name: 'two /64 of a /59', given: ['2001:db8:0:1::1', '2001:db8:0:1f::1'], same: 'network' },
    { name: 'the ends of a /48', given: ['2001:db8::', '2001:db8:0:ffff::'], same: 'network' },
    { name: 'two /48', given: ['2001:db8:0:1::1', '2001:db8:1:1::1'], same: 'none' },
    { name: 'a /64 that begins like an address', given: ['c000:201::', '192.0.2.1'], same: 'none' },
  ]
  for (const { name, given, same } of table) {
    const [one, other] = given.map(peerOfText)
    t.equal(one?.client === other?.client, same === 'client', `${name}: client`)
    t.equal(one?.network === other?.network, same !== 'none', `${name}: network`)
  }
})
