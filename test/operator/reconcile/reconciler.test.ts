import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import { ApiError, type ApiObject } from '../../../src/kube/api.ts'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'
import type { Plan } from '../../../src/operator/plan/plan.ts'
import { Reconciler } from '../../../src/operator/reconcile/reconciler.ts'
import type { PeersForm } from '../../../src/operator/status/peer-status.ts'
import { ToyCluster, ToyPeers } from '../../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../../support/operator-objects.ts'
import { FakeClock } from '../../support/setup.ts'

const HOUR_MS = 3_600_000
const EAST = '192.0.2.53:53'
const WEST = '[2001:db8::53]:53'
const KEY = 'a/app'

class World {
  readonly cluster = new ToyCluster()
  readonly peers = new ToyPeers()
  readonly clock = new FakeClock()
  readonly plans: Plan[] = []
  readonly conflicts: string[] = []
  readonly forgotten: string[] = []
  peersForm: PeersForm = 'whole'
  reconciler = this.start()

  constructor() {
    const data = { ZONES: 'k.example.com', NAMESERVERS: `${EAST}, ${WEST}` }
    this.cluster.put(secret('a', 'coredns', data))
  }

  /** An operator, as after a restart. */
  start(): Reconciler {
    this.reconciler = new Reconciler({
      view: this.cluster,
      writer: this.cluster,
      peers: this.peers,
      clock: this.clock,
      listener: {
        reconciled: (_record, plan, { conflicts }) => {
          this.plans.push(plan)
          this.conflicts.push(...conflicts.map(({ text }) => text))
        },
        forgot: (key) => this.forgotten.push(key),
      },
      site: 'here',
      bounds: { minMs: 5000, maxMs: 900_000 },
      expiryMs: 24 * HOUR_MS,
      peersForm: () => this.peersForm,
      role: 'primary',
      removalTimeoutMs: 24 * HOUR_MS,
      mutex: new KeyedMutex(),
      owners: { rivalOf: () => '' },
    })
    return this.reconciler
  }

  say(address: string, site: string, targets: readonly string[]): void {
    const endpoints = targets.length === 0 ? [] : [{ targets }]
    this.peers.say(address, site, endpoints, thisMoment(this.clock))
  }

  /** Has a peer tell what it heard of a site of others. */
  relay(address: string, site: string, targets: readonly string[]): void {
    this.peers.say(address, site, [{ targets }], thisMoment(this.clock), false)
  }

  /** Looks at the record until there is nothing to do; returns the writes. */
  async look(key = KEY): Promise<string[]> {
    await this.reconciler.reconcile(key)
    const writes = this.cluster.takeWrites()
    await this.reconciler.reconcile(key)
    if (this.cluster.takeWrites().length > 0) throw new Error('a second look wrote something')
    return writes
  }

  field(name: string, ...path: readonly string[]): unknown {
    return at(this.cluster.record(`a/${name}`), ...path)
  }

  /** Targets of the endpoints that are served. */
  served(): unknown {
    const endpoints = this.field('merged-app', 'spec', 'endpoints') as readonly ApiObject[]
    return endpoints.map(({ targets }) => targets)
  }

  ready(): readonly unknown[] {
    const conditions = this.field('app', 'status', 'conditions') as readonly ApiObject[]
    const ready = conditions.find(({ type }) => type === 'Ready')
    return [ready?.status, ready?.reason, ready?.message]
  }
}

t.test('a record is held, told to peers, merged and reported, in that order', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', ['192.0.2.2'])
  t.strictSame(await world.look(), [
    'hold app',
    'apply local-app',
    'apply merged-app',
    'status app',
  ])
  t.strictSame(world.field('local-app', 'metadata', 'labels'), {
    'kuadrant.io/type': 'local',
    'kuadrant.io/coredns-zone-name': 'kdrnt',
  })
  t.strictSame(world.field('merged-app', 'metadata', 'labels'), {
    'kuadrant.io/type': 'merged',
    'kuadrant.io/coredns-zone-name': 'k.example.com',
  })
  for (const name of ['local-app', 'merged-app']) {
    t.strictSame(world.field(name, 'metadata', 'ownerReferences'), [
      { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', name: 'app', uid: 'uid-of-app' },
    ])
  }
  t.equal(world.field('local-app', 'spec', 'rootHost'), 'k.example.com.kdrnt')
  t.equal(world.field('merged-app', 'spec', 'rootHost'), 'k.example.com')
  t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2']])
  t.strictSame(world.field('app', 'status', 'zoneID'), 'k.example.com')
  t.strictSame(world.field('app', 'status', 'zoneDomainName'), 'k.example.com')
  t.strictSame(world.field('app', 'status', 'providerRef'), { name: 'coredns' })
  t.strictSame(world.field('app', 'status', 'observedGeneration'), 1)
  t.strictSame(world.field('app', 'status', 'writeCounter'), 1)
  t.strictSame(
    world.field('app', 'status', 'endpoints'),
    world.field('merged-app', 'spec', 'endpoints'),
  )
  t.strictSame(world.ready(), ['True', 'ProviderSuccess', 'Provider ensured the dns record'])
})

t.test('a restart writes nothing, whether peers have answered yet or not', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', ['192.0.2.2'])
  world.say(WEST, 'west', ['192.0.2.3'])
  await world.look()
  world.clock.pass(HOUR_MS)
  world.start()
  t.strictSame(await world.look(), [], 'with all peers live')
  const answers = new Map(world.peers.answers)
  world.peers.answers.clear()
  world.start()
  t.strictSame(await world.look(), [], 'before any has answered')
  t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2', '192.0.2.3']])
  for (const [address, answer] of answers) world.peers.answers.set(address, answer)
  t.strictSame(await world.look(), [], 'and when they do')
})

t.test(
  'a peer that was started anew has forgotten when it changed: nothing is written',
  async (t) => {
    const world = new World()
    world.cluster.put(dnsRecord())
    const say = (target: string, sinceSeconds: number) =>
      world.peers.say(EAST, 'east', [{ targets: [target], sinceSeconds }], thisMoment(world.clock))
    const since = () => JSON.stringify(world.field('app', 'status', 'peers')).match(/"\d{10}"/)?.[0]
    say('192.0.2.2', 1_790_000_500)
    await world.look()
    say('192.0.2.2', 1_790_000_000)
    t.strictSame(await world.look(), [], 'we both go on')
    world.start()
    t.strictSame(await world.look(), [], 'we are started anew as well')
    t.equal(since(), '"1790000500"')
    say('192.0.2.2', 1_790_000_600)
    t.strictSame(await world.look(), ['status app'], 'it was something else meanwhile')
    t.equal(since(), '"1790000600"')
    say('192.0.2.3', 1_790_000_000)
    t.strictSame(await world.look(), ['apply merged-app', 'status app'], 'it is something else now')
    t.equal(since(), '"1790000000"')
  },
)

t.test('an edit is told, merged and reported', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  await world.look()
  const endpoints = [{ dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.9'] }]
  world.cluster.edit(KEY, { endpoints })
  t.strictSame(await world.look(), ['apply local-app', 'apply merged-app', 'status app'])
  t.strictSame(world.served(), [['192.0.2.9']])
  t.strictSame(world.field('app', 'status', 'observedGeneration'), 2)
  t.strictSame(world.field('app', 'status', 'writeCounter'), 2)
})

t.test('what a live peer says no longer goes at once', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', ['192.0.2.2'])
  await world.look()
  world.say(EAST, 'east', [])
  t.strictSame(await world.look(), ['apply merged-app', 'status app'])
  t.strictSame(world.served(), [['192.0.2.1']])
})

t.test('a silent peer is heard until its word runs out, also over a restart', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', ['192.0.2.2'])
  await world.look()
  world.clock.pass(HOUR_MS)
  world.peers.fallSilent(EAST)
  t.strictSame(await world.look(), ['status app'], 'told once, and served as before')
  t.match(world.field('app', 'status', 'peers'), [
    { address: EAST, state: 'Silent', site: 'east', serial: 7, message: 'no answer' },
  ])
  t.match(world.ready()[2], '1 of 2 nameservers is silent: 192.0.2.53:53')
  world.peers.answers.clear()
  world.start()
  t.strictSame(await world.look(), [])
  world.peers.fallSilent(EAST)
  t.strictSame(await world.look(), [])
  world.clock.pass(23 * HOUR_MS - 1)
  t.strictSame(await world.look(), [])
  world.clock.pass(1)
  t.strictSame(await world.look(), ['apply merged-app', 'status app'])
  t.strictSame(world.served(), [['192.0.2.1']])
})

// Whose word it was that a silent peer had told was guessed: a relay's passed for that of the site.
t.test(
  'a relay that is silent has no say beside the site itself, also over a restart',
  async (t) => {
    const world = new World()
    world.cluster.put(dnsRecord())
    world.say(EAST, 'east', ['192.0.2.2'])
    world.relay(WEST, 'east', ['192.0.2.9'])
    world.peers.fallSilent(WEST)
    await world.look()
    t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2']])
    const answers = new Map(world.peers.answers)
    world.peers.answers.clear()
    world.start()
    t.strictSame(await world.look(), [], 'before any has answered')
    for (const [address, answer] of answers) world.peers.answers.set(address, answer)
    t.strictSame(await world.look(), [])
    t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2']])
  },
)

// It was forgotten whose nameserver it is that had nothing, and a relay brought back what was gone.
t.test('what a site took back stays away while it is silent, also over a restart', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', [])
  world.relay(WEST, 'east', ['192.0.2.9'])
  await world.look()
  t.strictSame(world.served(), [['192.0.2.1']])
  const relayed = world.peers.answers.get(WEST)!
  world.peers.answers.clear()
  world.start()
  t.strictSame(await world.look(), [], 'before any has answered')
  world.peers.answers.set(WEST, relayed)
  world.peers.fallSilent(EAST)
  t.strictSame(await world.look(), ['status app'])
  world.peers.answers.delete(EAST)
  world.start()
  t.strictSame(await world.look(), [])
  t.strictSame(world.served(), [['192.0.2.1']])
})

t.test(
  'statuses of before: what they leave open costs one write, and most cost none',
  async (t) => {
    const table: readonly {
      readonly name: string
      readonly say: (world: World) => void
      readonly writes: readonly string[]
    }[] = [
      {
        name: 'live sites, one with nothing',
        say: (world) => {
          world.say(EAST, 'east', ['192.0.2.2'])
          world.say(WEST, 'west', [])
        },
        writes: [],
      },
      {
        name: 'a silent site',
        say: (world) => {
          world.say(EAST, 'east', ['192.0.2.2'])
          world.peers.fallSilent(EAST)
        },
        writes: [],
      },
      {
        name: 'a relay of one site, live',
        say: (world) => world.relay(WEST, 'east', ['192.0.2.9']),
        writes: ['status app'],
      },
      {
        name: 'a relay of one site, silent',
        say: (world) => {
          world.relay(WEST, 'east', ['192.0.2.9'])
          world.peers.fallSilent(WEST)
        },
        writes: ['status app'],
      },
    ]
    for (const { name, say, writes } of table) {
      const world = new World()
      world.peersForm = 'unmarked'
      world.cluster.put(dnsRecord())
      say(world)
      await world.look()
      const answers = new Map(world.peers.answers)
      world.peers.answers.clear()
      world.peersForm = 'whole'
      world.start()
      t.strictSame(await world.look(), [], `${name}: nobody was heard yet`)
      for (const [address, answer] of answers) world.peers.answers.set(address, answer)
      t.strictSame(await world.look(), writes, name)
      world.start()
      t.strictSame(await world.look(), [], `${name}, and once more`)
    }
  },
)

t.test('clocks that are set neither end the word of a silent peer nor keep it', async (t) => {
  for (const stepMs of [10 * 24 * HOUR_MS, -10 * 24 * HOUR_MS]) {
    const world = new World()
    world.cluster.put(dnsRecord())
    world.say(EAST, 'east', ['192.0.2.2'])
    world.peers.fallSilent(EAST)
    await world.look()
    world.clock.nowMs += stepMs
    t.strictSame(await world.look(), [])
    world.clock.pass(24 * HOUR_MS - 1)
    t.strictSame(await world.look(), [])
    world.clock.pass(1)
    t.strictSame(await world.look(), ['apply merged-app', 'status app'])
  }
})

// It was kept for as long as the clock was ahead, and for ever by restarts.
t.test('a word with a time that is yet to come counts from the restart', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', ['192.0.2.2'])
  world.peers.fallSilent(EAST)
  await world.look()
  world.peers.answers.clear()
  world.clock.nowMs -= 30 * 24 * HOUR_MS
  world.start()
  t.strictSame(await world.look(), ['status app'], 'the time is set right')
  world.clock.pass(23 * HOUR_MS)
  world.start()
  t.strictSame(await world.look(), [])
  world.clock.pass(HOUR_MS)
  t.strictSame(await world.look(), ['apply merged-app', 'status app'])
})

t.test(
  'a record that is refused for long has its peers heard again before they expire',
  async (t) => {
    const world = new World()
    world.cluster.put(dnsRecord())
    world.say(EAST, 'east', ['192.0.2.2'])
    await world.look()
    const coredns = world.cluster.secrets.get('a/coredns')!
    world.cluster.secrets.clear()
    await world.look()
    world.clock.pass(48 * HOUR_MS)
    world.cluster.put(coredns)
    const answer = world.peers.answers.get(EAST)!
    world.peers.answers.clear()
    t.strictSame(await world.look(), ['status app'], 'they are asked anew')
    t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2']])
    t.equal(world.peers.wanted.get(KEY), 'k.example.com')
    world.peers.answers.set(EAST, answer)
    t.strictSame(await world.look(), ['apply merged-app', 'status app'], 'what was said long ago')
  },
)

t.test('a peer that is dead from the start stops nothing', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(WEST, 'west', ['192.0.2.3'])
  world.peers.fallSilent(EAST)
  await world.look()
  t.strictSame(world.served(), [['192.0.2.1', '192.0.2.3']])
  t.equal(world.ready()[0], 'True')
  t.match(world.field('app', 'status', 'peers'), [{ state: 'Unknown' }, { state: 'Live' }])
})

t.test(
  'a record of an operator of before keeps what it has until the peers are heard',
  async (t) => {
    const world = new World()
    world.cluster.put(dnsRecord())
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
    world.cluster.put(dnsRecord({ name: 'merged-app', metadata, spec: { endpoints } }))
    await world.look()
    t.strictSame(world.served(), [['192.0.2.1', '192.0.2.7']])
    world.say(EAST, 'east', [])
    await world.look()
    t.strictSame(world.served(), [['192.0.2.1', '192.0.2.7']], 'the other peer was not heard yet')
    world.say(WEST, 'west', [])
    await world.look()
    t.strictSame(world.served(), [['192.0.2.1']])
  },
)

t.test('a nameserver that the Secret names no longer is forgotten', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'east', ['192.0.2.2'])
  await world.look()
  world.cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com' }))
  await world.look()
  t.strictSame(world.served(), [['192.0.2.1']])
  t.strictSame(world.field('app', 'status', 'peers'), [])
})

t.test('what our own nameserver repeats of us is passed over', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.say(EAST, 'here', ['192.0.2.77'])
  await world.look()
  t.strictSame(world.served(), [['192.0.2.1']])
})

t.test('a record that is deleted takes with it what was made of it', async (t) => {
  const table = [
    { name: 'as usual', prepare: () => {} },
    { name: 'with a dead peer', prepare: (world: World) => world.peers.fallSilent(EAST) },
    { name: 'after its Secret', prepare: (world: World) => world.cluster.secrets.clear() },
    {
      name: 'after its Secret became bad',
      prepare: (world: World) => world.cluster.put(secret('a', 'coredns', {})),
    },
    {
      name: 'after the operator was started anew',
      prepare: (world: World) => {
        world.cluster.secrets.clear()
        world.start()
      },
    },
  ]
  for (const { name, prepare } of table) {
    const world = new World()
    world.cluster.put(dnsRecord())
    await world.look()
    prepare(world)
    world.cluster.markDeleted(KEY)
    t.strictSame(await world.look(), ['delete local-app', 'delete merged-app', 'unhold app'], name)
    t.strictSame([...world.cluster.records.keys()], [], name)
    t.equal(world.peers.wanted.size, 0, name)
  }
})

t.test('a record that others hold says that its endpoints are gone', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord({ metadata: { finalizers: ['example.com/other'] } }))
  await world.look()
  world.cluster.markDeleted(KEY)
  t.strictSame(await world.look(), [
    'delete local-app',
    'delete merged-app',
    'status app',
    'unhold app',
  ])
  t.equal(world.ready()[1], 'ProviderEndpointsRemoved')
  t.strictSame(world.field('app', 'metadata', 'finalizers'), ['example.com/other'])
})

t.test('a record that can not be published says why, and is left as it is', async (t) => {
  const zoneless = secret('a', 'coredns', { ZONES: 'other.example' })
  const address = (target: string) => ({
    endpoints: [{ dnsName: 'k.example.com', recordType: 'A', targets: [target] }],
  })
  const table = [
    {
      name: 'a bad target',
      prepare: (world: World) => world.cluster.edit(KEY, address('256.0.0.1')),
      want: [
        'False',
        'ValidationError',
        'validation of DNSRecord failed: endpoint k.example.com target "256.0.0.1" is not an IPv4 address',
      ],
    },
    {
      name: 'a name outside of the root host, label by label',
      prepare: (world: World) =>
        world.cluster.edit(KEY, {
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
      prepare: (world: World) => world.cluster.put(zoneless),
      want: [
        'False',
        'DNSProviderError',
        'Unable to find suitable zone in provider: no zone for host: k.example.com',
      ],
    },
    {
      name: 'no Secret',
      prepare: (world: World) => world.cluster.secrets.clear(),
      want: [
        'False',
        'DNSProviderError',
        'The dns provider could not be loaded: Secret "coredns" not found',
      ],
    },
  ]
  for (const { name, prepare, want } of table) {
    const world = new World()
    world.cluster.put(dnsRecord())
    world.say(EAST, 'east', ['192.0.2.2'])
    await world.look()
    prepare(world)
    t.strictSame(await world.look(), ['status app'], name)
    t.strictSame(world.ready(), want, name)
    t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2']], `${name}: served as before`)
    t.equal(world.field('app', 'status', 'zoneID'), 'k.example.com', `${name}: still reported`)
    t.equal(world.peers.wanted.size, 0, `${name}: nobody is followed for it`)
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
      name: "somebody else's, being deleted after its Secret",
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
    const world = new World()
    world.cluster.secrets.clear()
    for (const one of secrets) world.cluster.put(one)
    world.cluster.put(record)
    t.strictSame(await world.look(), [], name)
  }
})

t.test(
  'a record that another provider gets loses what was made of it, and keeps what is theirs',
  async (t) => {
    const world = new World()
    world.cluster.put(dnsRecord())
    await world.look()
    world.cluster.put(secret('a', 'coredns', {}, { type: 'kuadrant.io/aws' }))
    t.strictSame(await world.look(), [
      'delete local-app',
      'delete merged-app',
      'status app',
      'leave app',
    ])
    t.strictSame(world.field('app', 'status'), {})
  },
)

t.test('an object of somebody else is never taken or deleted', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord({ name: 'merged-app' }))
  world.cluster.put(dnsRecord())
  t.strictSame(await world.look(), ['status app'])
  t.match(world.ready(), [
    'False',
    'ProviderError',
    /a DNSRecord merged-app, which was not made of this one, is in the way/,
  ])
})

t.test('what is left of an earlier record of that name makes room first', async (t) => {
  const world = new World()
  const metadata = {
    labels: { 'kuadrant.io/type': 'merged' },
    ownerReferences: [{ kind: 'DNSRecord', name: 'app', uid: 'of-before' }],
  }
  world.cluster.put(
    dnsRecord({ name: 'merged-app', metadata, spec: { rootHost: 'old.example.com' } }),
  )
  world.cluster.put(dnsRecord({ status: { peers: [] } }))
  t.strictSame(await world.look(), [
    'hold app',
    'apply local-app',
    'delete merged-app',
    'apply merged-app',
    'status app',
  ])
  t.equal(world.field('merged-app', 'spec', 'rootHost'), 'k.example.com')
})

t.test('a write that fails leaves the rest for the next look', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord())
  world.cluster.refuse = ({ kind }) => (kind === 'apply' ? new ApiError(500, 'no') : undefined)
  await t.rejects(world.reconciler.reconcile(KEY), new ApiError(500, 'no'))
  t.strictSame(world.cluster.takeWrites(), ['hold app'])
  world.cluster.refuse = () => undefined
  t.strictSame(await world.look(), ['apply local-app', 'apply merged-app', 'status app'])
})

t.test('an empty record is published as one, and says so', async (t) => {
  const world = new World()
  world.cluster.put(dnsRecord({ spec: { endpoints: [] } }))
  await world.look()
  t.strictSame(world.ready(), [
    'False',
    'ProviderError',
    'The DNS provider failed to ensure the record: no endpoints discovered for k.example.com',
  ])
})

t.test('addresses that probes find down are not told, and not served', async (t) => {
  const world = new World()
  const endpoints = [
    { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.1', '192.0.2.9'] },
  ]
  world.cluster.put(dnsRecord({ spec: { endpoints } }))
  world.say(EAST, 'east', ['192.0.2.2'])
  await world.look()
  const probes = [
    { address: '192.0.2.1', health: 'up' as const },
    { address: '192.0.2.9', health: 'down' as const },
  ]
  world.cluster.health.set(KEY, { down: ['192.0.2.9'], up: ['192.0.2.1'], probes })
  await world.look()
  t.strictSame(world.served(), [['192.0.2.1', '192.0.2.2']])
  t.match(world.field('app', 'status', 'conditions'), [
    { type: 'Ready', status: 'True' },
    { type: 'Healthy', status: 'False', reason: 'SomeChecksPassed' },
  ])
  world.cluster.health.set(KEY, { down: ['192.0.2.1', '192.0.2.9'], up: [], probes: [probes[1]!] })
  await world.look()
  t.strictSame(world.served(), [['192.0.2.2']], 'what is up elsewhere takes over')
})

t.test('a conflict of sites is reported, and ours is served', async (t) => {
  const world = new World()
  const providerSpecific = [{ name: 'weight', value: '10' }]
  const setIdentifier = 'one'
  const given = { dnsName: 'k.example.com', recordType: 'A', setIdentifier, providerSpecific }
  world.cluster.put(dnsRecord({ spec: { endpoints: [{ ...given, targets: ['192.0.2.1'] }] } }))
  const theirs = { setIdentifier, weight: 10, targets: ['192.0.2.2'] }
  world.peers.say(EAST, 'east', [theirs], thisMoment(world.clock))
  await world.look()
  t.strictSame(world.served(), [['192.0.2.1']])
  t.match(world.conflicts[0], /k\.example\.com A: .*one/)
})

t.test('a record that is gone is forgotten', async (t) => {
  const world = new World()
  t.equal(await world.reconciler.reconcile('a/none'), undefined)
  t.strictSame(world.forgotten, ['a/none'])
  t.strictSame(world.cluster.takeWrites(), [])
})
