import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { Cluster } from '../../../src/operator/cluster/cluster.ts'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'
import { OwnerIndex } from '../../../src/operator/delegation/owner-index.ts'
import { shortHash } from '../../../src/operator/record/short-hash.ts'
import { RemoteClusters } from '../../../src/operator/remotes/remote-clusters.ts'
import { ApiDouble, listBody, type Stream, turns } from '../../support/api-double.ts'
import { eventRecorder } from '../../support/event-recorder.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const CLUSTERS_MAX = 100
const MAX_MS = 60_000

function serverOf(index: number): string {
  return `https://c${index}.example:6443`
}

/** The Secret of a cluster. */
function clusterSecret(index: number, resourceVersion = '1'): ApiObject {
  const kubeconfig = JSON.stringify({
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: serverOf(index) } }],
    // Another version has another kubeconfig.
    users: [{ name: 'c', user: { token: resourceVersion } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
  })
  const { metadata, ...object } = secret('system', `c${index}`, { kubeconfig }, { type: 'Opaque' })
  return { ...object, metadata: { ...Object(metadata), uid: `uid${index}`, resourceVersion } }
}

/** This cluster, the Secrets in it, and the clusters that they lead to. */
class OperatorFixture {
  readonly api = new ApiDouble()
  readonly timers = new FakeTimers()
  readonly clock = new FakeClock()
  readonly clusters: RemoteClusters
  /** Of each connection its server, since it was looked at last. */
  readonly servers: string[] = []
  /** UIDs of the clusters, by server; of those that aren't there one of the server's own. */
  readonly uids = new Map<string, string>()
  /** Warnings of the log. */
  readonly warnings: string[] = []
  /** Clusters whose metrics were forgotten. */
  readonly forgotten: string[] = []
  /** `Date` of the responses of other clusters; undefined = they have none. */
  dateMs: number | undefined
  /** Holds connections until it is called; undefined = none is held. */
  release: (() => void) | undefined
  readonly #local: Cluster
  readonly #apis: { readonly api: ApiDouble; readonly server: string }[] = []
  readonly #secrets: readonly ApiObject[]
  #watch: Stream | undefined
  #held: Promise<void> = Promise.resolve()

  constructor(t: Test, secrets: readonly ApiObject[]) {
    const { api, timers, clock, warnings } = this
    const log = createLogger(
      '',
      (line) => {
        if (line.includes('WARNING')) warnings.push(line)
      },
      () => false,
    )
    const env = { api, log, clock, timers, random: new Random(1) }
    const local = { ...env, namespaces: [] }
    this.#local = new Cluster(local, eventRecorder(local))
    this.#secrets = secrets
    this.clusters = new RemoteClusters({
      local: this.#local,
      writer: { write: async () => {} },
      mutex: new KeyedMutex(),
      owners: new OwnerIndex(),
      resources: new ResourceRegistry(),
      site: 'here',
      bounds: { minMs: 5000, maxMs: MAX_MS },
      shares: [],
      settings: { secretNamespace: 'system', secretLabel: 'x', leaveMs: 60_000 },
      mayWrite: () => true,
      onCheck: () => {},
      connect: ({ server }) => this.#connect(server),
      metrics: {
        countRemoteReconcile() {},
        forgetRemote() {},
        forgetRemoteCluster: (name) => this.forgotten.push(name),
      },
    })
    t.teardown(async () => {
      this.release?.()
      await this.clusters.close()
      this.#local.close()
    })
  }

  /** Has the next connections wait. */
  hold(): void {
    this.#held = new Promise((resolve) => (this.release = resolve))
  }

  /** Requests that wait at other clusters. */
  get asked(): number {
    return this.#apis.reduce((sum, { api }) => sum + api.asked.length, 0)
  }

  event(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject): void {
    this.#watch?.event(type, object)
  }

  /** `name records`, and `-` where it is not followed. */
  get followed(): string[] {
    return this.clusters
      .statuses()
      .map(({ name, isFollowed, records }) => `${name} ${isFollowed ? records : '-'}`)
      .sort()
  }

  /** Lets all that is asked be answered, for some seconds. */
  async pass(seconds = 2): Promise<void> {
    for (let i = 0; i < seconds * 5; i++) {
      await turns()
      this.#answerHere()
      for (const { api, server } of this.#apis) this.#answerThere(api, server)
      await turns()
      await this.timers.advance(200)
    }
  }

  async #connect(server: string): Promise<ApiDouble> {
    this.servers.push(server)
    await this.#held
    const api = new ApiDouble()
    api.dateMs = this.dateMs
    this.#apis.push({ api, server })
    return api
  }

  #answerHere(): void {
    for (const asked of this.api.asked.splice(0)) {
      if (asked.isWatch) this.#watch = asked.stream()
      else if (asked.path.endsWith(KUBE_SYSTEM)) asked.reply(200, { metadata: { uid: 'own' } })
      else if (asked.path.endsWith('/secrets')) asked.reply(200, listBody('1', this.#secrets))
      else asked.reply(201, {})
    }
  }

  #answerThere(api: ApiDouble, server: string): void {
    for (const asked of api.asked.splice(0)) {
      const uid = this.uids.get(server) ?? `uid of ${server}`
      if (asked.isWatch) asked.stream()
      else if (uid === 'dead') asked.fail(new Error('socket hang up'))
      else if (asked.path.endsWith(KUBE_SYSTEM)) asked.reply(200, { metadata: { uid } })
      else asked.reply(200, listBody('1', [dnsRecord({ spec: { delegate: true } })]))
    }
  }
}

const KUBE_SYSTEM = '/namespaces/kube-system'

t.test('if there are too many clusters, each is followed once there is room', async (t) => {
  const indexes = Array.from({ length: CLUSTERS_MAX + 2 }, (_, i) => i)
  const fixture = new OperatorFixture(
    t,
    indexes.map((index) => clusterSecret(index)),
  )
  const { clusters, servers } = fixture
  clusters.start()
  await fixture.pass()
  const first = indexes.slice(0, CLUSTERS_MAX).map(serverOf)
  t.strictSame(servers.splice(0), first)
  t.match(clusters.note, new RegExp(`cluster c${CLUSTERS_MAX}: more than 100 clusters`))

  fixture.event('MODIFIED', clusterSecret(0, '2'))
  await fixture.pass()
  t.strictSame(servers.splice(0), [serverOf(0)], 'one that is followed keeps its place')

  fixture.event('DELETED', clusterSecret(1, '3'))
  await fixture.pass()
  t.strictSame(servers.splice(0), [serverOf(CLUSTERS_MAX)], 'the next one has the place of another')
  t.match(clusters.note, new RegExp(`cluster c${CLUSTERS_MAX + 1}: more than 100 clusters`))
})

t.test(
  'a cluster with another kubeconfig, or without one, was heard when it last answered',
  async (t) => {
    const fixture = new OperatorFixture(t, [clusterSecret(0)])
    const { clusters } = fixture
    const id = shortHash(`uid of ${serverOf(0)}`)
    t.equal(clusters.heardMsOf(id), Number.NEGATIVE_INFINITY)
    t.notOk(clusters.hasAll('a/other'), 'the Secrets were not listed')
    clusters.start()
    await fixture.pass(1)
    t.ok(clusters.hasAll('a/other'), 'its records were read')
    const heardMs = clusters.heardMsOf(id)
    t.not(heardMs, Number.NEGATIVE_INFINITY, 'heard before its records are served')
    fixture.hold()
    fixture.event('MODIFIED', clusterSecret(0, '2'))
    await fixture.pass()
    t.equal(clusters.heardMsOf(id), heardMs, 'another kubeconfig')
    t.notOk(clusters.hasAll('a/other'), 'its records were not read with this one')
    fixture.event('DELETED', clusterSecret(0, '3'))
    await fixture.pass()
    t.equal(clusters.heardMsOf(id), heardMs, 'no Secret')
  },
)

t.test('failover lists do not wait for clusters that contribute nothing', async (t) => {
  const { data: _, ...broken } = clusterSecret(1)
  for (const { name, others, uids, isWaiting } of [
    { name: 'a broken Secret', others: [broken], uids: [], isWaiting: false },
    { name: 'a second Secret', others: [clusterSecret(1)], uids: ['0'], isWaiting: false },
    { name: 'the own cluster', others: [clusterSecret(1)], uids: ['own'], isWaiting: false },
    { name: 'a dead cluster', others: [clusterSecret(1)], uids: ['dead'], isWaiting: true },
  ]) {
    const fixture = new OperatorFixture(t, [clusterSecret(0), ...others])
    const { clusters, clock } = fixture
    fixture.uids.set(serverOf(0), '0')
    for (const uid of uids) fixture.uids.set(serverOf(1), uid)
    clusters.start()
    await fixture.pass(3)
    t.equal(clusters.hasAll('a/other'), !isWaiting, name)
    clock.pass(MAX_MS - 1)
    t.equal(clusters.hasAll('a/other'), !isWaiting, name)
    clock.pass(1)
    t.ok(clusters.hasAll('a/other'), `${name}, after --max-requeue-time`)
  }
})

t.test('failover lists do not wait for Secrets that cannot be listed', async (t) => {
  const { clusters, clock } = new OperatorFixture(t, [])
  clusters.start()
  clock.pass(MAX_MS - 1)
  t.notOk(clusters.hasAll('a/other'))
  clock.pass(1)
  t.ok(clusters.hasAll('a/other'), 'after --max-requeue-time')
})

t.test('a cluster is followed while there is a Secret of it', async (t) => {
  const broken = (index: number) => {
    const { data: _, ...object } = clusterSecret(index, '7')
    return object
  }
  const relabelled = {
    ...clusterSecret(0),
    metadata: { ...Object(clusterSecret(0).metadata), resourceVersion: '9' },
  }
  const table: readonly {
    readonly name: string
    readonly given: readonly ApiObject[]
    readonly change: (fixture: OperatorFixture) => void
    readonly servers: readonly number[]
    readonly followed: readonly string[]
    readonly note: RegExp
    readonly forgotten: readonly string[]
  }[] = [
    {
      name: 'none',
      given: [],
      change: () => {},
      servers: [],
      followed: [],
      note: /^$/,
      forgotten: [],
    },
    {
      name: 'one that is there from the start',
      given: [clusterSecret(0)],
      change: () => {},
      servers: [],
      followed: ['c0 1'],
      note: /^$/,
      forgotten: [],
    },
    {
      name: 'one that comes',
      given: [],
      change: (fixture) => fixture.event('ADDED', clusterSecret(1, '2')),
      servers: [1],
      followed: ['c1 1'],
      note: /^$/,
      forgotten: [],
    },
    {
      name: 'one that goes',
      given: [clusterSecret(0), clusterSecret(1)],
      change: (fixture) => fixture.event('DELETED', clusterSecret(0, '3')),
      servers: [],
      followed: ['c1 1'],
      note: /^$/,
      forgotten: ['c0'],
    },
    {
      name: 'one with another kubeconfig',
      given: [clusterSecret(0)],
      change: (fixture) => fixture.event('MODIFIED', clusterSecret(0, '2')),
      servers: [0],
      followed: ['c0 1'],
      note: /^$/,
      forgotten: ['c0'],
    },
    {
      name: 'one of which something else is another',
      given: [clusterSecret(0)],
      change: (fixture) => fixture.event('MODIFIED', relabelled),
      servers: [],
      followed: ['c0 1'],
      note: /^$/,
      forgotten: [],
    },
    {
      name: 'one that loses its kubeconfig, beside another',
      given: [clusterSecret(0), clusterSecret(1)],
      change: (fixture) => fixture.event('MODIFIED', broken(0)),
      servers: [],
      followed: ['c0 -', 'c1 1'],
      note: /^cluster c0: its kubeconfig /,
      forgotten: ['c0'],
    },
    {
      name: 'one that had none and gets one',
      given: [broken(0)],
      change: (fixture) => fixture.event('MODIFIED', clusterSecret(0, '8')),
      servers: [0],
      followed: ['c0 1'],
      note: /^$/,
      forgotten: ['c0'],
    },
  ]
  for (const { name, given, change, servers, followed, note, forgotten } of table) {
    const fixture = new OperatorFixture(t, given)
    fixture.clusters.start()
    await fixture.pass()
    fixture.servers.splice(0)
    fixture.forgotten.splice(0)
    change(fixture)
    await fixture.pass()
    t.strictSame(fixture.servers, servers.map(serverOf), `${name}: who is connected to`)
    t.strictSame(fixture.followed, followed, name)
    t.match(fixture.clusters.note, note, `${name}: what is said`)
    t.strictSame(fixture.forgotten, forgotten, `${name}: metrics that go`)
  }
})

t.test(
  'one of two Secrets of a cluster is used, and the other one when the first is gone',
  async (t) => {
    const fixture = new OperatorFixture(t, [clusterSecret(0), clusterSecret(1), clusterSecret(2)])
    fixture.uids.set(serverOf(1), 'twice').set(serverOf(0), 'twice')
    fixture.clusters.start()
    await fixture.pass()
    const isSecond = /^cluster c1: Secret c0 has a kubeconfig of the same cluster$/
    t.match(fixture.clusters.note, isSecond)
    t.strictSame(fixture.followed, ['c0 1', 'c1 -', 'c2 1'])
    fixture.event('MODIFIED', clusterSecret(0, '2'))
    await fixture.pass(60)
    t.match(fixture.clusters.note, isSecond, 'also when the kubeconfig of that is another')
    fixture.event('DELETED', clusterSecret(0, '3'))
    await fixture.pass(60)
    t.equal(fixture.clusters.note, '')
    t.strictSame(fixture.followed, ['c1 1', 'c2 1'])
  },
)

t.test('a Secret of this cluster itself is refused, and mended at once', async (t) => {
  const fixture = new OperatorFixture(t, [clusterSecret(0)])
  fixture.uids.set(serverOf(0), 'own')
  fixture.clusters.start()
  await fixture.pass()
  t.equal(fixture.clusters.note, 'cluster c0: the kubeconfig leads to this cluster itself')
  t.strictSame(fixture.followed, ['c0 -'])
  fixture.uids.delete(serverOf(0))
  fixture.event('MODIFIED', clusterSecret(0, '2'))
  await fixture.pass()
  t.equal(fixture.clusters.note, '')
  t.strictSame(fixture.followed, ['c0 1'])
})

t.test('a kubeconfig of another cluster ends what is known of the one before', async (t) => {
  const fixture = new OperatorFixture(t, [clusterSecret(0)])
  const { clusters, uids } = fixture
  fixture.dateMs = 0
  const [one, other] = ['one', 'other'].map(shortHash) as [string, string]
  uids.set(serverOf(0), 'one')
  clusters.start()
  await fixture.pass()
  t.ok(clusters.isKnown(one))
  await fixture.pass()
  t.match(clusters.note, /^cluster c0: the clock of the API server is behind ours/)
  t.strictSame(fixture.followed, ['c0 1'], 'a wrong clock does not end it')
  uids.set(serverOf(0), 'other')
  fixture.event('MODIFIED', clusterSecret(0, '2'))
  await fixture.pass()
  t.notOk(clusters.isKnown(one))
  t.ok(clusters.isKnown(other))
  fixture.event('DELETED', clusterSecret(0, '3'))
  await fixture.pass()
  t.notOk(clusters.isKnown(other))
  t.not(clusters.heardMsOf(one), Number.NEGATIVE_INFINITY, 'it was heard before')
})

t.test('a connection that comes too late is not used', async (t) => {
  const table: readonly {
    readonly name: string
    readonly change: (fixture: OperatorFixture) => void | Promise<void>
    readonly servers: readonly number[]
    readonly followed: readonly string[]
  }[] = [
    {
      name: 'all is closed',
      change: (fixture) => fixture.clusters.close(),
      servers: [0],
      followed: [],
    },
    {
      name: 'its Secret is gone',
      change: (fixture) => fixture.event('DELETED', clusterSecret(0, '3')),
      servers: [0],
      followed: [],
    },
    {
      name: 'its Secret is another',
      change: (fixture) => fixture.event('MODIFIED', clusterSecret(0, '2')),
      servers: [0, 0],
      followed: ['c0 1'],
    },
  ]
  for (const { name, change, servers, followed } of table) {
    const fixture = new OperatorFixture(t, [clusterSecret(0)])
    fixture.hold()
    fixture.clusters.start()
    await fixture.pass()
    t.strictSame(fixture.followed, ['c0 -'], `${name}: not yet`)
    await change(fixture)
    await fixture.pass()
    t.strictSame(fixture.servers, servers.map(serverOf), name)
    fixture.release?.()
    await turns()
    t.equal(fixture.asked, followed.length, `${name}: nothing is asked by the one that is late`)
    await fixture.pass()
    t.strictSame(fixture.followed, followed, name)
  }
})
