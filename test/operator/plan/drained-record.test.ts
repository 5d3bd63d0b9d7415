import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { recordId } from '../../../src/records/record-source.ts'
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

t.test('v1 peers get what is in service, unless nothing is', async (t) => {
  const [ONE, TWO, THREE] = ['192.0.2.1', '192.0.2.2', '192.0.2.3'] as const
  const drain = { 'sextant.io/drain': '' }
  const until = { ...drain, 'sextant.io/drain-until': '2026-11-24T18:00:00Z' }
  const a = (...targets: readonly string[]): ApiObject => ({
    endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets }],
  })
  for (const { name, first = {}, second = {}, down = [[], []], want } of [
    { name: 'all is in service', want: [[ONE, TWO], [THREE]] },
    { name: 'one address is down', down: [[ONE], []], want: [[TWO], [THREE]] },
    { name: 'the first is drained', first: drain, want: [[], [THREE]] },
    { name: 'its addresses are down', down: [[ONE, TWO], []], want: [[], [THREE]] },
    { name: 'both are drained', first: drain, second: drain, want: [[ONE, TWO], [THREE]] },
    {
      name: 'one is drained, the other down',
      first: drain,
      down: [[], [THREE]],
      want: [[ONE, TWO], [THREE]],
    },
    {
      name: 'the drain of the other ends',
      first: drain,
      second: until,
      want: [[ONE, TWO], [THREE]],
    },
  ] as readonly V1Case[]) {
    const fixture = new OperatorFixture()
    fixture.clock.nowMs = Date.parse('2026-11-24T17:59:00Z')
    fixture.cluster.put(dnsRecord({ metadata: { annotations: first }, spec: a(ONE, TWO) }))
    fixture.cluster.put(dnsRecord({ name: 'b', metadata: { annotations: second }, spec: a(THREE) }))
    for (const [i, key] of ['a/app', 'a/b'].entries()) {
      fixture.cluster.health.set(key, { down: down[i]!, up: [], probes: [] })
    }
    const exportedV1 = async (): Promise<readonly string[][]> => {
      await fixture.reconcile('a/app')
      await fixture.reconcile('a/b')
      return ['local-app', 'local-b'].map((local) => {
        const endpoints = fixture.field(local, 'spec', 'endpoints') as readonly ApiObject[]
        return endpoints.flatMap((one) => (one.recordType === 'A' ? (one.targets as string[]) : []))
      })
    }
    t.strictSame(await exportedV1(), want, name)
    if (second !== until) continue
    const [againMs] = [await fixture.reconciler.reconcile(KEY)]
    t.equal(againMs, 60_001, `${name}: it is checked again`)
    fixture.clock.pass(60_001)
    t.strictSame(await exportedV1(), [[], [THREE]], `${name}: it is over`)
  }
})

interface V1Case {
  readonly name: string
  readonly first?: ApiObject
  readonly second?: ApiObject
  /** Of both records. */
  readonly down?: readonly string[][]
  readonly want: readonly string[][]
}
