import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { Cluster } from '../../src/operator/cluster/cluster.ts'
import { LeaderSession } from '../../src/operator/leader-session.ts'
import { OperatorMetrics } from '../../src/operator/metrics.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { MetricsRegistry } from '../../src/telemetry/metrics.ts'
import { ApiDouble, listBody, turns } from '../support/api-double.ts'
import { eventRecorder } from '../support/event-recorder.ts'
import { dnsRecord, secret } from '../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

const OBJECTS: Readonly<Record<string, readonly object[]>> = {
  dnsrecords: [dnsRecord()],
  secrets: [secret('a', 'coredns', { NAMESERVERS: '127.0.0.1:9', ZONES: 'k.example.com' })],
}

t.test('an ended leader session follows no peer, whatever reconcile was running', async (t) => {
  const api = new ApiDouble()
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const timers = new FakeTimers()
  const means = { api, log, clock: new FakeClock(), timers, random: new Random(1), namespaces: [] }
  const cluster = new Cluster(means, eventRecorder(means))
  t.teardown(() => cluster.close())
  cluster.start()
  const synced = cluster.synced()
  await turns()
  for (const asked of api.asked.splice(0)) {
    const kind = asked.path.split('/').at(-1) ?? ''
    asked.reply(200, listBody('1', OBJECTS[kind] ?? []))
  }
  await synced
  const term = new LeaderSession({
    cluster,
    settings: {
      site: 'east',
      group: '',
      identity: 'one',
      role: 'secondary',
      shares: [],
      minMs: 5000,
      maxMs: 60_000,
      silentMs: 3_600_000,
      probesPeers: true,
      quorum: 0,
      holdDownMs: 0,
      removalTimeoutMs: 3_600_000,
      leaseNamespace: undefined,
      remotes: { secretNamespace: 'x', secretLabel: 'x', leaveMs: 60_000 },
    },
    site: 'east',
    metrics: new OperatorMetrics(new MetricsRegistry()),
    mayWrite: () => false,
  })
  t.equal(term.queue.runningCount, 1)
  await term.close()
  await turns()
  t.strictSame(term.peers.statuses(), [])
})
