import t from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'

const NAMESPACE = 'team'

interface Row {
  readonly name: string
  readonly given: object
  /** What the refusal says; undefined = it is taken. */
  readonly want?: RegExp
}

const HOST = { rootHost: 'a.k.example.com' }
const check = (healthCheck: object) => ({ ...HOST, healthCheck })

const CREATED: readonly Row[] = [
  { name: 'the root host alone', given: HOST },
  { name: 'no root host', given: {}, want: /spec\.rootHost: Required value/ },
  { name: 'a root host of one label', given: { rootHost: 'localhost' }, want: /should match/ },
  {
    name: 'a root host of 256 characters',
    given: { rootHost: `${'a.'.repeat(127)}aa` },
    want: /may not be more than 255|[Tt]oo long/,
  },
  { name: 'a root host of 255 characters', given: { rootHost: `${'a.'.repeat(127)}a` } },
  { name: 'an empty root host', given: { rootHost: '' }, want: /rootHost/ },
  { name: 'a root host with a space', given: { rootHost: 'a b.example' }, want: /should match/ },
  { name: 'a wildcard', given: { rootHost: '*.k.example.com' } },
  { name: 'an ownerID of 6 characters', given: { ...HOST, ownerID: 'abcdef' } },
  { name: 'an ownerID of 36 characters', given: { ...HOST, ownerID: 'a'.repeat(36) } },
  {
    name: 'an ownerID of 37 characters',
    given: { ...HOST, ownerID: 'a'.repeat(37) },
    want: /may not be more than 36|[Tt]oo long/,
  },
  { name: 'a short ownerID', given: { ...HOST, ownerID: 'short' }, want: /ownerID.*at least 6/ },
  {
    name: 'a providerRef without a name',
    given: { ...HOST, providerRef: {} },
    want: /providerRef\.name: Required/,
  },
  {
    name: 'delegate beside a provider',
    given: { ...HOST, delegate: true, providerRef: { name: 'p' } },
    want: /delegate=true and providerRef are mutually exclusive/,
  },
  { name: 'delegate alone', given: { ...HOST, delegate: true } },
  {
    name: 'delegate: false beside a provider',
    given: { ...HOST, delegate: false, providerRef: { name: 'p' } },
  },
  ...[80, 443, 1024, 49_151].map((port) => ({ name: `port ${port}`, given: check({ port }) })),
  ...[0, 79, 81, 442, 444, 1023].map((port) => ({
    name: `port ${port}`,
    given: check({ port }),
    want: /Only ports 53, 80, 443, 1024-49151 are allowed/,
  })),
  ...['HTTP', 'HTTPS'].map((protocol) => ({ name: protocol, given: check({ protocol }) })),
  {
    name: 'http in lower case',
    given: check({ protocol: 'http' }),
    want: /Only HTTP, HTTPS, TCP, GRPC, GRPCS or DNS/,
  },
  { name: 'one failure', given: check({ failureThreshold: 1 }) },
  { name: 'a path of three characters', given: check({ path: '/ab' }) },
  { name: 'a path of two characters', given: check({ path: '/a' }) },
  { name: 'a query as the path', given: check({ path: '?ready=1' }) },
  {
    name: 'headers without a name',
    given: check({ additionalHeadersRef: {} }),
    want: /additionalHeadersRef\.name: Required/,
  },
  { name: 'no endpoints', given: { ...HOST, endpoints: [] } },
  {
    name: 'an endpoint of any type and target',
    given: { ...HOST, endpoints: [{ recordType: 'ANYTHING', targets: ['at', 'all'] }] },
  },
  { name: 'a health check on port 8443', given: check({ port: 8443, path: '/healthz' }) },
  {
    name: 'port 22',
    given: check({ port: 22 }),
    want: /Only ports 53, 80, 443, 1024-49151 are allowed/,
  },
  { name: 'port 49152', given: check({ port: 49_152 }), want: /Only ports 53, 80/ },
  { name: 'protocol TCP', given: check({ protocol: 'TCP' }) },
  { name: 'protocol GRPC', given: check({ protocol: 'GRPC', service: 'shop.v1.Cart' }) },
  { name: 'protocol GRPCS', given: check({ protocol: 'GRPCS' }) },
  {
    name: 'protocol DNS',
    given: check({
      protocol: 'DNS',
      port: 53,
      query: 'a.example A',
      expectedRcode: 'NOERROR',
      expectedAddress: '192.0.2.1',
    }),
  },
  {
    name: 'protocol EXEC',
    given: check({ protocol: 'EXEC' }),
    want: /Only HTTP, HTTPS, TCP, GRPC, GRPCS or DNS/,
  },
  {
    name: 'expected statuses and a text',
    given: check({ expectedStatus: '200, 204 ,301-308', expectedBody: 'ready' }),
  },
  {
    name: 'a status of two digits',
    given: check({ expectedStatus: '20' }),
    want: /expectedStatus/,
  },
  { name: 'a status as a number', given: check({ expectedStatus: 200 }), want: /expectedStatus/ },
  {
    name: 'protocol UDP',
    given: check({ protocol: 'UDP' }),
    want: /Only HTTP, HTTPS, TCP, GRPC, GRPCS or DNS/,
  },
  {
    name: 'no failures allowed',
    given: check({ failureThreshold: 0 }),
    want: /Failure threshold must be greater than 0/,
  },
  { name: 'the path /', given: check({ path: '/' }) },
  { name: 'a path with a space', given: check({ path: '/a b' }), want: /path.*should match/ },
  { name: 'a path without a slash', given: check({ path: 'healthz' }), want: /path.*should match/ },
  {
    name: 'a fractional TTL',
    given: { ...HOST, endpoints: [{ recordTTL: 1.5 }] },
    want: /recordTTL/,
  },
  { name: 'an empty endpoint', given: { ...HOST, endpoints: [{}] } },
]

const CHANGED: readonly (Row & { readonly from: object })[] = [
  {
    name: 'another root host',
    from: HOST,
    given: { rootHost: 'b.k.example.com' },
    want: /RootHost is immutable/,
  },
  {
    name: 'another ownerID',
    from: { ...HOST, ownerID: 'owner1' },
    given: { ownerID: 'owner2' },
    want: /OwnerID is immutable/,
  },
  {
    name: 'an ownerID taken away',
    from: { ...HOST, ownerID: 'owner1' },
    given: { ownerID: null },
    want: /OwnerID can't be unset/,
  },
  {
    name: 'an ownerID given later',
    from: HOST,
    given: { ownerID: 'owner1' },
    want: /OwnerID can't be set if/,
  },
  {
    name: 'delegate given later',
    from: HOST,
    given: { delegate: true },
    want: /delegate can't be set to true/,
  },
  {
    name: 'delegate: false turned on',
    from: { ...HOST, delegate: false },
    given: { delegate: true },
    want: /delegate is immutable/,
  },
  {
    name: 'delegate: false taken away',
    from: { ...HOST, delegate: false },
    given: { delegate: null },
  },
  {
    name: 'a provider given to a delegating record',
    from: { ...HOST, delegate: true },
    given: { providerRef: { name: 'p' } },
    want: /delegate=true and providerRef are mutually exclusive/,
  },
  {
    name: 'another provider',
    from: { ...HOST, providerRef: { name: 'p' } },
    given: { providerRef: { name: 'q' } },
  },
  { name: 'delegate: false given later', from: HOST, given: { delegate: false } },
  {
    name: 'delegate taken away',
    from: { ...HOST, delegate: true },
    given: { delegate: null },
    want: /delegate can't be unset/,
  },
  {
    name: 'delegate turned off',
    from: { ...HOST, delegate: true },
    given: { delegate: false },
    want: /delegate is immutable/,
  },
  { name: 'other endpoints', from: HOST, given: { endpoints: [{ dnsName: 'a.k.example.com' }] } },
]

t.setTimeout(CLUSTER_TEST_MS)

t.test(
  'the API server takes our CustomResourceDefinitions and enforces them',
  needsCluster(),
  async (t) => {
    const cluster = await Cluster.start(t)
    await cluster.installCrds()
    await cluster.createNamespace(NAMESPACE)
    const records = cluster.records(NAMESPACE)
    const resource = (kind: string, name: string, spec: object) => ({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind,
      metadata: { name },
      spec,
    })
    let count = 0

    await t.test('the API server stores them without a warning', async (t) => {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      for (const plural of ['dnsrecords', 'dnshealthcheckprobes']) {
        const { status } = await cluster.must('GET', `${path}/${plural}.kuadrant.io`)
        const bad = status.conditions.filter(
          ({ type, status }: { type: string; status: string }) =>
            type === 'NonStructuralSchema' || (type === 'NamesAccepted' && status !== 'True'),
        )
        t.strictSame(bad, [])
      }
    })

    await t.test('what the API server accepts and refuses when a record is created', async (t) => {
      for (const { name, given, want } of CREATED) {
        const reply = await cluster.call(
          'POST',
          records,
          resource('DNSRecord', `c${count++}`, given),
        )
        if (want === undefined) t.equal(reply.status, 201, name)
        else t.match(reply, { status: 422, body: { message: want } }, name)
      }
    })

    await t.test('what the API server accepts and refuses when a record is changed', async (t) => {
      for (const { name, from, given, want } of CHANGED) {
        const own = `u${count++}`
        await cluster.must('POST', records, resource('DNSRecord', own, from))
        const reply = await cluster.call('PATCH', `${records}/${own}`, { spec: given })
        if (want === undefined) t.equal(reply.status, 200, name)
        else t.match(reply, { status: 422, body: { message: want } }, name)
      }
    })

    await t.test('defaults are filled in, unknown fields dropped', async (t) => {
      const spec = { ...check({ path: '/live' }), nonsense: 1 }
      const { spec: kept } = await cluster.must(
        'POST',
        records,
        resource('DNSRecord', 'defaults', spec),
      )
      t.strictSame(kept.healthCheck, {
        path: '/live',
        port: 443,
        protocol: 'HTTPS',
        interval: '5m',
        failureThreshold: 5,
      })
      t.equal(kept.nonsense, undefined)
    })

    await t.test('the status is written on its own, remote statuses as they come', async (t) => {
      await cluster.must('POST', records, resource('DNSRecord', 'status', HOST))
      const status = {
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'ProviderSuccess',
            message: '',
            lastTransitionTime: '2026-01-01T00:00:00Z',
          },
        ],
        ownerID: 'abcdef12',
        remoteRecordStatuses: { 'uid-1': { any: { depth: [1, 2] } } },
      }
      const reply = await cluster.must('PATCH', `${records}/status/status`, {
        status,
        spec: { ownerID: 'other1' },
      })
      t.strictSame(reply.status, status)
      t.strictSame(reply.spec, HOST, 'the spec stays as it was')
      const [good] = status.conditions
      const bad = [
        { conditions: [{ ...good, status: 'Maybe' }] },
        { conditions: [{ ...good, reason: '' }] },
        { conditions: [{ type: 'Ready', status: 'True' }] },
        { conditions: [good, good] },
        { observedGeneration: 'one' },
        { remoteRecordStatuses: { 'uid-1': 'text' } },
        { providerRef: {} },
      ]
      for (const status of bad) {
        const refused = await cluster.call('PATCH', `${records}/status/status`, { status })
        t.equal(refused.status, 422, JSON.stringify(status))
      }
    })

    await t.test('a probe is checked as well', async (t) => {
      const probes = cluster.records(NAMESPACE, '', 'dnshealthcheckprobes')
      const table: readonly Row[] = [
        { name: 'an address', given: { address: '192.0.2.1', port: 80, protocol: 'HTTP' } },
        { name: 'nothing', given: {} },
        {
          name: 'a test address',
          given: { address: '192.0.2.1', testAddress: '192.0.2.9', port: 53, protocol: 'DNS' },
        },
        { name: 'port 1023', given: { port: 1023 }, want: /Only ports 53, 80/ },
        {
          name: 'no failures allowed',
          given: { failureThreshold: 0 },
          want: /Failure threshold must be greater than 0/,
        },
        { name: 'the path /', given: { path: '/' } },
        { name: 'a path without a slash', given: { path: 'x' }, want: /path.*should match/ },
        {
          name: 'headers without a name',
          given: { additionalHeadersRef: {} },
          want: /additionalHeadersRef\.name: Required/,
        },
        {
          name: 'protocol GOPHER',
          given: { protocol: 'GOPHER' },
          want: /Only HTTP, HTTPS, TCP, GRPC, GRPCS or DNS/,
        },
      ]
      for (const { name, given, want } of table) {
        const reply = await cluster.call(
          'POST',
          probes,
          resource('DNSHealthCheckProbe', `p${count++}`, given),
        )
        if (want === undefined) t.equal(reply.status, 201, name)
        else t.match(reply, { status: 422, body: { message: want } }, name)
      }
    })

    await t.test('kubectl is shown the columns', async (t) => {
      const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1'
      const table = await cluster.must('GET', records, undefined, accept)
      const names = table.columnDefinitions.map(({ name }: { name: string }) => name)
      t.strictSame(names, [
        'Name',
        'Host',
        'Ready',
        'Served',
        'Down',
        'Age',
        'Healthy',
        'Owner ID',
        'Zone Domain',
        'Zone ID',
      ])
      const row = table.rows.find(({ cells }: { cells: unknown[] }) => cells[0] === 'status')
      const cells = row.cells.toSpliced(names.indexOf('Age'), 1)
      const want = ['status', 'a.k.example.com', 'True', null, null, null, 'abcdef12', null, null]
      t.strictSame(cells, want)
    })
  },
)
