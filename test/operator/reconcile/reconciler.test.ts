import t from 'tap'
import { ApiError } from '../../../src/kube/api.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { EAST, HOUR_MS, KEY, OperatorFixture, WEST } from './stage.ts'

t.test('a record gets a finalizer, is exported, merged and reported, in that order', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'east', ['192.0.2.2'])
  t.strictSame(await fixture.reconcile(), [
    'hold app',
    'apply local-app',
    'apply merged-app',
    'status app',
  ])
  t.strictSame(fixture.field('local-app', 'metadata', 'labels'), {
    'kuadrant.io/type': 'local',
    'kuadrant.io/coredns-zone-name': 'kdrnt',
  })
  t.strictSame(fixture.field('merged-app', 'metadata', 'labels'), {
    'kuadrant.io/type': 'merged',
    'kuadrant.io/coredns-zone-name': 'k.example.com',
  })
  for (const name of ['local-app', 'merged-app']) {
    t.strictSame(fixture.field(name, 'metadata', 'ownerReferences'), [
      { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', name: 'app', uid: 'uid-of-app' },
    ])
  }
  t.equal(fixture.field('local-app', 'spec', 'rootHost'), 'k.example.com.kdrnt')
  t.equal(fixture.field('merged-app', 'spec', 'rootHost'), 'k.example.com')
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  t.strictSame(fixture.field('app', 'status', 'zoneID'), 'k.example.com')
  t.strictSame(fixture.field('app', 'status', 'zoneDomainName'), 'k.example.com')
  t.strictSame(fixture.field('app', 'status', 'providerRef'), { name: 'coredns' })
  t.strictSame(fixture.field('app', 'status', 'observedGeneration'), 1)
  t.strictSame(fixture.field('app', 'status', 'writeCounter'), 1)
  t.strictSame(
    fixture.field('app', 'status', 'endpoints'),
    fixture.field('merged-app', 'spec', 'endpoints'),
  )
  t.strictSame(fixture.ready(), ['True', 'ProviderSuccess', 'Provider ensured the dns record'])
})

t.test('a restart writes nothing, whether peers have answered yet or not', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'east', ['192.0.2.2'])
  fixture.say(WEST, 'west', ['192.0.2.3'])
  await fixture.reconcile()
  fixture.clock.pass(HOUR_MS)
  fixture.start()
  t.strictSame(await fixture.reconcile(), [], 'with all peers live')
  const answers = new Map(fixture.peers.answers)
  fixture.peers.answers.clear()
  fixture.start()
  t.strictSame(await fixture.reconcile(), [], 'before any has answered')
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2', '192.0.2.3']])
  for (const [address, answer] of answers) fixture.peers.answers.set(address, answer)
  t.strictSame(await fixture.reconcile(), [], 'and when they do')
})

t.test('an edit is exported, merged and reported', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  await fixture.reconcile()
  const endpoints = [{ dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.9'] }]
  fixture.cluster.edit(KEY, { endpoints })
  t.strictSame(await fixture.reconcile(), ['apply local-app', 'apply merged-app', 'status app'])
  t.strictSame(fixture.served(), [['192.0.2.9']])
  t.strictSame(fixture.field('app', 'status', 'observedGeneration'), 2)
  t.strictSame(fixture.field('app', 'status', 'writeCounter'), 2)
})

t.test(
  'a record of an operator of before keeps what it has until the peers are heard',
  async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    const endpoints = [
      {
        dnsName: 'k.example.com',
        recordType: 'A',
        recordTTL: 60,
        targets: ['192.0.2.1', '192.0.2.7'],
      },
    ]
    const ownerReferences = [{ kind: 'DNSRecord', name: 'app', uid: 'uid-of-app' }]
    const labels = { 'kuadrant.io/type': 'merged' }
    const metadata = { ownerReferences, labels }
    fixture.cluster.put(dnsRecord({ name: 'merged-app', metadata, spec: { endpoints } }))
    await fixture.reconcile()
    t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.7']])
    fixture.say(EAST, 'east', [])
    await fixture.reconcile()
    t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.7']], 'the other peer was not heard yet')
    fixture.say(WEST, 'west', [])
    await fixture.reconcile()
    t.strictSame(fixture.served(), [['192.0.2.1']])
  },
)

t.test('a record that is deleted takes with it what was made of it', async (t) => {
  const table = [
    { name: 'as usual', prepare: () => {} },
    {
      name: 'with a dead peer',
      prepare: (fixture: OperatorFixture) => fixture.peers.fallSilent(EAST),
    },
    {
      name: 'after its Secret',
      prepare: (fixture: OperatorFixture) => fixture.cluster.secrets.clear(),
    },
    {
      name: 'after its Secret became bad',
      prepare: (fixture: OperatorFixture) => fixture.cluster.put(secret('a', 'coredns', {})),
    },
    {
      name: 'after the operator was started anew',
      prepare: (fixture: OperatorFixture) => {
        fixture.cluster.secrets.clear()
        fixture.start()
      },
    },
  ]
  for (const { name, prepare } of table) {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    await fixture.reconcile()
    prepare(fixture)
    fixture.cluster.markDeleted(KEY)
    t.strictSame(
      await fixture.reconcile(),
      ['delete local-app', 'delete merged-app', 'unhold app'],
      name,
    )
    t.strictSame([...fixture.cluster.records.keys()], [], name)
    t.equal(fixture.peers.wanted.size, 0, name)
  }
})

t.test('a record that others hold says that its endpoints are gone', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord({ metadata: { finalizers: ['example.com/other'] } }))
  await fixture.reconcile()
  fixture.cluster.markDeleted(KEY)
  t.strictSame(await fixture.reconcile(), [
    'delete local-app',
    'delete merged-app',
    'status app',
    'unhold app',
  ])
  t.equal(fixture.ready()[1], 'ProviderEndpointsRemoved')
  t.strictSame(fixture.field('app', 'metadata', 'finalizers'), ['example.com/other'])
})

t.test('a record that can not be published says why, and is left as it is', async (t) => {
  const zoneless = secret('a', 'coredns', { ZONES: 'other.example' })
  const address = (target: string) => ({
    endpoints: [{ dnsName: 'k.example.com', recordType: 'A', targets: [target] }],
  })
  const table = [
    {
      name: 'a bad target',
      prepare: (fixture: OperatorFixture) => fixture.cluster.edit(KEY, address('256.0.0.1')),
      want: [
        'False',
        'ValidationError',
        'validation of DNSRecord failed: endpoint k.example.com target "256.0.0.1" is not an IPv4 address',
      ],
    },
    {
      name: 'a name outside of the root host, label by label',
      prepare: (fixture: OperatorFixture) =>
        fixture.cluster.edit(KEY, {
          endpoints: [{ dnsName: 'badk.example.com', recordType: 'A', targets: ['192.0.2.1'] }],
        }),
      want: [
        'False',
        'ValidationError',
        'validation of DNSRecord failed: invalid endpoint discovered badk.example.com all endpoints should be equal to or end with the rootHost k.example.com',
      ],
    },
    {
      name: 'no zone',
      prepare: (fixture: OperatorFixture) => fixture.cluster.put(zoneless),
      want: [
        'False',
        'DNSProviderError',
        'Unable to find suitable zone in provider: no zone for host: k.example.com',
      ],
    },
    {
      name: 'no Secret',
      prepare: (fixture: OperatorFixture) => fixture.cluster.secrets.clear(),
      want: [
        'False',
        'DNSProviderError',
        'The dns provider could not be loaded: Secret "coredns" not found',
      ],
    },
  ]
  for (const { name, prepare, want } of table) {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.say(EAST, 'east', ['192.0.2.2'])
    await fixture.reconcile()
    prepare(fixture)
    t.strictSame(await fixture.reconcile(), ['status app'], name)
    t.strictSame(fixture.ready(), want, name)
    t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']], `${name}: served as before`)
    t.equal(fixture.field('app', 'status', 'zoneID'), 'k.example.com', `${name}: still reported`)
    t.equal(fixture.peers.wanted.size, 0, `${name}: no peer is followed for it`)
  }
})

t.test('records of others are left alone, without a word', async (t) => {
  const aws = secret('a', 'coredns', {}, { type: 'kuadrant.io/aws' })
  const table = [
    { name: 'another provider', record: dnsRecord(), secrets: [aws] },
    {
      name: 'another provider, with its finalizer, being deleted',
      record: dnsRecord({
        metadata: {
          finalizers: ['kuadrant.io/dns-record'],
          deletionTimestamp: '2026-02-01T00:00:00Z',
        },
      }),
      secrets: [aws],
    },
    {
      name: 'of another owner, being deleted after its Secret',
      record: dnsRecord({
        metadata: {
          finalizers: ['kuadrant.io/dns-record'],
          deletionTimestamp: '2026-02-01T00:00:00Z',
        },
      }),
      secrets: [],
    },
    {
      name: 'a derived record',
      record: dnsRecord({ metadata: { labels: { 'kuadrant.io/type': 'merged' } } }),
      secrets: [secret('a', 'coredns', { ZONES: 'k.example.com' })],
    },
    {
      name: 'an authoritative record of another provider',
      record: dnsRecord({ metadata: { labels: { 'kuadrant.io/authoritative-record': 'true' } } }),
      secrets: [secret('a', 'coredns', {}, { type: 'kuadrant.io/aws' })],
    },
    {
      name: 'a delegating record where another provider is the default',
      record: dnsRecord({ spec: { delegate: true, providerRef: null } }),
      secrets: [
        secret(
          'a',
          'aws',
          {},
          { type: 'kuadrant.io/aws', labels: { 'kuadrant.io/default-provider': 'true' } },
        ),
      ],
    },
  ]
  for (const { name, record, secrets } of table) {
    const fixture = new OperatorFixture()
    fixture.cluster.secrets.clear()
    for (const one of secrets) fixture.cluster.put(one)
    fixture.cluster.put(record)
    t.strictSame(await fixture.reconcile(), [], name)
  }
})

t.test(
  'a record that another provider gets loses what was made of it, and keeps what is theirs',
  async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    await fixture.reconcile()
    fixture.cluster.put(secret('a', 'coredns', {}, { type: 'kuadrant.io/aws' }))
    t.strictSame(await fixture.reconcile(), [
      'delete local-app',
      'delete merged-app',
      'status app',
      'leave app',
    ])
    t.strictSame(fixture.field('app', 'status'), {})
  },
)

t.test('an object of another owner is never adopted or deleted', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord({ name: 'merged-app' }))
  fixture.cluster.put(dnsRecord())
  t.strictSame(await fixture.reconcile(), ['status app'])
  t.match(fixture.ready(), [
    'False',
    'ProviderError',
    /DNSRecord merged-app exists and is not derived from this record; rename it/,
  ])
})

t.test('objects of an earlier record of that name are deleted first', async (t) => {
  const fixture = new OperatorFixture()
  const metadata = {
    labels: { 'kuadrant.io/type': 'merged' },
    ownerReferences: [{ kind: 'DNSRecord', name: 'app', uid: 'of-before' }],
  }
  fixture.cluster.put(
    dnsRecord({ name: 'merged-app', metadata, spec: { rootHost: 'old.example.com' } }),
  )
  fixture.cluster.put(dnsRecord({ status: { peers: [] } }))
  t.strictSame(await fixture.reconcile(), [
    'hold app',
    'apply local-app',
    'delete merged-app',
    'apply merged-app',
    'status app',
  ])
  t.equal(fixture.field('merged-app', 'spec', 'rootHost'), 'k.example.com')
})

t.test('a write that fails leaves the rest for the next look', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.cluster.refuse = ({ kind }) => (kind === 'apply' ? new ApiError(500, 'no') : undefined)
  await t.rejects(fixture.reconciler.reconcile(KEY), new ApiError(500, 'no'))
  t.strictSame(fixture.cluster.takeWrites(), ['hold app'])
  fixture.cluster.refuse = () => undefined
  t.strictSame(await fixture.reconcile(), ['apply local-app', 'apply merged-app', 'status app'])
})

t.test('an empty record is published as one, and says so', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord({ spec: { endpoints: [] } }))
  await fixture.reconcile()
  t.strictSame(fixture.ready(), [
    'False',
    'ProviderError',
    'The DNS provider failed to ensure the record: no endpoints discovered for k.example.com',
  ])
})

t.test('addresses that probes find down are not exported, and not served', async (t) => {
  const fixture = new OperatorFixture()
  const endpoints = [
    { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.1', '192.0.2.9'] },
  ]
  fixture.cluster.put(dnsRecord({ spec: { endpoints } }))
  fixture.say(EAST, 'east', ['192.0.2.2'])
  await fixture.reconcile()
  const probes = [
    { address: '192.0.2.1', health: 'up' as const },
    { address: '192.0.2.9', health: 'down' as const },
  ]
  fixture.cluster.health.set(KEY, { down: ['192.0.2.9'], up: ['192.0.2.1'], probes })
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  t.match(fixture.field('app', 'status', 'conditions'), [
    { type: 'Ready', status: 'True' },
    { type: 'Healthy', status: 'False', reason: 'SomeChecksPassed' },
  ])
  fixture.cluster.health.set(KEY, {
    down: ['192.0.2.1', '192.0.2.9'],
    up: [],
    probes: [probes[1]!],
  })
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.2']], 'what is up elsewhere takes over')
})

t.test('a record that is gone is forgotten', async (t) => {
  const fixture = new OperatorFixture()
  t.equal(await fixture.reconciler.reconcile('a/none'), undefined)
  t.strictSame(fixture.forgotten, ['a/none'])
  t.strictSame(fixture.cluster.takeWrites(), [])
})
