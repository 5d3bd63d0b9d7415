import t, { type Test } from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import type { ResourceRecord } from '../../../src/dns/message/message.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'
import { OperatorMetrics } from '../../../src/operator/metrics.ts'
import { PeerSet } from '../../../src/operator/peers/peer-set.ts'
import { Reconciler } from '../../../src/operator/reconcile/reconciler.ts'
import { Reporter } from '../../../src/operator/reconcile/reporter.ts'
import { LocalExporter } from '../../../src/peering/local-exporter.ts'
import { MergedSource } from '../../../src/peering/merged-source.ts'
import { PeerFollower } from '../../../src/peering/peer.ts'
import type { PeerEndpoint } from '../../../src/peering/peer-endpoint.ts'
import { HealthQuorum } from '../../../src/peering/quorum/health-quorum.ts'
import {
  composeObservation,
  type SiteObservation,
} from '../../../src/peering/quorum/observation-codec.ts'
import { QuorumMemory } from '../../../src/peering/quorum/quorum-memory.ts'
import { SiteWatch } from '../../../src/peering/site-watch.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import type { StoredRecord } from '../../../src/records/record-source.ts'
import { dnsRecord as recordOf, stored } from '../../peering/records.ts'
import { ExportedZone, peerRecord } from '../../support/exported-zone.ts'
import { peerHealthOf, ToyCluster } from '../../support/operator-cluster.ts'
import { at, dnsRecord, secret } from '../../support/operator-objects.ts'
import { endpoint, type PeerText } from '../../support/peer-text.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { answerOf, ScriptedServer } from '../../support/scripted-server.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { TestHealth } from '../../support/test-health.ts'

// Long: each row is more than a minute of a site.

const HOST = 'k.example.com'
const [OURS, EAST, WEST] = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
const SITE = 'here'
const KEY = 'a/app'
const RETENTION_MS = 24 * 3_600_000

/** A site that reads peers. */
interface Reader {
  /** Processes what peers report now. */
  settle(): Promise<void>
  /** Addresses that clients get. */
  served(): readonly string[]
  /** True if the ages of records of sites decide nothing. */
  isUndated(): boolean
  /** What an administrator sees, one line each. */
  reasons(): readonly string[]
}

interface Peers {
  readonly clock: FakeClock
  readonly timers: FakeTimers
  readonly servers: readonly ScriptedServer[]
  readonly lines: string[]
  readonly log: ReturnType<typeof recordLog>['log']
  follow(port: number): PeerFollower
}

/** A plain server. */
async function openPlain(t: Test, { clock, timers, servers, lines, log, follow }: Peers) {
  const record = stored(
    recordOf({
      rootHost: HOST,
      endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: [OURS] }],
    }),
  )
  const health = new TestHealth()
  health.put(record.key, [], [OURS])
  const own = {
    records: () => [record],
    find: (key: string) => (key === record.key ? record : undefined),
    recordCount: 1,
    problems: () => [],
    unreadyReason: () => '',
    subscribe: () => () => {},
  }
  const peers = servers.map(({ port }) => follow(port))
  const about = { site: SITE, peers, clock, timers, log }
  const observer = { watch: () => {}, close: () => {} }
  const memory = new QuorumMemory(clock)
  const quorum = new HealthQuorum({ ...about, quorum: 0, holdDownMs: 0, memory, observer })
  const exporter = new LocalExporter(SITE, clock)
  const merging = { allows: () => true, expiryMs: RETENTION_MS, exporter, quorum }
  const source = new MergedSource({ ...about, own, health, ...merging })
  const watching = { own: source, isWhole: () => false, expiryMs: RETENTION_MS }
  const watch = new SiteWatch({ ...about, ...watching })
  for (const peer of peers) peer.start()
  t.teardown(() => {
    for (const one of [source, watch, ...peers]) one.close()
  })
  const servedOf = ({ key, packed }: StoredRecord): string[] => {
    const down = source.found.flatMap((found) => found.healthOf(key).down)
    const targets = unpackRecord(packed).endpoints.flatMap((e) => e.rdata.map((r) => r.join('.')))
    return targets.filter((one) => !down.includes(one))
  }
  const reader: Reader = {
    settle: async () => {
      await Promise.all(peers.map((peer) => peer.settled()))
      await source.ready()
    },
    served: () => [...source.records()].flatMap(servedOf),
    isUndated: () => [...source.records()].some(({ origin }) => origin?.isUndated === true),
    reasons: () => [...lines, watch.note()],
  }
  return reader
}

/** An operator. */
async function openOperator(t: Test, { clock, timers, servers, lines, log, follow }: Peers) {
  const cluster = new ToyCluster()
  const nameservers = servers.map(({ port }) => `127.0.0.1:${port}`)
  cluster.put(secret('a', 'coredns', { ZONES: HOST, NAMESERVERS: nameservers.join() }))
  cluster.put(dnsRecord())
  cluster.health.set(KEY, { down: [], up: [OURS], probes: [] })
  const followers: PeerFollower[] = []
  const peers = new PeerSet({
    follow: ({ port }) => {
      const follower = follow(port)
      followers.push(follower)
      return follower
    },
    onEvent: () => {},
    expiryMs: RETENTION_MS,
    ...{ clock, timers },
  })
  const reconciler = new Reconciler({
    ...{ view: cluster, writer: cluster, peers, clock, site: SITE, silentMs: RETENTION_MS },
    listener: new Reporter({ record: () => {} }, new OperatorMetrics(new MetricsRegistry()), log),
    bounds: { minMs: 5000, maxMs: 900_000 },
    peerHealth: peerHealthOf(SITE, clock, { log }),
    peersForm: () => 'whole',
    role: 'primary',
    isProbing: true,
    hasCounts: () => true,
    removalTimeoutMs: RETENTION_MS,
    mutex: new KeyedMutex(),
    owners: { rivalOf: () => '', isPresent: () => true },
  })
  t.teardown(() => peers.close())
  await reconciler.reconcile(KEY)
  const listOf = (value: unknown): readonly ApiObject[] => (value ?? []) as readonly ApiObject[]
  const reader: Reader = {
    settle: async () => {
      await Promise.all(followers.map((follower) => follower.settled()))
      await reconciler.reconcile(KEY)
    },
    served: () => {
      const endpoints = listOf(at(cluster.stored('a/merged-app'), 'spec', 'endpoints'))
      return endpoints.flatMap(({ targets }) => targets as readonly string[])
    },
    isUndated: () => {
      const { metadata } = cluster.stored('a/merged-app')!
      return JSON.stringify(metadata).includes('undated')
    },
    reasons: () => {
      const conditions = listOf(at(cluster.stored(KEY), 'status', 'conditions'))
      const printed = conditions.map((one) => `${one.type} ${one.status}: ${one.message}`)
      return [...lines, ...printed]
    },
  }
  return reader
}

/** An endpoint in the zone of a peer. */
function exported(site: string, address: string, more: Partial<PeerText> = {}): ResourceRecord {
  return peerRecord(endpoint({ site, rootHost: HOST, dnsName: HOST, targets: [address], ...more }))
}

function observation(site: string, address: string, health: string, sinceSeconds: number) {
  const observed = { site, address, health, sinceSeconds } as SiteObservation
  const owner = scanName(`o2.${HOST}.kdrnt.`)!
  return { ...exported(site, address), owner, rdata: composeObservation(observed)! }
}

interface Row {
  readonly name: string
  /** What the peers export, in order of the peers. `nowSeconds`: the time at the start. */
  readonly zones: (nowSeconds: number) => readonly (readonly ResourceRecord[])[]
  /** What the first peer exports after that. */
  readonly next?: readonly ResourceRecord[]
  /** The last peer stops after that, and makes the records undated before. */
  readonly dies?: true
  /** By how much the clocks of the peers are ahead; missing = they agree with ours. */
  readonly aheadSeconds?: readonly number[]
  /** Ages of records decide nothing. */
  readonly isUndated?: true
  readonly served: readonly string[]
  readonly reason: RegExp
}

const good = exported('east', EAST)

const ROWS: readonly Row[] = [
  {
    name: 'a peer has the name of this site',
    zones: () => [[exported(SITE, EAST)]],
    served: [OURS],
    reason: /reports other endpoints under the name of this site, here: give each site a name/,
  },
  {
    name: 'a peer has the name of this site, and another clock',
    zones: () => [[exported(SITE, WEST)], [good]],
    aheadSeconds: [-3600, 0],
    served: [OURS, EAST],
    reason: /reports other endpoints under the name of this site, here: give each site a name/,
  },
  {
    name: 'another nameserver of this site has another clock',
    zones: () => [[exported(SITE, OURS)], [good]],
    aheadSeconds: [-3600, 0],
    isUndated: true,
    served: [OURS, EAST],
    reason: /./,
  },
  {
    name: 'two peers have one name',
    zones: () => [[good], [exported('east', WEST, { setIdentifier: 'w' })]],
    served: [OURS, EAST, WEST],
    reason: /peers \S+ and \S+ report different endpoints under the name of one site, east: give/,
  },
  {
    // As of two nameservers of one site, the version of an endpoint that changed last counts.
    name: 'two peers have one name and equal endpoints',
    zones: () => [[good], [exported('east', WEST, { sinceSeconds: 5 })]],
    served: [OURS, WEST],
    reason: /peers \S+ and \S+ report different endpoints under the name of one site, east: give/,
  },
  {
    name: 'a peer changes its name',
    zones: () => [[good]],
    next: [exported('west', EAST)],
    served: [OURS, EAST],
    reason: /its site was east and is now west: endpoints of east are removed/,
  },
  {
    name: 'a peer uses the name of another site beside its own',
    zones: () => [[good, exported('west', WEST)]],
    served: [OURS, EAST, WEST],
    reason: /reports endpoints of several sites, east, west: it counts as a relay, so its health/,
  },
  {
    name: 'the clock of a peer is behind',
    zones: () => [[good]],
    aheadSeconds: [-3600],
    isUndated: true,
    served: [OURS, EAST],
    reason: /the clock of site east is behind ours: synchronise the clocks/,
  },
  {
    name: 'the clock of a peer is ahead of ours',
    zones: () => [[good]],
    aheadSeconds: [60],
    isUndated: true,
    served: [OURS, EAST],
    reason: /the clock of site east is ahead of ours: synchronise the clocks/,
  },
  {
    name: 'a nameserver with another clock dies, and another one of its site is heard',
    zones: () => [[good], [good]],
    aheadSeconds: [0, -3600],
    dies: true,
    served: [OURS, EAST],
    reason:
      /clock of peer \S+ of site east does not count: it is silent|1 of 2 nameservers is silent/,
  },
  {
    name: 'a site with another clock dies',
    zones: () => [[good]],
    aheadSeconds: [-3600],
    dies: true,
    isUndated: true,
    served: [OURS, EAST],
    reason: /the clock of site east is behind ours: synchronise the clocks/,
  },
  {
    name: 'a peer dates its changes in our future',
    zones: (now) => [[exported('east', EAST, { sinceSeconds: now + 3600 })]],
    served: [OURS, EAST],
    reason: /site east dates changes in our future: its clock is ahead, or ours is behind/,
  },
  {
    name: 'a record of a peer is from the future',
    zones: (now) => [[exported('east', EAST, { createdSeconds: now + 200_000 })]],
    served: [OURS, EAST],
    reason: /created "\d+" is ignored: is more than a day after the time of this server/,
  },
  {
    name: 'a peer reports our address down',
    zones: (now) => [[good, observation('east', OURS, 'down', now)]],
    served: [OURS, EAST],
    reason:
      /sites disagree about (health: )?192\.0\.2\.1.*down|192\.0\.2\.1: up at this site, down/,
  },
  {
    name: 'a peer has our address and reports it down',
    zones: () => [[good, exported('east', OURS, { health: 'down', setIdentifier: 'x' })]],
    served: [OURS, EAST],
    reason:
      /sites disagree about (health: )?192\.0\.2\.1.*down|192\.0\.2\.1: up at this site, down/,
  },
  {
    name: 'a peer has the address of another site and reports it down',
    zones: () => [
      [exported('east', EAST, { health: 'unknown' })],
      [exported('west', WEST), exported('west', EAST, { health: 'down', setIdentifier: 'x' })],
    ],
    served: [OURS, EAST, WEST],
    reason:
      /sites disagree about (health: )?192\.0\.2\.2.*down|192\.0\.2\.2: not known at east, down at west/,
  },
  {
    name: 'a peer reports health under the name of another site',
    zones: (now) => [[good, observation('west', OURS, 'down', now)]],
    served: [OURS, EAST],
    reason: /reports endpoints of several sites, east, west: it counts as a relay, so its health/,
  },
  {
    name: 'an endpoint with health of unknown form',
    zones: () => [[exported('east', EAST, { health: 'sick' as PeerEndpoint['health'] })]],
    served: [OURS, EAST],
    reason: /site east: health "sick" is ignored: must be up, down or unknown/,
  },
  {
    name: 'a health report of unknown form',
    zones: (now) => [[good, observation('east', EAST, 'sick', now)]],
    served: [OURS, EAST],
    reason: /1 health reports of unknown form are ignored/,
  },
]

for (const [kind, open] of [
  ['plain server', openPlain],
  ['operator', openOperator],
] as const) {
  for (const { name, zones, next, aheadSeconds = [], isUndated = false, ...want } of ROWS) {
    t.test(`${kind}: ${name}`, async (t) => {
      const clock = new FakeClock()
      const timers = new FakeTimers()
      const { lines, log } = recordLog()
      const said = zones(Math.floor(clock.now() / 1000)).map((one) => new ExportedZone(1, one))
      const answers = said.map(({ script }, i) => {
        return answerOf(script, () => clock.now() / 1000 + (aheadSeconds[i] ?? 0))
      })
      const servers = await Promise.all(answers.map((one) => ScriptedServer.openRaw(t, one)))
      const follow = (port: number): PeerFollower => {
        const peer = { host: '127.0.0.1', port }
        const follower = new PeerFollower({ peer, clock, timers, log, random: () => 0 })
        t.teardown(() => follower.close())
        return follower
      }
      const reader = await open(t, { clock, timers, servers, lines, log, follow })
      const pass = async (seconds: number): Promise<void> => {
        for (let i = 0; i < seconds; i++) {
          clock.pass(1000)
          await timers.advance(1000)
          await reader.settle()
        }
      }
      await pass(2)
      if (want.dies) {
        t.ok(reader.isUndated(), 'while the nameserver is heard')
        await servers.at(-1)!.stop()
      }
      if (next !== undefined) said[0]!.put(2, next)
      await pass(75)
      t.strictSame([...new Set(reader.served())].sort(), want.served, 'nothing of it decides')
      t.equal(reader.isUndated(), isUndated, 'whether ages decide')
      const found = reader.reasons()
      t.ok(
        found.some((line) => want.reason.test(line)),
        `${want.reason}\n${found.join('\n')}`,
      )
    })
  }
}
