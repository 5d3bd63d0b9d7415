import fc from 'fast-check'
import t from 'tap'
import { type Contender, contend } from '../../../src/operator/sources/contend.ts'
import type { Endpoint } from '../../../src/records/dns-record.ts'
import { type HostShare, scanShare } from '../../../src/records/host-share.ts'
import { lowerNameKey, scanHost } from '../../../src/records/validate/names.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'
import { UNNAMED_SET } from '../../../src/sources/objects/object-kind.ts'

const HOST = 'shop.k.example.com'
const OLD = '2026-01-01T00:00:00Z'
const NEW = '2026-02-01T00:00:00Z'

/** `A 192.0.2.1`, `eu=A 192.0.2.1`, or with a property: `A 192.0.2.1 weight=5`. */
function endpoints(texts: readonly string[]): readonly Endpoint[] {
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'x', namespace: 'x' },
    spec: {
      rootHost: HOST,
      endpoints: texts.map((text) => {
        const [, id, recordType = '', target = '', name, value = ''] =
          /^(?:(\w*)=)?(\w+) (\S+)(?: ([-\w]+)=(\S+))?$/.exec(text) ?? []
        const providerSpecific = name === undefined ? [] : [{ name, value }]
        const setIdentifier = id ?? UNNAMED_SET
        return { dnsName: HOST, recordType, targets: [target], setIdentifier, providerSpecific }
      }),
    },
  })
  if (resource.kind !== 'record') throw new Error(JSON.stringify(resource))
  return resource.record.endpoints
}

/** `namespace/name created [written]: endpoint, endpoint`. */
function contender(text: string): Contender {
  const [head = '', tail = ''] = text.split(': ')
  const [path = '', created = '', written = ''] = head.split(' ')
  const [namespace = '', name = ''] = path.split('/')
  const of = { apiVersion: 'v1', kind: 'Service', namespace, name, uid: path }
  const host = lowerNameKey(scanHost(HOST)!)
  return { key: path, of, created, written, host, endpoints: endpoints(tail.split(', ')) }
}

const SHARE = scanShare(['k.example.com', 'b']) as HostShare

const CASES: readonly {
  name: string
  contenders: readonly string[]
  shares?: readonly HostShare[]
  /** `key reason` of those that are not served. */
  refused: readonly string[]
}[] = [
  { name: 'one object', contenders: [`a/x ${OLD}: A 192.0.2.1`], refused: [] },
  {
    name: 'equal sets are united',
    contenders: [`a/x ${OLD}: A 192.0.2.1`, `a/y ${NEW}: A 192.0.2.1`],
    refused: [],
  },
  {
    name: 'two types are united',
    contenders: [`a/x ${OLD}: A 192.0.2.1`, `a/y ${NEW}: AAAA 2001:db8::1`],
    refused: [],
  },
  {
    name: 'different sets: the oldest is served',
    contenders: [`a/x ${NEW}: A 192.0.2.1`, `a/y ${OLD}: A 192.0.2.2`],
    refused: ['a/x HostConflict'],
  },
  {
    name: 'sets without identifiers',
    contenders: [`a/x ${NEW}: =A 192.0.2.1`, `a/y ${OLD}: =A 192.0.2.2`],
    refused: ['a/x HostConflict'],
  },
  {
    name: 'one age: the name decides',
    contenders: [`a/y ${OLD}: A 192.0.2.2`, `a/x ${OLD}: A 192.0.2.1`],
    refused: ['a/y HostConflict'],
  },
  {
    name: 'an object without an age is the youngest',
    contenders: ['a/x : A 192.0.2.1', `a/y ${NEW}: A 192.0.2.2`],
    refused: ['a/x HostConflict'],
  },
  {
    name: 'a CNAME beside an A',
    contenders: [`a/x ${OLD}: CNAME lb.example.net`, `a/y ${NEW}: A 192.0.2.2`],
    refused: ['a/y HostConflict'],
  },
  {
    name: 'nothing of an object is served in part',
    contenders: [`a/x ${OLD}: A 192.0.2.1`, `a/y ${NEW}: A 192.0.2.2, AAAA 2001:db8::2`],
    refused: ['a/y HostConflict'],
  },
  {
    name: 'what is not served is in no conflict',
    contenders: [
      `a/x ${OLD}: A 192.0.2.1`,
      `a/y 2026-01-15T00:00:00Z: A 192.0.2.2, AAAA 2001:db8::2`,
      `a/z ${NEW}: AAAA 2001:db8::3`,
    ],
    refused: ['a/y HostConflict'],
  },
  {
    name: 'set identifiers unite',
    contenders: [`a/x ${OLD}: eu=A 192.0.2.1`, `a/y ${NEW}: us=A 192.0.2.2`],
    refused: [],
  },
  {
    name: 'one set identifier with different content',
    contenders: [`a/x ${OLD}: eu=A 192.0.2.1`, `a/y ${NEW}: eu=A 192.0.2.2`],
    refused: ['a/y HostConflict'],
  },
  {
    name: 'weights unite',
    contenders: [`a/x ${OLD}: =A 192.0.2.1 weight=5`, `a/y ${NEW}: =A 192.0.2.2 weight=5`],
    refused: [],
  },
  {
    name: 'codes unite',
    contenders: [`a/x ${OLD}: =A 192.0.2.1 geo-code=DE`, `a/y ${NEW}: =A 192.0.2.2`],
    refused: [],
  },
  {
    name: 'another namespace has no right to the host',
    contenders: [`a/x ${OLD}: eu=A 192.0.2.1`, `b/y ${NEW}: us=A 192.0.2.2`],
    refused: ['b/y HostNotOwned'],
  },
  {
    name: 'an old object gets no host that another namespace has',
    contenders: [`a/x ${NEW} ${NEW}: A 192.0.2.1`, `b/y ${OLD}: A 192.0.2.2`],
    refused: ['b/y HostNotOwned'],
  },
  {
    name: 'a shared host is united',
    contenders: [`a/x ${OLD}: eu=A 192.0.2.1`, `b/y ${NEW}: us=A 192.0.2.2`],
    shares: [SHARE],
    refused: [],
  },
  {
    name: 'in a shared host, the oldest is served',
    contenders: [`a/x ${NEW} ${NEW}: A 192.0.2.1`, `b/y ${OLD}: A 192.0.2.2`],
    shares: [SHARE],
    refused: ['a/x HostConflict'],
  },
]

for (const { name, contenders, shares = [], refused } of CASES) {
  t.test(name, async (t) => {
    const found = contend(contenders.map(contender), shares)
    t.strictSame(
      [...found].map(([key, { reason }]) => `${key} ${reason}`),
      refused,
    )
  })
}

t.test('the text names both objects, both values and the fix', async (t) => {
  const found = contend([`a/x ${OLD}: A 192.0.2.1`, `a/y ${NEW}: A 192.0.2.2`].map(contender), [])
  t.equal(
    found.get('a/y')?.text,
    'A 192.0.2.2 of Service a/y conflicts with A 192.0.2.1 of Service a/x, which is older and is served; change one of the two',
  )
})

t.test(
  'the order in which objects are known does not matter, and one is always served',
  async (t) => {
    const text = fc.record({
      path: fc.constantFrom('a/x', 'a/y', 'a/z', 'b/x', 'b/y'),
      created: fc.constantFrom('', OLD, NEW),
      written: fc.constantFrom('', OLD, NEW),
      set: fc.constantFrom('A 192.0.2.1', 'A 192.0.2.2', 'eu=A 192.0.2.3', 'CNAME lb.example.net'),
    })
    const texts = fc.uniqueArray(text, { selector: ({ path }) => path, minLength: 1 })
    fc.assert(
      fc.property(texts, fc.boolean(), (some, isShared) => {
        const all = some.map(({ path, created, written, set }) =>
          contender(`${path} ${created} ${written}: ${set}`),
        )
        const shares = isShared ? [SHARE] : []
        const found = contend(all, shares)
        const reversed = contend([...all].reverse(), shares)
        t.same(new Set(reversed.keys()), new Set(found.keys()))
        t.ok(found.size < all.length)
      }),
    )
  },
)

t.test('an author has many objects for one host', async (t) => {
  const plain = contender(`a/x ${OLD}: 0=A 192.0.2.1`)
  const many = Array.from({ length: 2000 }, (_, i): Contender => {
    const one = plain.endpoints.map((endpoint) => ({ ...endpoint, setIdentifier: `${i}` }))
    return { ...plain, key: `a/${i}`, of: { ...plain.of, name: `${i}` }, endpoints: one }
  })
  const last = contender(`a/last ${NEW}: 1999=A 192.0.2.2`)
  const start = process.cpuUsage()
  t.strictSame([...contend([last, ...many], []).keys()], ['a/last'])
  const { user } = process.cpuUsage(start)
  t.ok(user < 500_000, `${user} microseconds`)
})
