import t from 'tap'
import { recordId } from '../../../src/dnsrecord/record-source.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import { EAST, KEY, OperatorFixture } from '../reconcile/stage.ts'

const HOST = 'k.example.com'

class DrainFixture extends OperatorFixture {
  /** Replaces the record by one with these annotations, without the prefix. */
  annotate(texts: Readonly<Record<string, string>>, spec: ApiObject = {}): void {
    const named = Object.entries(texts).map(([key, text]) => [`sextant.io/${key}`, text])
    this.cluster.put(dnsRecord({ metadata: { annotations: Object.fromEntries(named) }, spec }))
  }

  /** The strings that `local-app` exports, except those that each endpoint has. */
  exported(): readonly string[] {
    const endpoints = this.field('local-app', 'spec', 'endpoints') as readonly ApiObject[]
    const [whole] = endpoints.filter(({ dnsName }) => dnsName === `v2.${HOST}.kdrnt`)
    return (whole!.targets as string[]).filter(
      (text) => !/^(v|site|host|name|type|ttl)=/.test(text),
    )
  }
}

const CREATED = Date.parse('2026-01-01T00:00:00Z') / 1000

t.test('an annotation drains the record of this cluster, for itself and for others', async (t) => {
  const fixture = new DrainFixture()
  const { clock } = fixture
  clock.nowMs = Date.parse('2026-11-24T17:00:00Z')
  fixture.say(EAST, 'east', ['192.0.2.2'])
  fixture.annotate({ sticky: '24 56' })
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  const ofRecord = [`created=${CREATED}`, `record=${recordId(KEY)}`, 'sticky=24 56']
  const target = 'target=192.0.2.1'
  const plain = ['health=unknown', `since=${CREATED}`, ...ofRecord, target]
  t.strictSame(fixture.exported(), plain)

  clock.nowMs += 60_000
  const untilMs = clock.nowMs + 200_500
  const until = new Date(untilMs).toISOString()
  fixture.annotate({ sticky: '24 56', drain: 'racks move', 'drain-until': until })
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.2']], 'as long as another site has endpoints')
  const since = `since=${clock.nowMs / 1000}`
  const drain = ['drain=racks move', `drain-until=${until}`]
  t.strictSame(fixture.exported(), ['health=down', since, ...ofRecord, ...drain, target])
  t.equal(await fixture.reconciler.reconcile(KEY), 200_501, 'it checks again at the end')

  fixture.start()
  clock.nowMs = untilMs - 1
  t.strictSame(await fixture.reconcile(), [], 'a restart writes nothing')
  clock.nowMs = untilMs
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  const ended = `since=${Math.floor(untilMs / 1000)}`
  t.strictSame(fixture.exported(), ['health=unknown', ended, ...ofRecord, target])
  t.equal(await fixture.reconciler.reconcile(KEY), 900_000)
})

t.test('a site that is alone serves its endpoints although they are drained', async (t) => {
  const fixture = new DrainFixture()
  fixture.annotate({ drain: '' })
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1']])
  t.match(fixture.exported(), ['health=down', /since/, /created/, /record/, 'drain=', /target/])
})

t.test('an export of an earlier version is replaced once', async (t) => {
  const fixture = new DrainFixture()
  fixture.annotate({ 'all-down': 'closed' })
  await fixture.reconcile()
  const local = structuredClone(fixture.cluster.stored('a/local-app')) as ApiObject & {
    spec: { endpoints: { targets: string[] }[] }
  }
  for (const one of local.spec.endpoints) {
    one.targets = one.targets.filter((text) => !/^(created|record|all-down)=/.test(text))
  }
  fixture.cluster.put(local)
  t.notOk(fixture.exported().includes('all-down=closed'))
  await fixture.reconcile()
  t.ok(fixture.exported().includes('all-down=closed'))
})

t.test('a failover list that is too long to be exported is reported', async (t) => {
  const fixture = new DrainFixture()
  const failover = Array.from({ length: 60 }, (_, i) => `AS${i + 1}: a, b, c`).join('\n')
  const endpoints = Array.from({ length: 900 }, (_, i) => {
    return { dnsName: `n${i}.${HOST}`, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }
  })
  fixture.annotate({ failover }, { endpoints })
  await fixture.reconcile()
  const [status, , message] = fixture.ready()
  t.equal(status, 'True')
  t.match(message, /its failover list is not exported to other sites: 900 endpoints/)
  t.notMatch(fixture.exported().join(), /failover/)
})
