import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { checkManifests } from '../../../src/publish/offline/check-manifests.ts'
import { SetUp } from '../../support/setup.ts'

/** Each endpoint: its name below k.example.com, type, and targets; `@` = k.example.com. */
function manifest(endpoints: readonly string[], spec = ''): string {
  const lines = endpoints.map((text) => {
    const [name = '', type, ...targets] = text.split(' ')
    const dnsName = name === '@' ? 'k.example.com' : `${name}.k.example.com`
    const target = targets.join(' ').replaceAll('%', 'k.example.com')
    return `  - { dnsName: "${dnsName}", recordType: ${type}, targets: ["${target}"] }`
  })
  const head = 'apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata: { name: a }\n'
  return `${head}spec:\n  rootHost: k.example.com\n${spec}  endpoints:\n${lines.join('\n')}\n`
}

const FIRST_LINE = 7
const NOTHING: readonly string[] = []

interface Row {
  readonly name: string
  readonly endpoints: readonly string[]
  /** `N: TEXT`: a warning at endpoint N. */
  readonly want: readonly string[]
  readonly properties?: string
  readonly above?: readonly string[]
}

const TABLE: readonly Row[] = [
  {
    name: 'hosts that are CNAMEs',
    endpoints: [
      'w CNAME h.%',
      'h A 192.0.2.1',
      '@ MX 10 w.%',
      '_s SRV 1 2 443 W.%',
      'sub NS w.%',
      '*.c CNAME h.%',
      'm MX 10 x.c.%',
      'n MX 10 h.%',
      'o CNAME w.%',
    ],
    want: [
      '3: MX of k.example.com. leads to w.k.example.com., which is a CNAME: ',
      '4: SRV of _s.k.example.com. leads to W.k.example.com., which',
      '5: NS of sub.k.example.com. leads to w.k.example.com., which',
      '7: MX of m.k.example.com. leads to x.c.k.example.com., which',
    ],
  },
  {
    name: 'CNAMEs to names that do not exist',
    endpoints: [
      'a CNAME none.%',
      'b CNAME x.w.%',
      '*.w A 192.0.2.1',
      'c CNAME none.example.net',
      'd CNAME ns1.%',
      'e CNAME y.h.w.%',
      'h.w A 192.0.2.1',
      'f CNAME x.l.%',
    ],
    properties: 'nameserver ns1.k.example.com 192.0.2.53',
    want: [
      '1: CNAME of a.k.example.com. leads to none.k.example.com., which the zone does not have; add',
      '6: CNAME of e.k.example.com. leads to y.h.w.k.example.com., which',
      '8: CNAME of f.',
    ],
  },
  { name: 'with fallthrough', endpoints: ['a CNAME none.%'], properties: 'fallthrough', want: [] },
  { name: 'below template', endpoints: ['a CNAME none.%'], above: ['template'], want: [] },
  {
    name: 'with a peer',
    endpoints: ['a CNAME none.%'],
    properties: 'site berlin\n peer 192.0.2.9',
    want: [],
  },
  {
    name: 'data below a delegation',
    endpoints: [
      'sub NS ns.sub.%',
      'ns.sub A 192.0.2.1',
      'ns.sub AAAA 2001:db8::1',
      'ns.sub TXT x',
      'www.sub A 192.0.2.1',
      'www.sub AAAA 2001:db8::1',
      'sub A 192.0.2.1',
      'a CNAME none.sub.%',
      '@ NS ns.sub.%',
      '*.w NS ns.example.net',
      'x.w A 192.0.2.1',
      'b.sub NS ns.example.net',
    ],
    want: [
      '12: NS of b.sub.k.example.com. is never served: sub.k.example.com. is delegated to other',
      '4: TXT of ns.sub.k.example.com. is never served: sub.k.example.com. is delegated to other',
      '5: A of www.sub.k.example.com. is never served: sub.k.example.com. is delegated to other',
      '7: A of sub.k.example.com. is never served',
    ],
  },
  {
    name: 'name servers of a delegation',
    endpoints: [
      'sub NS ns.sub.%',
      'sub2 NS ns.sub.%',
      'sub3 NS h.%',
      'sub4 NS ns1.%',
      'sub5 NS x.y.%',
      'h TXT x',
    ],
    properties: 'nameserver ns1.k.example.com 192.0.2.53',
    want: [
      '1: zone sub.k.example.com.: name server ns.sub.k.example.com. has no address; add A',
      '3: zone sub3.k.example.com.: name server h.k.example.com. has no address; add A',
      '5: zone sub5.k.example.com.: name server x.y.k.example.com. has no address; add A',
    ],
  },
]

t.test('endpoints that cannot work because of others', async (t) => {
  for (const { name, endpoints, want, properties = '', above = NOTHING } of TABLE) {
    const directory = t.testdir({ 'a.yaml': manifest(endpoints) })
    const text = `kuadrant {\n manifests ${directory}\n ${properties}\n}`
    const { warnings } = await new SetUp(kuadrant, text, ['k.example.com.'], { above }).check()
    const prefix = `${join(directory, 'a.yaml')}:`
    const found = warnings.filter((line) => line.startsWith(prefix))
    t.equal(found.length, want.length, `${name}\n${found.join('\n')}`)
    for (const [i, line] of want.entries()) {
      const [, endpoint, rest] = /^(\d+): (.*)/.exec(line)!
      const place = `${prefix}${FIRST_LINE + Number(endpoint) - 1}: DNSRecord default/a: ${rest}`
      t.ok(
        found.some((one) => one.startsWith(place)),
        `${name}: ${want[i]}\n${found.join('\n')}`,
      )
    }
  }
})

t.test('without a Corefile, only hosts that are CNAMEs', async (t) => {
  const directory = t.testdir({
    'a.yaml': manifest(['w CNAME none.%', '@ MX 10 w.%', '@ NS ns.%', 'x A 192.0.2.1']),
  })
  const texts: string[] = []
  await checkManifests(
    directory,
    (one) => texts.push(one.print()),
    () => {},
  )
  t.match(texts, [/a\.yaml:8: DNSRecord default\/a: MX of k\.example\.com\. leads to/])
  t.equal(texts.length, 1, texts.join('\n'))
})
