import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { PeerEndpoint } from '../../src/peering/peer-endpoint.ts'
import { isSite } from '../../src/peering/site-name.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../../src/peering/v2-codec.ts'
import { composeStrings } from '../../src/records/validate/target.ts'
import { peerTextOf } from '../support/peer-text.ts'
import { endpoints, recordFields, shared } from './samples.ts'

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
    createdSeconds: 1780000000,
    isUndated: true,
    recordId: '0123abcd',
    settings: {
      allDown: 'closed',
      sticky: { ipv4Bits: 24, ipv6Bits: 56 },
      answers: 3,
      failover: [
        { code: 'DE', entries: ['GEO-EU', 'spare site'] },
        { code: '*', entries: ['GEO-NA'] },
      ],
      drain: { reason: 'racks move', untilMs: Date.parse('2026-11-24T18:00:00Z') },
      shift: { to: 'GEO-EU', steps: [0.5, 100], bakeMs: 600_000 },
    },
  })
  t.equal(
    printRdata(RRType.TXT, composePeerEndpoint(endpoint)!),
    [
      '"v=2" "site=eu-1" "host=k.example.com" "name=klb.k.example.com" "type=CNAME" "ttl=60"',
      '"set=GEO-EU" "weight=120" "geo=DE,GEO-EU" "default=true"',
      '"location=52.52,13.40" "health=up" "since=1790000000"',
      '"created=1780000000" "undated=true" "record=0123abcd" "all-down=closed" "sticky=24 56"',
      '"answers=3" "failover=DE:GEO-EU,spare site;*:GEO-NA" "drain=racks move"',
      '"drain-until=2026-11-24T18:00:00Z" "shift=to=GEO-EU steps=0.5%,100% bake=10m0s"',
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
    const endpoint = shared({ probeAt })
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
    recordFields,
    fc.string({ unit: 'grapheme', maxLength: 400 }),
    (e, fields, text) => {
      const endpoint = shared({ ...peerTextOf(e), ...fields, setIdentifier: text })
      const onProblem = (problem: string) => t.fail(problem)
      t.strictSame(scanPeerEndpoint(composePeerEndpoint(endpoint)!, { onProblem }), endpoint)
    },
  )
  fc.assert(property, RUNS)
})

t.test('every type scans back', async (t) => {
  const table: readonly [string, string[]][] = [
    ['AAAA', ['2001:db8::1', '2001:db8::2']],
    ['NS', ['ns1.k.example.com', 'ns2.k.example.com']],
    ['ALIAS', ['lb.example.net']],
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
    t.equal(endpoint.endpoint.rdata.length, targets.length, recordType)
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

const NOW_SECONDS = 1_790_000_000
const DAY_SECONDS = 24 * 3600

/** Strings with a bad property of the record beside good ones, and what is left. */
const IGNORED: readonly {
  readonly given: readonly (string | Uint8Array)[]
  readonly want: RegExp
  readonly left?: object
}[] = [
  { given: ['created=soon'], want: /created "soon" is ignored: must be a Unix time/ },
  { given: ['created=-1'], want: /created "-1" is ignored/ },
  { given: ['created=4294967296'], want: /created "4294967296" is ignored: must be a Unix time/ },
  {
    given: [`created=${NOW_SECONDS + DAY_SECONDS + 1}`],
    want: /created "1790086401" is ignored: is more than a day after .* check the clocks/,
  },
  { given: ['record=n/r'], want: /record "n\/r" is ignored: must be 8 to 64 hexadecimal/ },
  { given: ['record='], want: /record "" is ignored/ },
  { given: [`record=${'0'.repeat(65)}`], want: /record "0{65}" is ignored/ },
  { given: ['all-down='], want: /all-down "" is ignored: must be open, closed or/ },
  {
    given: [`all-down=${'x'.repeat(200)}`, ...Array(5).fill(`+${'x'.repeat(200)}`)],
    want: /all-down/,
  },
  {
    given: ['sticky=\u001b[31m\n'],
    want: /sticky "\\u001b\[31m\\n" is ignored: must be true, false or two prefix lengths/,
  },
  { given: ['answers=65'], want: /answers "65" is ignored: must be a number from 1 to 64/ },
  { given: ['failover='], want: /failover "" is ignored: has no line/ },
  { given: ['failover=DE'], want: /failover "DE" is ignored: line "DE" has no colon/ },
  { given: ['failover=DE:a;DE:b'], want: /two lines for DE/ },
  { given: ['failover=DE:a;XX:b'], want: /"XX" is not a geo code/ },
  {
    given: [`failover=*:${'x'.repeat(200)}`, ...Array(20).fill(`+${'x'.repeat(200)}`)],
    want: /failover "\*:x+…" is ignored: may have up to 4096 characters/,
  },
  {
    given: [`drain=${'x'.repeat(200)}`, ...Array(5).fill(`+${'x'.repeat(200)}`)],
    want: /drain "x+…" is ignored: is a reason of up to 1000 characters/,
  },
  {
    given: ['drain-until=2026-11-24T18:00:00Z'],
    want: /drain-until "2026-11-24T18:00:00Z" is ignored: has no effect without/,
  },
  {
    given: ['drain=', 'drain-until=noon'],
    want: /drain-until "noon" is ignored: must be a time/,
    left: { settings: { drain: { reason: '' } } },
  },
  { given: ['shift=to=x steps=5%'], want: /shift "to=x steps=5%" is ignored: must have the form/ },
  { given: ['shift=to=x steps=5%,1% bake=1m'], want: /ascending steps/ },
  { given: ['shift=to=x steps=5% bake=1ms'], want: /needs bake/ },
  { given: ['shift=to= steps=5% bake=1m'], want: /shifts to a set identifier that is empty/ },
  {
    given: [
      `shift=to=${'x'.repeat(200)}`,
      ...Array(5).fill(`+${'x'.repeat(200)}`),
      '+ steps=5% bake=1m',
    ],
    want: /shifts to a set identifier that is empty or too long/,
  },
  { given: ['undated=yes'], want: /undated "yes" is ignored: must be true/ },
  {
    given: ['sticky=true', 'sticky=false', 'sticky=true'],
    want: /sticky is ignored: it appears twice, as "true" and "false"/,
  },
  {
    given: [Buffer.from('drain=\u00ff', 'latin1')],
    want: /drain is ignored: a value is longer than it may be, or is not UTF-8: "drain=ÿ"/,
  },
  {
    given: ['drain=x', ...Array(40).fill(`+${'x'.repeat(254)}`)],
    want: /drain is ignored: a value is longer than it may be/,
  },
]

t.test('an invalid property of the record is ignored, reported, and harms no other', async (t) => {
  const good = ['created=5', 'record=00000000', 'all-down=open']
  const fields = { createdSeconds: 5, recordId: '00000000', settings: { allDown: 'open' } }
  const plain = scanPeerEndpoint(txt(...GOOD)) as PeerEndpoint
  for (const { given, want, left = {} } of IGNORED) {
    const name = String(want)
    const scan = (...strings: (string | Uint8Array)[]) => {
      const problems: string[] = []
      const onProblem = (text: string) => problems.push(text)
      const options = { nowSeconds: NOW_SECONDS, onProblem }
      return { endpoint: scanPeerEndpoint(txt(...strings), options), problems }
    }
    const alone = scan(...GOOD, ...given)
    t.strictSame(alone.endpoint, { ...plain, ...left }, name)
    t.equal(alone.problems.length, 1, name)
    t.match(alone.problems[0], want)
    t.match(alone.problems[0], /^site eu-1: /)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are meant
    t.notMatch(alone.problems[0], /[\u0000-\u001f\u007f]/, name)
    const key = String(given[0]).split('=')[0]
    const beside = scan(...GOOD, ...given, ...good.filter((text) => !text.startsWith(`${key}=`)))
    t.match(beside.endpoint, {
      ...(key === 'created' ? {} : { createdSeconds: 5 }),
      ...(key === 'record' ? {} : { recordId: '00000000' }),
      ...(key === 'all-down' ? {} : { settings: { allDown: 'open' } }),
    })
    t.strictSame(beside.problems, alone.problems)
  }
  t.strictSame(scanPeerEndpoint(txt(...GOOD, ...good)), { ...plain, ...fields })
})

t.test('other spellings of the properties of a record', async (t) => {
  const table: readonly (readonly [string, object | undefined])[] = [
    ['created=0', undefined],
    ['sticky=true', { sticky: { ipv4Bits: 24, ipv6Bits: 56 } }],
    [
      'failover=de: GEO-EU , x;; # none;*: y',
      {
        failover: [
          { code: 'DE', entries: ['GEO-EU', 'x'] },
          { code: '*', entries: ['y'] },
        ],
      },
    ],
    ['answers=off', { answers: 'off' }],
    ['failover=DE:a;b\n', { failover: [{ code: 'DE', entries: ['a;b'] }] }],
    ['drain=', { drain: { reason: '' } }],
    ['shift=bake=1m to=x=y steps=5%', { shift: { to: 'x=y', steps: [5], bakeMs: 60_000 } }],
  ]
  for (const [text, settings] of table) {
    const onProblem = (problem: string) => t.fail(problem)
    const endpoint = scanPeerEndpoint(txt(...GOOD, text), { onProblem }) as PeerEndpoint
    t.strictSame(endpoint.settings, settings, text)
    t.equal(endpoint.createdSeconds, undefined)
  }
  const ahead = scanPeerEndpoint(txt(...GOOD, `created=${NOW_SECONDS + DAY_SECONDS}`), {
    nowSeconds: NOW_SECONDS,
  })
  t.match(ahead, { createdSeconds: NOW_SECONDS + DAY_SECONDS }, 'clocks differ')
})

t.test('no octets make it throw', async (t) => {
  const settings = {
    allDown: 'x',
    sticky: 'off',
    answers: 'off',
    failover: [{ code: 'DE', entries: ['x'] }],
    drain: { reason: 'é', untilMs: 0 },
    shift: { to: 'x', steps: [5], bakeMs: 1000 },
  } as const
  const fields = { createdSeconds: 1, recordId: '01234567', settings }
  const rdata = composePeerEndpoint(
    shared({ geoCodes: ['DE'], weight: 7, setIdentifier: 'x', ...fields }),
  )!
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
