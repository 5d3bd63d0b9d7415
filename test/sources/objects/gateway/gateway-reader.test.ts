import t from 'tap'
import type { ApiObject } from '../../../../src/kube/api.ts'
import { keyOf } from '../../../../src/kube/object-key.ts'
import type { EndpointDocument } from '../../../../src/records/record-document.ts'
import { GatewayReader } from '../../../../src/sources/objects/gateway/gateway-reader.ts'
import type { ObjectRecords } from '../../../../src/sources/objects/object-kind.ts'
import { gateway, listener, listenerSet, listenerStatus, route } from './objects.ts'

const PLURALS = new Map([
  ['Gateway', 'gateways'],
  ['ListenerSet', 'listenersets'],
  ['HTTPRoute', 'httproutes'],
  ['GRPCRoute', 'grpcroutes'],
  ['TLSRoute', 'tlsroutes'],
])

class Stage {
  readonly reader = new GatewayReader()

  put(...objects: readonly ApiObject[]): this {
    for (const one of objects) this.reader.put(PLURALS.get(String(one.kind))!, one)
    return this
  }

  remove(object: ApiObject): this {
    this.reader.remove(PLURALS.get(String(object.kind))!, keyOf(object))
    return this
  }

  /** Settles, and prints what changed. */
  get settled(): string[] {
    return this.reader.settle().map(print)
  }
}

function print({ of, records, problems }: ObjectRecords): string {
  const what = records?.map(({ spec: { endpoints } }) => endpoints.map(printEndpoint).join(' + '))
  const faults = problems.map(
    (one) =>
      `${one.of.kind} ${one.of.namespace}/${one.of.name} ${one.path.join('.')}: ${one.message}`,
  )
  return [`${of.namespace}/${of.name}: ${what?.sort().join(', ') ?? 'kept'}`, ...faults].join(' | ')
}

function printEndpoint({
  dnsName,
  recordType,
  recordTTL,
  setIdentifier,
  targets,
  providerSpecific = [],
}: EndpointDocument): string {
  const properties = providerSpecific.map(({ name, value }) => ` ${name}=${value}`).join('')
  const ttl = recordTTL === undefined ? '' : ` ${recordTTL}`
  const identifier = setIdentifier === 'unnamed' ? '' : ` [${setIdentifier}]`
  return `${dnsName}${ttl} ${recordType} ${targets.join(' ')}${identifier}${properties}`
}

const SHOP = 'shop.example.com'
const wide = (hostname: string, more: ApiObject = {}): ApiObject =>
  listener('all', { hostname, ...more })
const EXTERNAL = 'external-dns.kubernetes.io'

/** The records of one Gateway, `infra/shop`. */
const CASES: readonly { name: string; objects: readonly ApiObject[]; want: string }[] = [
  {
    name: 'a route',
    objects: [gateway('infra/shop'), route('a/r', [SHOP])],
    want: 'infra/shop: shop.example.com A 192.0.2.1',
  },
  {
    name: 'both families',
    objects: [
      gateway('infra/shop', { addresses: ['192.0.2.1', '2001:db8::1', '192.0.2.2'] }),
      route('a/r', [SHOP]),
    ],
    want: 'infra/shop: shop.example.com A 192.0.2.1 192.0.2.2 + shop.example.com AAAA 2001:db8::1',
  },
  {
    name: 'a host name',
    objects: [gateway('infra/shop', { addresses: ['lb.example.net'] }), route('a/r', [SHOP])],
    want: 'infra/shop: shop.example.com CNAME lb.example.net',
  },
  {
    name: 'a host name beside an address',
    objects: [
      gateway('infra/shop', { addresses: ['lb.example.net', '192.0.2.1'] }),
      route('a/r', [SHOP]),
    ],
    want: 'infra/shop: shop.example.com A 192.0.2.1 | Gateway infra/shop status.addresses: "lb.example.net" is not served at shop.example.com, because a CNAME must be alone',
  },
  {
    name: 'a listener host without routes',
    objects: [gateway('infra/shop', { listeners: [wide(SHOP)] })],
    want: 'infra/shop: ',
  },
  {
    name: 'neither a listener nor a route has a host',
    objects: [gateway('infra/shop'), route('a/r', [])],
    want: 'infra/shop: ',
  },
  {
    name: 'a route without host names',
    objects: [gateway('infra/shop', { listeners: [wide('*.example.com')] }), route('a/r', [])],
    want: 'infra/shop: *.example.com A 192.0.2.1',
  },
  {
    name: 'intersections',
    objects: [
      gateway('infra/shop', { listeners: [wide('*.example.com')] }),
      route('a/r', [SHOP, 'example.com', 'a.b.example.com', '*.c.example.com', 'example.net']),
    ],
    want: 'infra/shop: *.c.example.com A 192.0.2.1, a.b.example.com A 192.0.2.1, shop.example.com A 192.0.2.1',
  },
  {
    name: 'sectionName and port select listeners',
    objects: [
      gateway('infra/shop', {
        listeners: [
          listener('one', { hostname: 'one.example.com' }),
          listener('two', { hostname: 'two.example.com', port: 81 }),
          listener('three', { hostname: 'three.example.com', port: 82 }),
        ],
      }),
      route('a/r', [], { parents: [{ namespace: 'infra', name: 'shop', sectionName: 'one' }] }),
      route('a/s', [], { parents: [{ namespace: 'infra', name: 'shop', port: 81 }] }),
      route('a/t', [], {
        parents: [{ namespace: 'infra', name: 'shop', port: 82, sectionName: 'one' }],
      }),
    ],
    want: 'infra/shop: one.example.com A 192.0.2.1, two.example.com A 192.0.2.1',
  },
  {
    name: 'protocols and kinds of routes',
    objects: [
      gateway('infra/shop', {
        listeners: [
          listener('http', { hostname: 'http.example.com', protocol: 'HTTPS' }),
          listener('tls', { hostname: 'tls.example.com', protocol: 'TLS' }),
          listener('tcp', { hostname: 'tcp.example.com', protocol: 'TCP' }),
          listener('grpc', {
            hostname: 'grpc.example.com',
            allowedRoutes: { namespaces: { from: 'All' }, kinds: [{ kind: 'GRPCRoute' }] },
          }),
        ],
      }),
      route('a/h', []),
      route('a/t', [], { kind: 'TLSRoute' }),
      route('a/g', ['grpc.example.com'], { kind: 'GRPCRoute' }),
    ],
    want: 'infra/shop: grpc.example.com A 192.0.2.1, http.example.com A 192.0.2.1, tls.example.com A 192.0.2.1',
  },
  {
    name: 'a listener for its own namespace',
    objects: [
      gateway('infra/shop', {
        listeners: [
          listener('own', { hostname: 'own.example.com', allowedRoutes: {} }),
          listener('all', { hostname: 'all.example.com' }),
        ],
      }),
      route('a/r', []),
    ],
    want: 'infra/shop: all.example.com A 192.0.2.1',
  },
  {
    name: 'a refused listener',
    objects: [
      gateway('infra/shop', {
        listeners: [
          listener('a', { hostname: 'a.example.com' }),
          listener('b', { hostname: 'b.example.com' }),
        ],
        statuses: [listenerStatus('a', 'False'), listenerStatus('b', 'True')],
      }),
      route('a/r', []),
    ],
    want: 'infra/shop: b.example.com A 192.0.2.1',
  },
  {
    name: 'a refused route',
    objects: [gateway('infra/shop'), route('a/r', [SHOP], { accepted: 'False' })],
    want: 'infra/shop:  | HTTPRoute a/r status.parents.0: Gateway infra/shop does not accept the route: NotAllowed',
  },
  {
    name: 'a route whose acceptance is unknown',
    objects: [gateway('infra/shop'), route('a/r', [SHOP], { accepted: 'Unknown' })],
    want: 'infra/shop: ',
  },
  {
    name: 'a parent of another kind',
    objects: [
      gateway('infra/shop'),
      route('a/r', [SHOP], {
        parents: [{ group: '', kind: 'Service', namespace: 'infra', name: 'shop' }],
      }),
    ],
    want: 'infra/shop: ',
  },
  {
    name: 'a Gateway that is not accepted',
    objects: [gateway('infra/shop', { accepted: 'False' }), route('a/r', [SHOP])],
    want: 'infra/shop: kept | Gateway infra/shop status.conditions: the Gateway is not accepted: Toy: says the test',
  },
  {
    name: 'a Gateway without an address',
    objects: [gateway('infra/shop', { addresses: [] }), route('a/r', [SHOP])],
    want: 'infra/shop: kept | Gateway infra/shop status.addresses: the Gateway has no address yet',
  },
  {
    name: 'a Gateway without routes and address',
    objects: [gateway('infra/shop', { addresses: [] })],
    want: 'infra/shop: ',
  },
  {
    name: 'an address instead of a host name',
    objects: [gateway('infra/shop'), route('a/r', ['192.0.2.9', SHOP])],
    want: 'infra/shop: shop.example.com A 192.0.2.1 | HTTPRoute a/r spec.hostnames.0: "192.0.2.9" is not a DNS name; it is not served',
  },
  {
    name: 'annotations of external-dns',
    objects: [
      gateway('infra/shop', {
        annotations: { [`${EXTERNAL}/target`]: '198.51.100.1,198.51.100.2' },
      }),
      route('a/r', [SHOP], {
        annotations: {
          [`${EXTERNAL}/ttl`]: '5m',
          [`${EXTERNAL}/hostname`]: 'more.example.com, not_a_name',
        },
      }),
    ],
    want: `infra/shop: more.example.com 300 A 198.51.100.1 198.51.100.2, shop.example.com 300 A 198.51.100.1 198.51.100.2 | HTTPRoute a/r metadata.annotations.${EXTERNAL}/hostname: "not_a_name" is not a DNS name; it is not served`,
  },
  {
    name: 'where host names come from',
    objects: [
      gateway('infra/shop', { listeners: [wide('*.example.com')] }),
      route('a/r', [SHOP], {
        annotations: {
          [`${EXTERNAL}/gateway-hostname-source`]: 'annotation-only',
          [`${EXTERNAL}/hostname`]: 'a.example.com',
        },
      }),
      route('a/s', ['s.example.com'], {
        annotations: {
          [`${EXTERNAL}/gateway-hostname-source`]: 'defined-hosts-only',
          [`${EXTERNAL}/hostname`]: 'b.example.com',
        },
      }),
    ],
    want: 'infra/shop: a.example.com A 192.0.2.1, s.example.com A 192.0.2.1',
  },
  {
    name: 'another controller',
    objects: [
      gateway('infra/shop'),
      route('a/r', [SHOP], { annotations: { [`${EXTERNAL}/controller`]: 'other' } }),
      route('a/s', ['s.example.com'], {
        annotations: { [`${EXTERNAL}/controller`]: 'dns-controller' },
      }),
    ],
    want: 'infra/shop: s.example.com A 192.0.2.1',
  },
  {
    name: 'settings: those of the route come first',
    objects: [
      gateway('infra/shop', {
        annotations: { 'sextant.io/weight': '10', 'sextant.io/geo-code': 'GEO-EU' },
      }),
      route('a/r', [SHOP], { annotations: { 'sextant.io/weight': '20' } }),
      route('a/s', ['s.example.com']),
    ],
    want: 'infra/shop: s.example.com A 192.0.2.1 [infra/shop] weight=10 geo-code=GEO-EU, shop.example.com A 192.0.2.1 [infra/shop] weight=20 geo-code=GEO-EU',
  },
  {
    name: 'settings: those of the oldest route come first',
    objects: [
      gateway('infra/shop'),
      route('a/young', [SHOP], {
        day: 3,
        annotations: { 'sextant.io/weight': '3', [`${EXTERNAL}/set-identifier`]: 'x' },
      }),
      route('a/old', [SHOP], { day: 2, annotations: { 'sextant.io/weight': '2' } }),
    ],
    want: 'infra/shop: shop.example.com A 192.0.2.1 [x] weight=2',
  },
  {
    name: 'a younger route of another namespace adds no settings',
    objects: [
      gateway('infra/shop'),
      route('a/r', [SHOP], { day: 2 }),
      route('b/drain', [SHOP], { day: 3, annotations: { 'sextant.io/drain': 'true' } }),
      route('b/ttl', [SHOP], { day: 3, annotations: { [`${EXTERNAL}/ttl`]: '1' } }),
      route('b/weight', [SHOP], { day: 3, annotations: { 'sextant.io/weight': 'much' } }),
    ],
    want: [
      'infra/shop: shop.example.com A 192.0.2.1',
      'HTTPRoute b/drain metadata.annotations: annotations sextant.io/ do not count for shop.example.com, because namespace a had it first',
      'HTTPRoute b/weight metadata.annotations: annotations sextant.io/ do not count for shop.example.com, because namespace a had it first',
    ].join(' | '),
  },
  {
    name: 'a younger route of another namespace adds no targets',
    objects: [
      gateway('infra/shop'),
      route('a/r', [SHOP], { day: 2 }),
      listenerSet('b/more', 'infra/shop', [listener('more', { port: 81 })], {
        annotations: { [`${EXTERNAL}/target`]: '203.0.113.66' },
      }),
      route('b/r', [SHOP, 'b.example.com'], {
        day: 3,
        parents: [{ kind: 'ListenerSet', name: 'more' }],
      }),
    ],
    want: 'infra/shop: b.example.com A 203.0.113.66, shop.example.com A 192.0.2.1',
  },
  {
    name: 'an annotation that does not parse',
    objects: [
      gateway('infra/shop'),
      route('a/r', [SHOP], { annotations: { 'sextant.io/weight': 'much' } }),
      route('a/s', ['s.example.com']),
    ],
    want: 'infra/shop: s.example.com A 192.0.2.1 | HTTPRoute a/r metadata.annotations.sextant.io/weight: invalid weight expected a value >= 0, got "much"; shop.example.com: it is not served',
  },
  {
    name: 'a ListenerSet',
    objects: [
      gateway('infra/shop', { listeners: [wide('never.example.com')] }),
      listenerSet('a/set', 'infra/shop', [
        listener('one', { hostname: '*.a.example.com', allowedRoutes: {} }),
      ]),
      route('a/r', ['x.a.example.com', 'never.example.com'], {
        parents: [{ kind: 'ListenerSet', name: 'set' }],
      }),
    ],
    want: 'infra/shop: x.a.example.com A 192.0.2.1',
  },
  {
    name: 'a ListenerSet that is not accepted',
    objects: [
      gateway('infra/shop'),
      listenerSet('a/set', 'infra/shop', [listener('one', { hostname: '*.a.example.com' })], {
        accepted: 'False',
      }),
      route('a/r', ['x.a.example.com'], { parents: [{ kind: 'ListenerSet', name: 'set' }] }),
    ],
    want: 'infra/shop: ',
  },
  {
    name: 'targets of a ListenerSet',
    objects: [
      gateway('infra/shop'),
      listenerSet('a/set', 'infra/shop', [listener('one', { hostname: 'a.example.com' })], {
        annotations: { [`${EXTERNAL}/target`]: '198.51.100.9' },
      }),
      route('a/r', ['a.example.com'], { parents: [{ kind: 'ListenerSet', name: 'set' }] }),
    ],
    want: 'infra/shop: a.example.com A 198.51.100.9',
  },
]

t.test('what a Gateway and its routes give', async (t) => {
  for (const { name, objects, want } of CASES) {
    t.strictSame(new Stage().put(...objects).settled, [want], name)
    const reversed = new Stage().put(...[...objects].reverse()).settled
    t.strictSame(
      reversed.filter((one) => one.startsWith('infra/shop')),
      [want],
      `${name}, in another order`,
    )
  }
})

t.test(
  'a change concerns the Gateways that depend on it, and what has become invalid is kept',
  async (t) => {
    const other = { parents: [{ namespace: 'infra', name: 'other' }] }
    const stage = new Stage().put(
      gateway('infra/shop'),
      gateway('infra/other', { addresses: ['192.0.2.2'] }),
    )
    stage.put(route('a/r', [SHOP]), route('a/o', ['o.example.com'], other))
    t.strictSame(stage.settled, [
      'infra/shop: shop.example.com A 192.0.2.1',
      'infra/other: o.example.com A 192.0.2.2',
    ])
    t.strictSame(stage.settled, [])

    const steps: readonly { name: string; change: () => unknown; want: readonly string[] }[] = [
      {
        name: 'a route gets another name',
        change: () => stage.put(route('a/r', ['new.example.com'])),
        want: ['infra/shop: new.example.com A 192.0.2.1'],
      },
      {
        name: 'a setting becomes invalid: the name keeps its record',
        change: () =>
          stage.put(
            route('a/r', ['new.example.com'], { annotations: { 'sextant.io/weight': 'x' } }),
          ),
        want: [
          'infra/shop: new.example.com A 192.0.2.1 | HTTPRoute a/r metadata.annotations.sextant.io/weight: invalid weight expected a value >= 0, got "x"; new.example.com: its last valid record is served',
        ],
      },
      {
        name: 'the Gateway loses its addresses',
        change: () => stage.put(gateway('infra/shop', { addresses: [] })),
        want: [
          'infra/shop: kept | Gateway infra/shop status.addresses: the Gateway has no address yet',
        ],
      },
      {
        name: 'the route is valid again, and the Gateway has another address',
        change: () =>
          stage.put(
            route('a/r', ['new.example.com']),
            gateway('infra/shop', { addresses: ['192.0.2.3'] }),
          ),
        want: ['infra/shop: new.example.com A 192.0.2.3'],
      },
      {
        name: 'the route moves to the other Gateway',
        change: () => stage.put(route('a/r', ['new.example.com'], other)),
        want: [
          'infra/shop: ',
          'infra/other: new.example.com A 192.0.2.2, o.example.com A 192.0.2.2',
        ],
      },
      {
        name: 'the route is deleted',
        change: () => stage.remove(route('a/r', [])),
        want: ['infra/other: o.example.com A 192.0.2.2'],
      },
      {
        name: 'the Gateway is deleted',
        change: () => stage.remove(gateway('infra/other')),
        want: ['infra/other: '],
      },
      {
        name: 'the Gateway is created again',
        change: () => stage.put(gateway('infra/other')),
        want: ['infra/other: o.example.com A 192.0.2.1'],
      },
      {
        name: 'a ListenerSet changes its Gateway',
        change: () => {
          const parents = [{ kind: 'ListenerSet', name: 'set' }]
          stage.put(
            listenerSet('a/set', 'infra/shop', [listener('one')]),
            route('a/l', ['l.example.com'], { parents }),
          )
          void stage.settled
          stage.put(listenerSet('a/set', 'infra/other', [listener('one')]))
        },
        want: ['infra/shop: ', 'infra/other: l.example.com A 192.0.2.1, o.example.com A 192.0.2.1'],
      },
    ]
    for (const { name, change, want } of steps) {
      change()
      t.strictSame(stage.settled, want, name)
    }
  },
)

t.test('the record of a host name is as old as its oldest route, or the Gateway', async (t) => {
  const stage = new Stage().put(gateway('infra/shop'), route('a/r', [SHOP], { day: 20 }))
  stage.put(route('a/s', [SHOP], { day: 15 }), route('a/t', ['t.example.com'], { day: 1 }))
  const [{ records } = { records: undefined }] = stage.reader.settle()
  const ages = records?.map(
    ({ metadata, spec }) => `${spec.rootHost} ${metadata.creationTimestamp}`,
  )
  t.strictSame(ages, [
    'shop.example.com 2026-01-15T00:00:00Z',
    't.example.com 2026-01-10T00:00:00Z',
  ])
})

t.test('the keys of its objects, by resource and namespace', async (t) => {
  const { reader } = new Stage().put(
    gateway('infra/shop'),
    route('a/r', [SHOP]),
    route('b/r', [], { kind: 'TLSRoute' }),
  )
  const keys = (plural: string, namespace = ''): string =>
    [...reader.keys(plural, namespace)].join()
  t.equal(keys('gateways'), 'infra/shop')
  t.equal(keys('httproutes'), 'a/r')
  t.equal(keys('tlsroutes'), 'b/r')
  t.equal(keys('tlsroutes', 'a'), '')
  t.equal(keys('listenersets'), '')
})
