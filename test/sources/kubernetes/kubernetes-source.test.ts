import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { RecordChange } from '../../../src/records/record-source.ts'
import { KubernetesSource } from '../../../src/sources/kubernetes/kubernetes-source.ts'
import {
  ApiDouble,
  type Asked,
  listBody,
  type Stream,
  statusBody,
  turns,
} from '../../support/api-double.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const WAIT_MS = 15_001

let version = 100

function record(name: string, address: string, metadata: object = {}): object {
  const host = `${name}.k.example.com`
  const labels = { 'kuadrant.io/coredns-zone-name': 'k.example.com' }
  return {
    metadata: { name, namespace: 'team', resourceVersion: `${++version}`, labels, ...metadata },
    spec: { rootHost: host, endpoints: [{ dnsName: host, recordType: 'A', targets: [address] }] },
  }
}

function probe(name: string, of: string, address: string, healthy?: boolean): object {
  const labels = { 'kuadrant.io/health-probes-owner': of }
  return {
    metadata: { name, namespace: 'team', resourceVersion: `${++version}`, labels },
    spec: { address },
    status: healthy === undefined ? {} : { healthy },
  }
}

class Stage {
  readonly api = new ApiDouble()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  readonly source: KubernetesSource
  isSynced = false
  /** `+key` new, `-key` gone, `~key` changed, a batch each. */
  readonly changes: string[] = []

  constructor(t: Test, namespaces: readonly string[] = []) {
    this.source = new KubernetesSource({
      api: this.api,
      namespaces,
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      clock: this.clock,
      timers: this.timers,
      random: new Random(1),
    })
    this.source.subscribe((changes) => this.changes.push(changes.map(printChange).join(' ')))
    void this.source.synced().then(() => {
      this.isSynced = true
      this.source.health.subscribe((keys) => {
        const records = [...keys].filter((key) => this.source.find(key) !== undefined)
        if (records.length > 0) this.changes.push(records.map((key) => `~${key}`).join(' '))
      })
    })
    void this.source.start()
    t.teardown(() => this.source.close())
  }

  /** The request that waits for that collection. */
  async asked(plural: string, namespace = ''): Promise<Asked> {
    await turns()
    const path = `/apis/kuadrant.io/v1alpha1${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}`
    const index = this.api.asked.findIndex((asked) => asked.path === path)
    const [found] = index === -1 ? [] : this.api.asked.splice(index, 1)
    if (found === undefined) throw new Error(`no request for ${path}`)
    return found
  }

  /** Answers both first lists; the streams of records and probes. */
  async synced(
    records: readonly object[],
    probes: readonly object[] = [],
  ): Promise<[Stream, Stream]> {
    ;(await this.asked('dnsrecords')).reply(200, listBody('50', records))
    ;(await this.asked('dnshealthcheckprobes')).reply(200, listBody('50', probes))
    return [
      (await this.asked('dnsrecords')).stream(),
      (await this.asked('dnshealthcheckprobes')).stream(),
    ]
  }

  async advance(milliseconds: number): Promise<void> {
    this.clock.monotonicMs += milliseconds
    await this.timers.advance(milliseconds)
    await turns()
  }

  async heard(): Promise<string[]> {
    await turns()
    await this.advance(10)
    return this.changes.splice(0)
  }

  #print(key: string): string {
    const { down } = this.source.health.healthOf(key)
    return `${key}${down.length > 0 ? `!${down}` : ''}`
  }

  get keys(): string {
    return [...this.source.records()]
      .map(({ key }) => this.#print(key))
      .sort()
      .join(' ')
  }
}

function printChange({ before, after }: RecordChange): string {
  if (before === undefined) return `+${after?.key}`
  return after === undefined ? `-${before.key}` : `~${after.key}`
}

t.test('complete once records and probes were listed; what is labelled is asked for', async (t) => {
  const stage = new Stage(t)
  const records = await stage.asked('dnsrecords')
  t.equal(records.query.get('labelSelector'), 'kuadrant.io/coredns-zone-name')
  records.reply(200, listBody('50', [record('a', '192.0.2.1'), record('b', '192.0.2.2')]))
  await turns()
  t.equal(stage.isSynced, false)
  t.equal(stage.source.unreadyReason(), 'records are not read yet')
  const probes = await stage.asked('dnshealthcheckprobes')
  t.equal(probes.query.get('labelSelector'), '')
  probes.reply(200, listBody('50', [probe('p', 'a', '192.0.2.1', false)]))
  await turns()
  t.equal(stage.isSynced, true)
  t.equal(stage.source.unreadyReason(), '')
  t.equal(stage.keys, 'team/a!192.0.2.1 team/b')
  const reason = 'DNSHealthCheckProbe team/p reports it as unhealthy'
  t.equal(stage.source.health.reasonOf('team/a', '192.0.2.1'), reason)
  t.strictSame(stage.changes, [], 'who reads records once they are there needs no changes')
})

t.test('changes are reported record by record, and only if there are any', async (t) => {
  const stage = new Stage(t)
  const [records, probes] = await stage.synced([record('a', '192.0.2.1')])
  records.event('MODIFIED', record('a', '192.0.2.1'))
  t.strictSame(await stage.heard(), [], 'a status, say')
  records.event('MODIFIED', record('a', '192.0.2.9'))
  records.event('ADDED', record('b', '192.0.2.2'))
  t.strictSame(await stage.heard(), ['~team/a +team/b'])
  records.event('DELETED', record('b', '192.0.2.2'))
  t.strictSame(await stage.heard(), ['-team/b'])
  records.event('MODIFIED', record('a', '192.0.2.9', { deletionTimestamp: '2026-01-01T00:00:00Z' }))
  t.strictSame(await stage.heard(), ['-team/a'], 'on its way out')
  records.event('ADDED', record('c', '192.0.2.3'))
  records.event('DELETED', record('c', '192.0.2.3'))
  t.strictSame(await stage.heard(), [], 'nothing is left of it')
  probes.event('ADDED', probe('p', 'nobody', '192.0.2.1', false))
  t.strictSame(await stage.heard(), [])
})

t.test('a list that is made anew takes away what is not in it, once it is complete', async (t) => {
  const stage = new Stage(t)
  const [records, probes] = await stage.synced(
    [record('a', '192.0.2.1'), record('b', '192.0.2.2')],
    [probe('p', 'a', '192.0.2.1', false)],
  )
  records.event('ERROR', statusBody(410, 'too old'))
  probes.event('ERROR', statusBody(410, 'too old'))
  await turns()
  await stage.advance(WAIT_MS)
  ;(await stage.asked('dnsrecords')).reply(200, listBody('60', [record('a', '192.0.2.1')], 'more'))
  t.strictSame(await stage.heard(), [])
  t.equal(stage.keys, 'team/a!192.0.2.1 team/b')
  ;(await stage.asked('dnsrecords')).reply(200, listBody('60', [record('c', '192.0.2.3')]))
  t.strictSame(await stage.heard(), ['+team/c', '-team/b'])
  ;(await stage.asked('dnshealthcheckprobes')).reply(200, listBody('60', []))
  t.strictSame(await stage.heard(), ['~team/a'])
  t.equal(stage.keys, 'team/a team/c')
})

t.test('a refused record keeps its last valid version, and is logged once', async (t) => {
  const stage = new Stage(t)
  const [records] = await stage.synced([record('a', '192.0.2.1'), record('b', 'nonsense')])
  t.equal(stage.keys, 'team/a')
  t.match(stage.lines, [
    /team\/b is refused: spec\.endpoints\[0\]\.targets\[0\]: .*nonsense/,
    /read 1 record, 1 refused from Kubernetes, in all namespaces/,
  ])
  records.event('MODIFIED', record('a', 'nonsense'))
  records.event('MODIFIED', record('a', 'nonsense'))
  t.strictSame(await stage.heard(), [])
  t.equal(stage.keys, 'team/a')
  t.equal(stage.source.refusedCount, 2)
  t.match(
    stage.source.problems().map((problem) => problem.print()),
    [/^team\/a is refused, its last valid version is served: /, /^team\/b is refused: /],
  )
  t.equal(stage.lines.length, 3)
  records.event('DELETED', record('b', 'nonsense'))
  records.event('MODIFIED', record('a', '192.0.2.4'))
  t.strictSame(await stage.heard(), ['~team/a'])
  t.equal(stage.source.refusedCount, 0)
})

t.test('a refused record goes with a list that lacks it', async (t) => {
  const stage = new Stage(t)
  const [records] = await stage.synced([record('b', 'nonsense')])
  records.event('ERROR', statusBody(410, 'too old'))
  await turns()
  await stage.advance(WAIT_MS)
  ;(await stage.asked('dnsrecords')).reply(200, listBody('60', []))
  await turns()
  t.equal(stage.source.refusedCount, 0)
})

t.test('without a right to probes it does without, and says so', async (t) => {
  const stage = new Stage(t)
  ;(await stage.asked('dnsrecords')).reply(200, listBody('50', [record('a', '192.0.2.1')]))
  ;(await stage.asked('dnshealthcheckprobes')).reply(403, statusBody(403, 'no way'))
  await turns()
  t.equal(stage.isSynced, true)
  t.equal(stage.source.unreadyReason(), '')
  t.match(stage.source.note(), /^dnshealthcheckprobes in all namespaces: 403 no way/)
  t.equal(stage.source.ageMs, 0)
})

t.test('probes that an outage keeps back are waited for', async (t) => {
  const table: readonly { name: string; fail: (asked: Asked) => void; want: RegExp }[] = [
    {
      name: 'no answer',
      fail: (asked) => asked.fail(new Error('connect ECONNREFUSED')),
      want: /^records are not read yet: dnshealthcheckprobes in all namespaces: connect ECONNREFUSED/,
    },
    {
      name: 'a server in trouble',
      fail: (asked) => asked.reply(503, statusBody(503, 'no leader')),
      want: /^records are not read yet: dnshealthcheckprobes in all namespaces: 503 no leader/,
    },
  ]
  for (const { name, fail, want } of table) {
    await t.test(name, async (t) => {
      const stage = new Stage(t)
      ;(await stage.asked('dnsrecords')).reply(200, listBody('50', [record('a', '192.0.2.1')]))
      fail(await stage.asked('dnshealthcheckprobes'))
      await turns()
      t.equal(stage.isSynced, false)
      t.match(stage.source.unreadyReason(), want)
      await stage.advance(WAIT_MS)
      const down = probe('p', 'a', '192.0.2.1', false)
      ;(await stage.asked('dnshealthcheckprobes')).reply(200, listBody('50', [down]))
      await turns()
      t.equal(stage.isSynced, true)
      t.equal(stage.keys, 'team/a!192.0.2.1')
    })
  }
})

t.test('namespaces are watched one by one, and all of them count', async (t) => {
  const stage = new Stage(t, ['team', 'other', 'team'])
  t.equal(stage.source.watches.length, 4)
  for (const namespace of ['team', 'other']) {
    ;(await stage.asked('dnshealthcheckprobes', namespace)).reply(200, listBody('50', []))
  }
  ;(await stage.asked('dnsrecords', 'team')).reply(200, listBody('50', [record('a', '192.0.2.1')]))
  ;(await stage.asked('dnsrecords', 'other')).reply(403, statusBody(403, 'no way'))
  await turns()
  t.equal(stage.isSynced, false)
  t.match(
    stage.source.unreadyReason(),
    /^records are not read yet: dnsrecords in namespace other: 403 no way/,
  )
  await stage.advance(WAIT_MS)
  ;(await stage.asked('dnsrecords', 'other')).reply(200, listBody('50', []))
  await turns()
  t.equal(stage.isSynced, true)
  t.equal(stage.keys, 'team/a', 'a list of one namespace takes nothing from another')
})

t.test('without the API the records are kept, and the ready page has their age', async (t) => {
  const stage = new Stage(t)
  const [records] = await stage.synced([record('a', '192.0.2.1')])
  await turns()
  t.equal(stage.source.note(), '')
  records.fail(new Error('read ECONNRESET'))
  await turns()
  await stage.advance(1000)
  const age =
    /^records are as of \d{4}-\S+ \(1 s ago\): dnsrecords in all namespaces: read ECONNRESET/
  t.match(stage.source.note(), age)
  // What is asked from then on has no answer either.
  await stage.advance(99_000)
  t.equal(stage.source.ageMs, 100_000)
  t.match(stage.source.note(), /\(100 s ago\): dnsrecords in all namespaces: no data for 30 s/)
  t.equal(stage.source.unreadyReason(), '')
  t.equal(stage.keys, 'team/a')
})

t.test(
  'a property that nothing reads is logged once, also when it is listed or written again',
  async (t) => {
    const stage = new Stage(t)
    const typo = (name: string, address: string) => {
      const made = record(name, address) as { spec: { endpoints: object[] } }
      Object.assign(made.spec.endpoints[0]!, { recordTtl: 60 })
      return made
    }
    const [records] = await stage.synced([typo('a', '192.0.2.1'), typo('b', '192.0.2.2')])
    const ignored = () => stage.lines.filter((line) => line.includes('recordTtl'))
    await stage.heard()
    t.equal(ignored().length, 1)
    t.match(
      ignored()[0],
      /team\/a: spec\.endpoints\[0\]\.recordTtl: .* is ignored; did you mean recordTTL\?; the same in 1 more records$/,
    )
    records.event('MODIFIED', typo('a', '192.0.2.3'))
    await stage.heard()
    t.equal(ignored().length, 1)
    records.event('ADDED', typo('c', '192.0.2.3'))
    await stage.heard()
    t.equal(ignored().length, 2)
  },
)
