import fc from 'fast-check'
import t from 'tap'
import { Query } from '../../../src/dns/message/query.ts'
import { type AddressFamily, printAddress } from '../../../src/dns/text/address.ts'
import {
  composeProxyHeader,
  HeaderRead,
  PROXY_HEADER_OCTETS_MAX,
  ProxyHeader,
} from '../../../src/transport/proxy/header.ts'
import { arbitraryOctets } from '../../support/arbitrary.ts'
import { proxyHeader } from '../../support/proxy-header.ts'

const NAMES = ['none', 'partial', 'whole', 'malformed'] as const

/** What a reader finds, as text: `whole 28 192.0.2.7 4711`. Octets stand before and behind the header. */
function read(octets: Uint8Array): string {
  const header = new ProxyHeader()
  const around = Buffer.concat([Buffer.from([9]), octets, Buffer.from('PROXY\r\n')])
  const found = header.read(around, 1, 1 + octets.length)
  if (found !== HeaderRead.Whole) return NAMES[found]
  const { family, address, port, octets: length, tlvsOctets } = header
  const client =
    family === 0 ? 'no client' : `${printAddress(address, family as AddressFamily)} ${port}`
  return `whole ${length} ${client}${tlvsOctets === 0 ? '' : ` and ${tlvsOctets}`}`
}

const line = (text: string): Buffer => Buffer.from(text, 'latin1')
const tlvs = (octets: number): Uint8Array => new Uint8Array(octets).fill(7)

t.test('headers of version 2', async (t) => {
  const room = PROXY_HEADER_OCTETS_MAX - 28
  for (const [what, octets, want] of [
    ['IPv4', proxyHeader(), 'whole 28 192.0.2.7 4711'],
    ['IPv6', proxyHeader({ source: '2001:db8::7' }), 'whole 52 2001:db8::7 4711'],
    ['IPv4-mapped', proxyHeader({ source: '::ffff:192.0.2.7' }), 'whole 52 192.0.2.7 4711'],
    ['of a TCP client', proxyHeader({ kind: 0x11 }), 'whole 28 192.0.2.7 4711'],
    ['with TLVs', proxyHeader({ tlvs: tlvs(5) }), 'whole 33 192.0.2.7 4711 and 5'],
    ['the longest', proxyHeader({ tlvs: tlvs(room) }), `whole 2048 192.0.2.7 4711 and ${room}`],
    ['longer than 2 KiB', proxyHeader({ tlvs: tlvs(room + 1) }), 'malformed'],
    [
      'LOCAL',
      proxyHeader({ command: 0x20, kind: 0, length: 0 }).subarray(0, 16),
      'whole 16 no client',
    ],
    ['LOCAL with an address', proxyHeader({ command: 0x20 }), 'whole 28 no client'],
    [
      'LOCAL, too short for an address',
      proxyHeader({ command: 0x20, length: 4 }),
      'whole 20 no client',
    ],
    ['LOCAL with TLVs', proxyHeader({ command: 0x20, tlvs: tlvs(5) }), 'whole 33 no client'],
    ['UNSPEC', proxyHeader({ kind: 0, addresses: tlvs(0) }), 'whole 16 no client'],
    ['UNIX', proxyHeader({ kind: 0x31, addresses: tlvs(216) }), 'whole 232 no client'],
    ['UNIX, too short', proxyHeader({ kind: 0x32, addresses: tlvs(215) }), 'malformed'],
    ['too short for IPv4', proxyHeader({ addresses: tlvs(11) }), 'malformed'],
    ['too short for IPv6', proxyHeader({ kind: 0x22, addresses: tlvs(35) }), 'malformed'],
    ['a length above the truth', proxyHeader({ length: 13 }), 'partial'],
    [
      'a length below the truth',
      proxyHeader({ tlvs: tlvs(5), length: 12 }),
      'whole 28 192.0.2.7 4711',
    ],
    ['another version', proxyHeader({ command: 0x11 }), 'malformed'],
    ['another command', proxyHeader({ command: 0x22 }), 'malformed'],
    ['another transport', proxyHeader({ kind: 0x13 }), 'malformed'],
    ['another family', proxyHeader({ kind: 0x41 }), 'malformed'],
    ['LOCAL of another family', proxyHeader({ command: 0x20, kind: 0x41 }), 'malformed'],
    ['nothing', Buffer.alloc(0), 'none'],
    ['another signature', Buffer.from('0d0a0d0a000d0a515549540b', 'hex'), 'none'],
  ] as const) {
    t.equal(read(octets), want, what)
  }
  const whole = proxyHeader({ tlvs: tlvs(5) })
  for (let end = 1; end < whole.length; end++) {
    t.equal(read(whole.subarray(0, end)), 'partial', `cut after ${end} octets`)
  }
})

t.test('headers of version 1', async (t) => {
  const longest = `PROXY UNKNOWN ${'f'.repeat(91)}\r\n`
  for (const [text, want] of [
    ['PROXY TCP4 192.0.2.7 192.0.2.53 4711 53\r\n', 'whole 41 192.0.2.7 4711'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 0 65535\r\nrest', 'whole 41 192.0.2.7 0'],
    ['PROXY TCP6 2001:db8::7 2001:db8::53 4711 53\r\n', 'whole 45 2001:db8::7 4711'],
    ['PROXY TCP6 ::ffff:192.0.2.7 ::1 4711 53\r\n', 'whole 41 192.0.2.7 4711'],
    ['PROXY TCP6 192.0.2.7 ::1 4711 53\r\n', 'whole 34 192.0.2.7 4711'],
    ['PROXY UNKNOWN\r\n', 'whole 15 no client'],
    ['PROXY UNKNOWN ::1 ::1 1 1\r\n', 'whole 27 no client'],
    [longest, 'whole 107 no client'],
    [`${longest.slice(0, -2)}f\r\n`, 'malformed'],
    ['f'.repeat(0), 'none'],
    [`PROXY ${'f'.repeat(100)}`, 'partial'],
    [`PROXY ${'f'.repeat(101)}`, 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 4711 53\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 4711 53\r\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7\r\n192.0.2.53 4711 53\r\n', 'malformed'],
    ['PROXY  TCP4 192.0.2.7 192.0.2.53 4711 53\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 4711 53 \r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 4711\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 04711 53\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 65536 53\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.53 -1 53\r\n', 'malformed'],
    ['PROXY TCP4 192.0.2.007 192.0.2.53 4711 53\r\n', 'malformed'],
    ['PROXY TCP4 2001:db8::7 2001:db8::53 4711 53\r\n', 'malformed'],
    ['PROXY TCP6 fe80::1%eth0 ::1 4711 53\r\n', 'malformed'],
    ['PROXY UDP4 192.0.2.7 192.0.2.53 4711 53\r\n', 'malformed'],
    ['PROXY\r\n', 'malformed'],
    ['PROXYTCP4 192.0.2.7 192.0.2.53 4711 53\r\n', 'malformed'],
    ['PROXZ TCP4', 'none'],
    ['PRO', 'partial'],
  ] as const) {
    t.equal(read(line(text)), want, JSON.stringify(text))
  }
})

t.test('a composed header is read as it was', async () => {
  const query = new Query()
  fc.assert(
    fc.property(
      fc.boolean(),
      arbitraryOctets(16, 16),
      fc.nat(65_535),
      arbitraryOctets(100),
      (isIPv4, address, port, extra) => {
        query.peerFamily = isIPv4 ? 1 : 2
        query.peerAddress.set(isIPv4 ? [...address.subarray(0, 4), ...new Uint8Array(12)] : address)
        query.peerPort = port
        query.proxyTlvs = Buffer.concat([Buffer.from('xx'), extra])
        query.proxyTlvsAt = 2
        query.proxyTlvsOctets = extra.length
        const composed = composeProxyHeader(query)
        const header = new ProxyHeader()
        if (header.read(composed, 0, composed.length) !== HeaderRead.Whole) return false
        const again = new Query()
        header.describe(again, composed)
        const { proxyTlvs, proxyTlvsAt, proxyTlvsOctets } = again
        const tlvs = proxyTlvs.subarray(proxyTlvsAt, proxyTlvsAt + proxyTlvsOctets)
        return (
          header.octets === composed.length &&
          again.peerPort === port &&
          Buffer.compare(again.peerAddress, query.peerAddress) === 0 &&
          Buffer.compare(tlvs, extra) === 0
        )
      },
    ),
  )
})

t.test('any octets are read without an exception, and within their bounds', async () => {
  const start = fc.constantFrom(
    Buffer.alloc(0),
    line('PROXY '),
    line('PROXY TCP4 '),
    proxyHeader().subarray(0, 12),
    proxyHeader().subarray(0, 13),
    proxyHeader({ command: 0x20 }).subarray(0, 14),
    proxyHeader().subarray(0, 14),
  )
  fc.assert(
    fc.property(start, arbitraryOctets(300), (first, rest) => {
      const octets = Buffer.concat([first, rest])
      const header = new ProxyHeader()
      const found = header.read(octets, 0, octets.length)
      if (found !== HeaderRead.Whole) return true
      const tlvsEnd = header.tlvsOctets === 0 ? 0 : header.tlvsAt + header.tlvsOctets
      return header.octets <= octets.length && tlvsEnd <= header.octets
    }),
    { numRuns: 2000 },
  )
})
