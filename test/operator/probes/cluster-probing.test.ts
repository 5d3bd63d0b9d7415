import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import type { ProbeOutcome } from '../../../src/health/probes/probe.ts'
import { type ApiObject, textOf } from '../../../src/kube/api.ts'
import { Informer } from '../../../src/kube/informer.ts'
import { Objects } from '../../../src/kube/objects.ts'
import { trimObject } from '../../../src/operator/cluster/object-cache.ts'
import { ClusterProbing } from '../../../src/operator/probes/cluster-probing.ts'
import type { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { PROBES, RECORDS } from '../../../src/operator/record/resources.ts'
import { turns } from '../../support/api-double.ts'
import { MemoryApi } from '../../support/memory-api.ts'
import { at, dnsRecord, MANAGED } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const CHECK = { protocol: 'HTTP', port: 80, interval: '10s', failureThreshold: 1 }
const GOOD: ProbeOutcome = { kind: 'healthy', httpStatus: 200 }
const BAD: ProbeOutcome = { kind: 'unhealthy', httpStatus: 503, reason: 'status 503' }

/** A DNSHealthCheckProbe that a user made. */
function userProbe(name: string, metadata: ApiObject, status: ApiObject): ApiObject {
  const labels = { 'kuadrant.io/health-probes-owner': 'app' }
  return {
    metadata: { name, namespace: 'a', labels, ...metadata },
    spec: { address: '192.0.2.1', port: 80, protocol: 'HTTP', interval: '60s' },
    status,
  }
}

class Stage {
  readonly api = new MemoryApi()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  readonly events: string[] = []
  outcome: ProbeOutcome = GOOD
  isOurs = (_: DnsRecordView): boolean => true
  readonly #informers: Informer[] = []
  #probing: ClusterProbing | undefined

  async start(isDisabled = false): Promise<void> {
    const { api, clock, timers } = this
    const note = (text: string): number => this.lines.push(text)
    const log = { debug: () => {}, info: note, warning: note, error: note }
    const env = { api, log, clock, timers, random: new Random(1) }
    const open = (resource: typeof RECORDS): Informer => {
      const trim = trimObject
      const informer = new Informer({ ...env, resource, trim, labelSelector: '', namespaces: [] })
      this.#informers.push(informer)
      informer.start()
      return informer
    }
    const [records, probes] = [open(RECORDS), open(PROBES)]
    await Promise.all([records.synced(), probes.synced()])
    this.#probing = new ClusterProbing({
      objects: new Objects({ ...env, fieldManager: 'sextant-operator' }),
      records,
      probes,
      probe: isDisabled ? undefined : async () => this.outcome,
      isOurs: (record) => this.isOurs(record),
      allowsInsecureCertificates: true,
      mayWrite: () => true,
      events: {
        record: ({ name }, { type, reason, note }) =>
          this.events.push(`${type} ${reason} ${name}: ${note}`),
      },
      onResult: () => {},
      ...env,
    })
  }

  async pass(seconds: number): Promise<void> {
    for (let i = 0; i < seconds * 2; i++) {
      this.clock.pass(500)
      await this.timers.advance(500)
      await turns()
    }
  }

  async close(): Promise<void> {
    await this.#probing?.close()
    for (const informer of this.#informers.splice(0)) informer.close()
  }

  /** Name and `status.healthy` of each probe. */
  get probes(): readonly (readonly [string, unknown])[] {
    return [...this.api.all(PROBES).values()].map((probe) => {
      return [textOf(probe.metadata, 'name'), at(probe, 'status', 'healthy')] as const
    })
  }
}

function stage(t: Test): Stage {
  const made = new Stage()
  t.teardown(() => made.close())
  return made
}

t.test('results are written, and removed when probing is disabled', async (t) => {
  const fixture = stage(t)
  fixture.api.put(RECORDS, dnsRecord({ spec: { healthCheck: CHECK } }))
  fixture.outcome = BAD
  await fixture.start()
  await fixture.pass(30)
  t.strictSame(fixture.probes, [['app-192.0.2.1', false]])
  await fixture.close()
  fixture.api.put(PROBES, userProbe('ours', MANAGED, { healthy: false }))
  fixture.api.put(PROBES, userProbe('theirs', {}, { healthy: false }))
  await fixture.start(true)
  await fixture.pass(5)
  t.strictSame(fixture.probes, [
    ['ours', undefined],
    ['theirs', false],
  ])
  const { length } = fixture.api.writes
  await fixture.pass(60)
  t.equal(fixture.api.writes.length, length, 'nothing more is written')
})

t.test('probes of records of other operators are kept', async (t) => {
  const fixture = stage(t)
  fixture.isOurs = () => false
  const reference = { kind: 'DNSRecord', name: 'app', uid: 'uid-of-app', controller: true }
  fixture.api.put(RECORDS, dnsRecord({ spec: { healthCheck: CHECK } }))
  const ownerReferences = [reference]
  fixture.api.put(PROBES, userProbe('theirs', { ownerReferences }, { healthy: false }))
  fixture.api.put(PROBES, userProbe('ours', { ownerReferences, ...MANAGED }, { healthy: false }))
  await fixture.start(true)
  await fixture.pass(5)
  t.strictSame(fixture.probes, [['theirs', false]], 'the record became invalid')
})

t.test('an address that goes down, up and unknown is reported once each', async (t) => {
  const fixture = stage(t)
  fixture.api.put(RECORDS, dnsRecord({ spec: { healthCheck: CHECK } }))
  await fixture.start()
  await fixture.pass(15)
  t.strictSame(fixture.events, [], 'a new address that is up')
  for (const { outcome, event, line } of [
    {
      outcome: BAD,
      event: 'Warning AddressDown app: 192.0.2.1 is down after 2 failures: status 503',
      line: '192.0.2.1 of a/app is down after 2 failures: status 503',
    },
    {
      outcome: GOOD,
      event: 'Normal AddressUp app: 192.0.2.1 is up',
      line: '192.0.2.1 of a/app is up',
    },
    {
      outcome: { kind: 'skipped', reason: 'its host name cannot be resolved: ESERVFAIL' } as const,
      event:
        'Warning AddressUnknown app: 192.0.2.1 is served, its health is unknown: its host name cannot be resolved: ESERVFAIL',
      line: '192.0.2.1 of a/app is served, its health is unknown: its host name cannot be resolved: ESERVFAIL',
    },
  ]) {
    fixture.outcome = outcome
    await fixture.pass(40)
    t.strictSame(fixture.events.splice(0), [event])
    t.ok(fixture.lines.splice(0).includes(line), line)
    await fixture.close()
    await fixture.start()
    await fixture.pass(30)
    t.strictSame(fixture.events.splice(0), [], 'a restart repeats nothing')
  }
})
