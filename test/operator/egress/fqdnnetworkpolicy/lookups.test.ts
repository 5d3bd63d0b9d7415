import t from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import { Rcode } from '../../../../src/dns/iana/index.ts'
import { scanName } from '../../../../src/dns/name/name.ts'
import { Lookups } from '../../../../src/operator/egress/fqdnnetworkpolicy/lookups.ts'
import { FqdnMetrics } from '../../../../src/operator/egress/fqdnnetworkpolicy/metrics.ts'
import { addressRecord, replyTo, ScriptedServer } from '../../../support/scripted-server.ts'
import { FakeClock } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

const NAME = scanName('www.example.com.')!
const NO_TIMES = new Map<string, number>()

// A policy that was deleted and made again while its name was being resolved counted the first reply
// although it was dropped: then all servers failed, and the policy lost what it had allowed.
t.test('a reply to a lookup of an earlier policy does not settle the name', async (t) => {
  const server = await ScriptedServer.openRaw(t, () => {})
  const failures: string[] = []
  const lookups = new Lookups({
    servers: { list: () => [{ host: server.host, port: server.port }], reason: '' },
    settings: {
      dns: { overTcp: false, source: { kind: 'file', path: '' } },
      ipExpirationMs: 3_600_000,
      nextSyncMs: 30_000,
      minimumSyncMs: 1000,
      skipsAaaa: true,
      maxConcurrentReconciles: 1,
      clusterNetworks: [],
      allowedNetworks: [],
    },
    metrics: new FqdnMetrics(new MetricsRegistry()),
    onNews: () => {},
    onFailure: (_, name, reason) => failures.push(`${name} ${reason}`),
    clock: new FakeClock(),
    timers: systemTimers,
    random: new Random(1),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
  })
  t.teardown(() => lookups.close())
  lookups.hold('p', [NAME], false, NO_TIMES)
  await until(() => server.asked.length === 1, 'the first lookup')
  lookups.release('p')
  lookups.hold('p', [NAME], false, NO_TIMES)
  await until(() => server.asked.length === 2, 'the second lookup')
  const [first, second] = server.asked
  first!.send(replyTo(first!.query, { answer: [addressRecord(first!.query, '192.0.2.1')] }))
  // The reply has arrived when one to the same server that was sent later has.
  second!.send(replyTo(second!.query, { rcode: Rcode.SERVFAIL, answer: [] }))
  await until(() => failures.length === 1, 'its reply')
  await until(() => lookups.dueMsOf(NAME) !== undefined, 'the end of the lookup')
  t.strictSame(failures, ['www.example.com. SERVFAIL'])
  t.notOk(lookups.isSettled(NAME))
})
