import t from 'tap'
import { Protocol } from '../../src/dns/message/query.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import { printExplanation } from '../../src/explain/print.ts'
import { probeManifest } from '../support/manifest.ts'
import { loadText } from './worlds.ts'

const COREFILE = `k.example.com:5300 {
  root {DIR}
  kuadrant {
    manifests records
  }
}
`

interface EndpointText {
  readonly name: string
  readonly type?: string
  readonly id?: string
  readonly ttl?: number
  readonly weight?: string | undefined
  readonly target: string
}

/** A record, with its annotations and the addresses that are down. */
function manifest(
  name: string,
  endpoints: readonly EndpointText[],
  allDown = 'open',
  down: readonly string[] = [],
  settings: Readonly<Record<string, string>> = {},
): string {
  const annotations = { 'sextant.io/all-down': allDown, ...settings }
  const record = {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, namespace: 'n', annotations },
    spec: {
      rootHost: 'k.example.com',
      endpoints: endpoints.map(
        ({ name: owner, type = 'A', id = '', ttl = 60, weight, target }) => ({
          dnsName: `${owner}.k.example.com`,
          recordType: type,
          recordTTL: ttl,
          setIdentifier: id,
          targets: [target],
          providerSpecific: weight === undefined ? [] : [{ name: 'weight', value: weight }],
        }),
      ),
    },
  }
  const probes = down.map((address) => probeManifest(name, address, false, 'n'))
  return [JSON.stringify(record), '\n', ...probes].join('')
}

const alias = (name: string, target: string): EndpointText => {
  return { name, type: 'CNAME', target: `${target}.k.example.com` }
}
const LONG = Array.from({ length: 20 }, (_, i) => alias(`long${i}`, `long${i + 1}`))
const TWO = [
  { name: 'one', id: 'a', target: '192.0.2.1' },
  { name: 'one', id: 'b', target: '192.0.2.2' },
]
const of = (name: string) => TWO.map((endpoint) => ({ ...endpoint, name }))

const several = (name: string, weights: readonly (string | undefined)[]) =>
  weights.map((weight, i) => ({ name, id: 'abcd'[i]!, weight, target: `192.0.2.${i + 1}` }))
const STICKY = { 'sextant.io/answers': '2', 'sextant.io/sticky': 'true' }

const RECORDS: Readonly<Record<string, string>> = {
  chains: manifest('chains', [
    alias('loop', 'back'),
    alias('back', 'loop'),
    { name: 'out', type: 'CNAME', target: 'www.example.org' },
    ...LONG,
  ]),
  ttl: manifest('ttl', [
    { name: 'ttl', id: 'slow', ttl: 300, weight: '1', target: '192.0.2.1' },
    { name: 'ttl', id: 'quick', ttl: 30, weight: '1', target: '192.0.2.2' },
  ]),
  shut: manifest('shut', of('shut'), 'closed', ['192.0.2.1', '192.0.2.2']),
  sorry: manifest('sorry', of('sorry'), 'b', ['192.0.2.1', '192.0.2.2']),
  half: manifest('half', of('half'), 'open', ['192.0.2.1']),
  all: manifest('all', of('all')),
  drawn: manifest('drawn', several('drawn', ['5', '3', '2', '0']), 'open', [], {
    'sextant.io/answers': '2',
  }),
  kept: manifest('kept', several('kept', ['5', '3', '2']), 'open', [], STICKY),
  plain: manifest('plain', several('plain', Array(3).fill(undefined)), 'open', [], {
    'sextant.io/answers': '3',
  }),
}

t.test('each line of an explanation is true', async (t) => {
  const files = Object.entries(RECORDS).map(([name, text]) => [`${name}.yaml`, text])
  const directory = t.testdir({ records: Object.fromEntries(files) })
  const { instance } = await loadText(t, COREFILE.replace('{DIR}', directory))
  const explainer = await Explainer.open(instance)
  t.teardown(() => explainer.close())
  const ask = (name: string, type: number): string => {
    const explanation = explainer.explain({
      ...{ name: scanName(`${name}k.example.com.`)!, type, seed: 1, protocol: Protocol.Udp },
      source: scanAddress('192.0.2.99')!,
      subnet: undefined,
    })
    return printExplanation(explanation).join('\n')
  }
  const ALL_ARE_SERVED = /no endpoint has a geo code or a weight: all are served/
  const table: readonly [string, number, RegExp, RegExp?][] = [
    ['loop.', 255, /^end: loop\.k\.example\.com\. has CNAME records$/m],
    ['loop.', 5, /^end: loop\.k\.example\.com\. has CNAME records$/m],
    ['loop.', 1, /^end: the chain is a loop: it leads back to loop\.k\.example\.com\.$/m],
    ['out.', 1, /^end: the chain leads to www\.example\.org\., which no zone of this server has;/m],
    ['long0.', 1, /^end: the chain leads to long\d+\.k\..*; the server follows at most 16 CNAMEs/m],
    ['', 6, /TTL: 60 s: TTL of the RRset in its zone$/m],
    ['', 2, /^ {2}\* endpoint 1: ns1\.k\.example\.com\.; default of the server$/m, /nobody/],
    ['ttl.', 1, /TTL: 30 s: the lowest TTL of all .*, that of quick of n\/ttl$/m],
    ['shut.', 1, /note: .* all-down is closed: NODATA$/m, /the name has only/],
    [
      'drawn.',
      1,
      /^ {2}draw 1 of 2: \d of 0\.\.9: ([abc])\n {2}draw 2 of 2: \d of 0\.\.[4-7]: (?!\1)[abc]\n {2}served: 192\.0\.2\.[123], 192\.0\.2\.[123]$/m,
    ],
    [
      'kept.',
      1,
      /^ {2}draw 1 of 2: none: sticky, by a hash of 192\.0\.2\.0\/24: ([abc])\n {2}draw 2 of 2: /m,
    ],
    ['plain.', 1, ALL_ARE_SERVED, /draw/],
    ['shut.', 28, /note: the name has only A$/m],
    ['sorry.', 1, /note: .*the fallback endpoint b is served/, ALL_ARE_SERVED],
    ['half.', 1, /dropped: all its targets are down/, ALL_ARE_SERVED],
    ['all.', 1, ALL_ARE_SERVED],
  ]
  for (const [name, type, says, saysNot] of table) {
    const text = ask(name, type)
    t.match(text, says)
    if (saysNot !== undefined) t.notMatch(text, saysNot)
  }
})
