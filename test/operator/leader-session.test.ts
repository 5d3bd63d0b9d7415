import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import type { Span } from '../../src/base/telemetry/spans/span.ts'
import { WorkSpans } from '../../src/base/telemetry/spans/work-spans.ts'
import type { ApiClock } from '../../src/operator/cluster/clock-check.ts'
import { Cluster } from '../../src/operator/cluster/cluster.ts'
import { LeaderSession } from '../../src/operator/leader-session.ts'
import { OperatorMetrics } from '../../src/operator/metrics.ts'
import { ApiDouble, listBody, turns } from '../support/api-double.ts'
import { eventRecorder } from '../support/event-recorder.ts'
import { dnsRecord, secret } from '../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

/** A session in a cluster with one record, and a provider with these nameservers. */
async function open(
  t: Test,
  nameservers: string,
  apiClock?: ApiClock,
  spans?: WorkSpans,
): Promise<LeaderSession> {
  const objects: Readonly<Record<string, readonly object[]>> = {
    dnsrecords: [dnsRecord()],
    secrets: [secret('a', 'coredns', { NAMESERVERS: nameservers, ZONES: 'k.example.com' })],
  }
  const api = new ApiDouble()
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const [clock, timers, random] = [new FakeClock(), new FakeTimers(), new Random(1)]
  const env = { api, apiClock, log, clock, timers, random, namespaces: [] }
  const cluster = new Cluster(env, eventRecorder(env))
  t.teardown(() => cluster.close())
  cluster.start()
  const synced = cluster.synced()
  await turns()
  for (const asked of api.asked.splice(0)) {
    const kind = asked.path.split('/').at(-1) ?? ''
    asked.reply(200, listBody('1', objects[kind] ?? []))
  }
  await synced
  return new LeaderSession({
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
    spans,
  })
}

t.test('an ended leader session follows no peer, whatever reconcile was running', async (t) => {
  const term = await open(t, '127.0.0.1:9')
  t.equal(term.queue.runningCount, 1)
  await term.close()
  await turns()
  t.strictSame(term.peers.statuses(), [])
})

t.test('all records are reconciled when the clock of the API server changes', async (t) => {
  const listeners = new Set<() => void>()
  const onFault = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const term = await open(t, '', { fault: '', onFault })
  await turns()
  const { counts } = term.queue
  const before = counts.runs
  t.ok(before > 0)
  for (const listener of listeners) listener()
  await turns()
  t.equal(counts.runs, before + 1)
  await term.close()
  t.equal(listeners.size, 0)
})

t.test('each reconcile has a span', async (t) => {
  const spans: Span[] = []
  const recorder = new WorkSpans(new FakeClock(), (span) => spans.push(span))
  const term = await open(t, '127.0.0.1:9', undefined, recorder)
  await term.close()
  await turns()
  t.match(spans, [{ name: 'reconcile', kind: 'internal', attributes: { 'sextant/record': /./ } }])
})
