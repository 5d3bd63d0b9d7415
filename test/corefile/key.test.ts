import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { scanKey } from '../../src/corefile/key.ts'

const scan = (text: string, port = 53) => scanKey({ text, file: 'Corefile', line: 3 }, port)
const print = (text: string, port = 53) =>
  scan(text, port).map((key) => `${key.scheme}://${key.zoneText}:${key.port}`)

const accepted: readonly { name: string; given: string; want: readonly string[] }[] = [
  { name: 'the root', given: '.', want: ['dns://.:53'] },
  {
    name: 'a zone is qualified and lower case',
    given: 'Example.ORG',
    want: ['dns://example.org.:53'],
  },
  { name: 'a qualified zone', given: 'example.org.', want: ['dns://example.org.:53'] },
  { name: 'a port', given: 'example.org:1053', want: ['dns://example.org.:1053'] },
  { name: 'any free port', given: 'example.org:0', want: ['dns://example.org.:0'] },
  { name: 'dns', given: 'dns://example.org', want: ['dns://example.org.:53'] },
  { name: 'tls has its port', given: 'tls://example.org', want: ['tls://example.org.:853'] },
  { name: 'quic has its port', given: 'quic://example.org', want: ['quic://example.org.:853'] },
  { name: 'grpc has its port', given: 'grpc://example.org', want: ['grpc://example.org.:443'] },
  { name: 'https has its port', given: 'https://example.org', want: ['https://example.org.:443'] },
  {
    name: 'https3 has its port',
    given: 'https3://example.org',
    want: ['https3://example.org.:443'],
  },
  { name: 'scheme and port', given: 'tls://example.org:8853', want: ['tls://example.org.:8853'] },
  {
    name: 'text behind a colon that is no integer belongs to the zone',
    given: 'example.org:port',
    want: ['dns://example.org:port.:53'],
  },
  {
    name: 'an unknown scheme belongs to the zone',
    given: 'foo://example.org:54',
    want: ['dns://foo://example.org.:54'],
  },
  { name: 'IPv4 at an octet', given: '10.0.0.0/8', want: ['dns://10.in-addr.arpa.:53'] },
  {
    name: 'IPv4 at an octet with a port',
    given: '10.1.2.0/24:54',
    want: ['dns://2.1.10.in-addr.arpa.:54'],
  },
  {
    name: 'bits behind the mask are ignored',
    given: '10.1.2.3/24',
    want: ['dns://2.1.10.in-addr.arpa.:53'],
  },
  { name: 'all of IPv4', given: '0.0.0.0/0', want: ['dns://in-addr.arpa.:53'] },
  { name: 'one address', given: '192.0.2.1/32', want: ['dns://1.2.0.192.in-addr.arpa.:53'] },
  {
    name: 'IPv4 off an octet is several zones',
    given: '10.0.0.0/15',
    want: ['dns://0.10.in-addr.arpa.:53', 'dns://1.10.in-addr.arpa.:53'],
  },
  {
    name: 'IPv6 at a nibble',
    given: '2001:db8::/32',
    want: ['dns://8.b.d.0.1.0.0.2.ip6.arpa.:53'],
  },
  {
    name: 'IPv6 off a nibble is several zones',
    given: '2001:db8:8000::/34:54',
    want: ['8', '9', 'a', 'b'].map((nibble) => `dns://${nibble}.8.b.d.0.1.0.0.2.ip6.arpa.:54`),
  },
  { name: 'an address without a mask is a name', given: '10.0.0.1', want: ['dns://10.0.0.1.:53'] },
]

t.test('keys are read as CoreDNS reads them', async (t) => {
  for (const { name, given, want } of accepted) t.strictSame(print(given), want, name)
})

t.test('the default port is for dns only', async (t) => {
  t.strictSame(print('example.org', 1053), ['dns://example.org.:1053'])
  t.strictSame(print('example.org:53', 1053), ['dns://example.org.:53'])
  t.strictSame(print('tls://example.org', 1053), ['tls://example.org.:853'])
})

t.test('an off-octet mask expands to as many zones as it takes', async (t) => {
  const zones = print('192.168.1.128/25')
  t.equal(zones.length, 128)
  t.equal(zones[0], 'dns://128.1.168.192.in-addr.arpa.:53')
  t.equal(zones[127], 'dns://255.1.168.192.in-addr.arpa.:53')
})

t.test('zones are also given in wire form', async (t) => {
  t.strictSame(scan('eXample')[0]?.zone, Uint8Array.from([7, ...Buffer.from('example'), 0]))
})

const label = 'a'.repeat(63)

const refused: readonly { name: string; given: string; want: string }[] = [
  { name: 'a colon at the end', given: 'a:', want: 'expecting data after last colon: "a:"' },
  { name: 'nothing', given: '', want: 'expecting data after last colon: ""' },
  { name: 'nothing behind a scheme', given: 'dns://', want: 'expecting data after last colon: ""' },
  { name: 'no zone', given: ':53', want: 'zone is not a valid domain name: ' },
  { name: 'an empty label', given: 'a..b', want: 'zone is not a valid domain name: a..b' },
  {
    name: 'a label of 64 octets',
    given: `${label}a`,
    want: `zone is not a valid domain name: ${label}a`,
  },
  {
    name: 'a zone of more than 255 characters',
    given: `${label}.`.repeat(4) + label,
    want: 'specified zone is too long: 319 > 255',
  },
  { name: 'a port beyond all ports', given: 'a:65536', want: 'address 65536: invalid port' },
  { name: 'a negative port', given: 'a:-1', want: 'address -1: invalid port' },
]

t.test('keys are refused in the words of CoreDNS', async (t) => {
  for (const { name, given, want } of refused) {
    try {
      scan(given)
      t.fail(`${name} was accepted`)
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      t.equal(error.message, `error inspecting server blocks: ${want}`, name)
      t.strictSame(error.position, { file: 'Corefile', line: 3 }, name)
    }
  }
})
