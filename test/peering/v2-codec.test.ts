import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { composeStrings } from '../../src/dnsrecord/validate/target.ts'
import { isSite } from '../../src/peering/site-name.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../../src/peering/v2-codec.ts'
import { endpoints, shared } from './samples.ts'

const RUNS = { seed: 4, numRuns: 500 }

function txt(...strings: (string | Uint8Array)[]): Uint8Array {
  const octets = strings.map((s) => (typeof s === 'string' ? Buffer.from(s, 'utf8') : s))
  const rdata = composeStrings(octets)
  if (typeof rdata === 'string') throw new Error(rdata)
  return rdata
}

const GOOD = [
  'v=2',
  'site=eu-1',
  'host=k.example.com',
  'name=a.k.example.com',
  'type=A',
  'ttl=60',
  'target=192.0.2.1',
]

/** GOOD, with the strings whose keys are given put in the place of its own. */
function withStrings(...strings: string[]): Uint8Array {
  const keys = new Set(strings.map((s) => s.slice(0, s.indexOf('='))))
  return txt(...GOOD.filter((s) => !keys.has(s.slice(0, s.indexOf('=')))), ...strings)
}

t.test('an endpoint is written field by field', async (t) => {
  const endpoint = shared({
    site: 'eu-1',
    dnsName: 'klb.k.example.com',
    recordType: 'CNAME',
    setIdentifier: 'GEO-EU',
    weight: 120,
    geoCodes: ['GEO-EU', 'DE'],
    isDefault: true,
    location: '52.52,13.40',
    targets: ['geo-eu.klb.k.example.com'],
    health: 'up',
    sinceSeconds: 1790000000,
  })
  t.equal(
    printRdata(RRType.TXT, composePeerEndpoint(endpoint)!),
    [
      '"v=2" "site=eu-1" "host=k.example.com" "name=klb.k.example.com" "type=CNAME" "ttl=60"',
      '"set=GEO-EU" "weight=120" "geo=DE,GEO-EU" "default=true"',
      '"location=52.52,13.40" "health=up" "since=1790000000"',
      '"target=geo-eu.klb.k.example.com"',
    ].join(' '),
  )
})

t.test('the place where a site probes an endpoint travels with it', async (t) => {
  const table = [
    { probeAt: { address: '', port: 8081 }, strings: ['health-port=8081'] },
    { probeAt: { address: '10.0.0.1', port: 0 }, strings: ['health-address=10.0.0.1'] },
    {
      probeAt: { address: 'gw.example.com', port: 443 },
      strings: ['health-port=443', 'health-address=gw.example.com'],
    },
  ]
  for (const { probeAt, strings } of table) {
    const endpoint = { ...shared({}), probeAt }
    const rdata = composePeerEndpoint(endpoint)!
    t.match(printRdata(RRType.TXT, rdata), strings.map((text) => `"${text}"`).join(' '))
    t.strictSame(scanPeerEndpoint(rdata), endpoint)
  }
  for (const text of ['health-port=22', 'health-port=', 'health-address=a b']) {
    t.type(scanPeerEndpoint(withStrings(text)), 'string', text)
  }
})

t.test('a composed endpoint scans back', async (t) => {
  const property = fc.property(
    endpoints,
    fc.string({ unit: 'grapheme', maxLength: 400 }),
    (e, text) => {
      const isDefault = e.isDefault || (e.geoCodes.length > 0 && text === 'default')
      const endpoint = { ...e, setIdentifier: text, isDefault }
      t.strictSame(scanPeerEndpoint(composePeerEndpoint(endpoint)!), endpoint)
    },
  )
  fc.assert(property, RUNS)
})

t.test('every type scans back', async (t) => {
  const table: readonly [string, string[]][] = [
    ['AAAA', ['2001:db8::1', '2001:db8::2']],
    ['NS', ['ns1.k.example.com', 'ns2.k.example.com']],
    ['TXT', ['"two" "strings"', 'v=2', `${'long '.repeat(1500)}`, '"\\000\\255"', '""', '"a\\"b"']],
    ['MX', ['10 mx1.k.example.com.']],
    ['SRV', ['1 2 5060 sip.k.example.com.']],
    ['CAA', ['0 issue "ca.example.net"']],
    ['PTR', ['host.k.example.com']],
    ['NAPTR', ['10 20 "U" "E2U+sip" "!^.*$!sip:info@example.com!" .']],
    ['HTTPS', ['1 . alpn="h2" ipv4hint=192.0.2.1']],
    ['SVCB', ['1 dot.k.example.com. alpn="dot" port=853']],
  ]
  for (const [recordType, targets] of table) {
    const endpoint = shared({ recordType, targets })
    t.equal(endpoint.targets.length, targets.length, recordType)
    t.strictSame(scanPeerEndpoint(composePeerEndpoint(endpoint)!), endpoint, recordType)
  }
})

t.test('an endpoint that does not fit a record is not composed', async (t) => {
  const targets = Array.from({ length: 10 }, (_, i) => `${i}${'x'.repeat(8000)}`)
  t.equal(composePeerEndpoint(shared({ recordType: 'TXT', targets })), undefined)
})

t.test('other spellings of the same scan to the same', async (t) => {
  const endpoint = scanPeerEndpoint(txt(...GOOD))
  const spellings = [
    withStrings('name=A.k.Example.COM.', 'host=K.example.com.'),
    withStrings('health=unknown', 'since=0'),
    withStrings('health=draining'),
    withStrings('colour=blue', 'another-key=x'),
    withStrings('target=192.0.2.1', 'target=192.0.2.1'),
    withStrings('no key at all'),
    txt('v=2', ...GOOD.slice(1).reverse()),
    txt(...GOOD.slice(0, -1), 'target=192.', '+0.2', '+.1'),
    txt(...GOOD, 'unknown=x', '+continued'),
  ]
  for (const [i, rdata] of spellings.entries())
    t.strictSame(scanPeerEndpoint(rdata), endpoint, `${i}`)
})

const REFUSED: readonly { name: string; given: Uint8Array; want: RegExp }[] = [
  { name: 'nothing', given: new Uint8Array(0), want: /not that of TXT/ },
  { name: 'an empty string', given: Uint8Array.of(0), want: /does not say v=2/ },
  { name: 'a torn string', given: Uint8Array.of(5, 0x76), want: /not that of TXT/ },
  { name: 'another record', given: txt('hello'), want: /does not say v=2/ },
  { name: 'a version to come', given: withStrings('v=3'), want: /does not say v=2/ },
  { name: 'a version to come, in its place', given: txt('v=3'), want: /version "3" is not 2/ },
  { name: 'a second version', given: txt(...GOOD, 'v=2'), want: /v appears twice/ },
  {
    name: 'a second name',
    given: txt(...GOOD, 'name=b.k.example.com'),
    want: /name appears twice/,
  },
  { name: 'no site', given: withStrings('site='), want: /site "" is no name/ },
  {
    name: 'a site with a line feed',
    given: withStrings('site=a\nb'),
    want: /site "a\\nb" is no name/,
  },
  {
    name: 'an address as site',
    given: withStrings('site=192.0.2.1:53'),
    want: /is no name of a site/,
  },
  { name: 'no host', given: withStrings('host='), want: /rootHost is required/ },
  { name: 'a TTL that is none', given: withStrings('ttl=-1'), want: /ttl "-1" is no number/ },
  {
    name: 'a TTL that is too long',
    given: withStrings('ttl=2147483648'),
    want: /recordTTL must be/,
  },
  {
    name: 'a time that is none',
    given: withStrings('since=1e9'),
    want: /since "1e9" is no number/,
  },
  {
    name: 'a name of another host',
    given: withStrings('name=www.example.net'),
    want: /invalid endpoint/,
  },
  {
    name: 'a name that only ends alike',
    given: withStrings('name=evilk.example.com'),
    want: /invalid endpoint/,
  },
  {
    name: 'a name above the host',
    given: withStrings('name=example.com'),
    want: /invalid endpoint/,
  },
  {
    name: 'a name that is none',
    given: withStrings('name=a b\r\n'),
    want: /dnsName "a b\\r\\n" is not/,
  },
  {
    name: 'an unknown type',
    given: withStrings('type=AXFR'),
    want: /recordType "AXFR" must be one of/,
  },
  { name: 'no targets', given: txt(...GOOD.slice(0, -1)), want: /has no targets/ },
  {
    name: 'a bad target',
    given: withStrings('target=192.0.2.256\u001b[31m'),
    want: /target "192.0.2.256\\u001b/,
  },
  {
    name: 'two CNAMEs',
    given: withStrings('type=CNAME', 'target=a', 'target=b'),
    want: /a CNAME must have one/,
  },
  { name: 'a weight below 0', given: withStrings('weight=-1'), want: /invalid weight/ },
  { name: 'a weight beyond all', given: withStrings('weight=1000001'), want: /invalid weight/ },
  { name: 'a continent without GEO-', given: withStrings('geo=EU'), want: /unexpected geo code/ },
  { name: 'no continent', given: withStrings('geo=GEO-XX'), want: /unexpected continent code/ },
  {
    name: 'more targets than an endpoint has',
    given: withStrings(
      ...Array.from({ length: 257 }, (_, i) => `target=10.0.${i >> 8}.${i & 255}`),
    ),
    want: /more than 256 targets/,
  },
  {
    name: 'a value that goes on and on',
    given: withStrings('set=', ...Array(40).fill(`+${'x'.repeat(254)}`)),
    want: /longer than it may be/,
  },
  {
    name: 'octets that are not UTF-8',
    given: txt(...GOOD, Uint8Array.of(0x73, 0x65, 0x74, 0x3d, 0xff)),
    want: /not UTF-8/,
  },
]

t.test('invalid text is refused, with the reason on one printable line', async (t) => {
  for (const { name, given, want } of REFUSED) {
    const got = scanPeerEndpoint(given)
    t.type(got, 'string', name)
    t.match(got, want, name)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are meant
    t.notMatch(got, /[\u0000-\u001f\u007f]/, name)
  }
})

t.test('no octets make it throw', async (t) => {
  const rdata = composePeerEndpoint(shared({ geoCodes: ['DE'], weight: 7, setIdentifier: 'x' }))!
  for (let at = 0; at < rdata.length; at++) {
    t.type(scanPeerEndpoint(rdata.subarray(0, at)), 'string', `cut at ${at}`)
    for (const mask of [1, 0x20, 0x80]) {
      const flipped = Uint8Array.from(rdata)
      flipped[at]! ^= mask
      scanPeerEndpoint(flipped)
    }
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
      t.type(scanPeerEndpoint(octets), 'string')
    }),
    RUNS,
  )
})

t.test('a site is called by what a log minds in no way', async (t) => {
  for (const text of ['a', 'eu-1', '2vl2ac4b', 'a.b_c', 'x'.repeat(63)]) t.ok(isSite(text), text)
  for (const text of ['', '-a', 'a-', 'a b', 'a:1', 'é', 'x'.repeat(64)])
    t.notOk(isSite(text), text)
})
