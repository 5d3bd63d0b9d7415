import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { type ApiObject, textOf } from '../../../src/kube/api.ts'
import { Cluster } from '../../../src/operator/cluster/cluster.ts'
import type { Controller } from '../../../src/operator/controller.ts'
import { mappingOf, metadataOf } from '../../../src/operator/record/fields.ts'
import { RECORDS, SECRETS } from '../../../src/operator/record/resources.ts'
import { createSourcesController } from '../../../src/operator/sources/sources-controller.ts'
import type { ObjectKind } from '../../../src/sources/objects/object-kind.ts'
import { recordNameOf } from '../../../src/sources/objects/record-name.ts'
import { turns } from '../../support/api-double.ts'
import { eventRecorder } from '../../support/event-recorder.ts'
import { MemoryApi } from '../../support/memory-api.ts'
import { secret } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { type Hosts, WIDGETS, widget, widgetKind } from './widget.ts'

const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' }
const GADGETS = { ...WIDGETS, plural: 'gadgets', kind: 'Gadget' }
const WIDGET = widgetKind()
const GADGET = widgetKind('gadget', GADGETS)
const HOST = 'shop.k.example.com'

/** A controller, its API server, and time. */
class Bench {
  readonly api = new MemoryApi()
  readonly registry = new MetricsRegistry()
  readonly lines: string[] = []
  mayWrite = true
  readonly #clock = new FakeClock()
  readonly #timers = new FakeTimers()
  readonly #t: Test
  #cluster: Cluster | undefined
  #controller: Controller | undefined

  constructor(t: Test) {
    this.#t = t
    this.provide('a')
  }

  provide(namespace: string, zones = 'k.example.com', type = 'kuadrant.io/coredns'): void {
    const labels = { 'kuadrant.io/default-provider': 'true' }
    this.api.put(SECRETS, secret(namespace, 'coredns', { ZONES: zones }, { labels, type }))
  }

  put(namespace: string, name: string, hosts: Hosts, more: ApiObject = {}): void {
    this.api.put(WIDGETS, widget(namespace, name, hosts, more))
  }

  /** Becomes the leader, and has written what is to be written. */
  async lead(kinds: readonly ObjectKind[] = [WIDGET]): Promise<Controller> {
    const { api } = this
    const log = createLogger(
      'operator',
      (line) => this.lines.push(line),
      () => true,
    )
    const env = {
      api,
      log,
      namespaces: [],
      clock: this.#clock,
      timers: this.#timers,
      random: new Random(7),
    }
    const events = eventRecorder(env)
    const cluster = new Cluster(env, events)
    this.#cluster = cluster
    this.#t.teardown(() => this.stop())
    cluster.start()
    const controller = createSourcesController(
      { ...env, events, registry: this.registry, mayWrite: () => this.mayWrite },
      cluster,
      { kinds, known: [WIDGET, GADGET], shares: [] },
    )
    this.#controller = controller
    await this.settle()
    controller.begin()
    await this.settle()
    return controller
  }

  async stop(): Promise<void> {
    await this.#controller?.end()
    this.#cluster?.close()
  }

  /** Lets watches, timers and writes settle. */
  async settle(): Promise<void> {
    for (let i = 0; i < 8; i++) {
      await turns(30)
      this.#clock.pass(2000)
      await this.#timers.advance(2000)
    }
    await turns(30)
  }

  record(namespace: string, name: string, host = HOST, word = 'widget'): ApiObject | undefined {
    return this.api.all(RECORDS).get(`${namespace}/${recordNameOf(word, name, host)}`)
  }

  /** `host type target` of the DNSRecords that there are. */
  get records(): readonly string[] {
    return [...this.api.all(RECORDS).values()].map(printRecord).sort()
  }

  /** `object reason` of the Events. */
  get events(): readonly string[] {
    return [...this.api.all(EVENTS).values()]
      .map((one) => `${textOf(one.regarding, 'name')} ${textOf(one, 'reason')}`)
      .sort()
  }

  /** As the controller of DNSRecords does. */
  makeReady(namespace: string, name: string, host = HOST): void {
    const record = this.record(namespace, name, host)!
    const conditions = [{ type: 'Ready', status: 'True', reason: 'ProviderSuccess', message: '' }]
    this.api.put(RECORDS, { ...record, status: { conditions } })
  }
}

function printRecord({ spec, metadata }: ApiObject): string {
  const endpoints = mappingOf({ spec: spec ?? {} }, 'spec').endpoints
  const [first] = Array.isArray(endpoints) ? endpoints : []
  const { targets } = first as { readonly targets: readonly string[] }
  return `${textOf(metadata, 'namespace')} ${textOf(spec, 'rootHost')} ${targets.join(' ')}`
}

t.test('a DNSRecord for each host of an object', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1', 'api.k.example.com': 'lb.example.net' })
  await bench.lead()
  t.strictSame(bench.records, [
    'a api.k.example.com lb.example.net',
    'a shop.k.example.com 192.0.2.1',
  ])
  const record = bench.record('a', 'one')
  const [owner] = bench.api.all(WIDGETS).values()
  t.match(record, {
    metadata: {
      labels: { 'sextant.io/source': 'widget' },
      ownerReferences: [
        {
          apiVersion: 'example.org/v1',
          kind: 'Widget',
          name: 'one',
          uid: textOf(owner?.metadata, 'uid'),
        },
      ],
    },
  })
  t.strictSame(Object.keys(mappingOf(metadataOf(record!), 'labels')), ['sextant.io/source'])

  bench.put('a', 'one', { [HOST]: '192.0.2.2' })
  await bench.settle()
  t.strictSame(bench.records, ['a shop.k.example.com 192.0.2.2'], 'a host left, an address changed')

  bench.api.drop(WIDGETS, 'a/one')
  await bench.settle()
  t.strictSame(bench.records, [], 'the object is gone')
})

t.test('what is in place is not written again', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  bench.makeReady('a', 'one')
  await bench.settle()
  await bench.stop()
  const before = bench.api.writes.length
  await bench.lead()
  t.equal(bench.api.writes.length, before, 'the next leader writes nothing')
})

t.test('an edit of a DNSRecord is repaired, and a deleted one is written again', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  const record = bench.record('a', 'one')!
  const endpoints = [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.9'] }]
  bench.api.put(RECORDS, { ...record, spec: { rootHost: HOST, endpoints } })
  await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
  bench.api.drop(RECORDS, `a/${recordNameOf('widget', 'one', HOST)}`)
  await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
})

t.test('DNSRecords of others are not touched', async (t) => {
  const bench = new Bench(t)
  const endpoints = [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.9'] }]
  const taken = recordNameOf('widget', 'one', HOST)
  for (const [name, labels] of [
    [taken, {}],
    ['by-hand', {}],
    ['copied', { 'sextant.io/source': 'widget' }],
    ['of-a-newer-version', { 'sextant.io/source': 'gizmo' }],
  ] as const) {
    const metadata = { namespace: 'a', name, labels }
    bench.api.put(RECORDS, { metadata, spec: { rootHost: HOST, endpoints } })
  }
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  t.strictSame(new Set(bench.records), new Set([`a ${HOST} 192.0.2.9`]))
  t.strictSame(bench.events, ['one RecordNameTaken'])
})

t.test('an invalid object keeps its last good state, also after a restart', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  const spoil = (note: string): void => {
    bench.api.put(WIDGETS, { metadata: { namespace: 'a', name: 'one' }, spec: { note } })
  }
  spoil('no hosts')
  await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
  t.strictSame(bench.events, ['one ObjectNotUsed'])
  t.match(bench.lines.join('\n'), 'Widget a/one: spec.note: no hosts')

  await bench.stop()
  await bench.lead()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
  bench.put('a', 'two', { [HOST]: '192.0.2.2' })
  await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`], 'it still has its host')

  bench.put('a', 'one', { [HOST]: '192.0.2.3' })
  await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.3`])
})

t.test('a host that is no DNS name', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1', 'a..b': '192.0.2.2' })
  await bench.lead()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`], 'the other hosts are served')
  t.strictSame(bench.events, ['one InvalidRecord'])
})

t.test('in a conflict the oldest object is served, and both get one Event', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'older', { [HOST]: '192.0.2.1' })
  bench.put('a', 'newer', { [HOST]: 'lb.example.net', 'api.k.example.com': '192.0.2.3' })
  await bench.lead()
  t.strictSame(bench.records, ['a api.k.example.com 192.0.2.3', `a ${HOST} 192.0.2.1`])
  t.strictSame(bench.events, ['newer HostConflict', 'older HostConflict'])
  const [event] = bench.api.all(EVENTS).values()
  t.match(textOf(event, 'note'), /CNAME lb.example.net of Widget a\/newer .* Widget a\/older/)

  bench.makeReady('a', 'older')
  await bench.settle()
  t.equal(bench.events.length, 3, 'nothing is reported twice')
  bench.api.drop(WIDGETS, 'a/older')
  await bench.settle()
  t.strictSame(bench.records, ['a api.k.example.com 192.0.2.3', `a ${HOST} lb.example.net`])
})

t.test('objects with set identifiers are united', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: 'eu=192.0.2.1' })
  bench.put('a', 'two', { [HOST]: 'us=192.0.2.2' })
  await bench.lead()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`, `a ${HOST} 192.0.2.2`])
  t.strictSame(bench.events, [])
})

t.test('another namespace does not get a host, however old its object is', async (t) => {
  const bench = new Bench(t)
  bench.provide('b')
  bench.put('b', 'old', {})
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  bench.put('b', 'old', { [HOST]: '192.0.2.2' })
  await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
  t.strictSame(bench.events, ['old HostNotOwned'])
})

t.test('hosts outside all zones are ignored and counted', async (t) => {
  const bench = new Bench(t)
  bench.provide('b', 'k.example.com', 'kuadrant.io/aws')
  bench.put('a', 'one', { [HOST]: '192.0.2.1', 'www.example.net': '192.0.2.1' })
  bench.put('b', 'two', { 'other.k.example.com': '192.0.2.2' })
  await bench.lead()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
  t.strictSame(bench.events, [])
  const { body } = await bench.registry.page('')
  t.match(body, 'sextant_operator_source_records{source_kind="widget",state="outside-zones"} 2\n')
  t.match(body, 'sextant_operator_source_records{source_kind="widget",state="pending"} 1\n')
  t.match(body, 'sextant_operator_source_writes_total{kind="create"} 1\n')

  bench.provide('a', 'other.example.com')
  await bench.settle()
  t.strictSame(bench.records, [], 'the zone was removed from the Secret')
})

t.test('without a provider nothing is written, and what exists is kept', async (t) => {
  const bench = new Bench(t)
  bench.put('b', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  t.strictSame(bench.records, [])
  t.strictSame(bench.events, ['one NoProvider'])
  bench.provide('b')
  await bench.settle()
  t.strictSame(bench.records, [`b ${HOST} 192.0.2.1`])
  bench.provide('b', 'not a zone')
  await bench.settle()
  t.strictSame(bench.records, [`b ${HOST} 192.0.2.1`])
})

t.test('Events of what becomes of the DNSRecord', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  bench.makeReady('a', 'one')
  await bench.settle()
  t.strictSame(bench.events, ['one HostServed'])
  const record = bench.record('a', 'one')!
  for (const message of ['asked ns1', 'asked ns2']) {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'ZoneNotServed', message }]
    bench.api.put(RECORDS, { ...record, status: { conditions } })
    await bench.settle()
  }
  t.strictSame(bench.events, ['one HostServed', 'one ZoneNotServed'], 'one for each reason')
})

t.test('a kind that is not installed is reported, and followed once it is', async (t) => {
  const bench = new Bench(t)
  let isInstalled = false
  bench.api.refuse = ({ path }) => (path.includes('/widgets') && !isInstalled ? 404 : undefined)
  bench.api.put(GADGETS, widget('a', 'one', { [HOST]: '192.0.2.2' }))
  const controller = await bench.lead([WIDGET, GADGET])
  t.match(controller.reason, 'source widget: widgets in all namespaces: 404')
  t.match(controller.reason, 'is the CustomResourceDefinition widgets.example.org installed?')
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.2`], 'other kinds are published')
  isInstalled = true
  bench.put('a', 'one', { 'api.k.example.com': '192.0.2.1' })
  // At most 15 s between two attempts.
  await bench.settle()
  await bench.settle()
  t.equal(controller.reason, '')
  t.strictSame(bench.records, ['a api.k.example.com 192.0.2.1', `a ${HOST} 192.0.2.2`])
})

t.test('a cluster may lack other resources of a kind', async (t) => {
  const bench = new Bench(t)
  bench.api.refuse = ({ path }) => (path.includes('/extras') ? 404 : undefined)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  const controller = await bench.lead()
  await bench.settle()
  t.equal(controller.reason, '')
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
})

t.test('without rights for a resource of a kind nothing is written or removed', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  await bench.stop()
  bench.put('a', 'one', {})
  bench.api.refuse = ({ path }) => (path.includes('/extras') ? 403 : undefined)
  const controller = await bench.lead()
  await bench.settle()
  t.match(controller.reason, 'this account needs get, list and watch of extras.example.org')
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
})

t.test('what was written for a kind that is no longer chosen is removed', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  await bench.stop()
  await bench.lead([])
  t.strictSame(bench.records, [])
})

t.test('an API server that refuses is tried again', async (t) => {
  const bench = new Bench(t)
  let isAway = true
  bench.api.refuse = ({ method }) => (method === 'POST' && isAway ? 503 : undefined)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  t.strictSame(bench.records, [])
  isAway = false
  for (let i = 0; i < 20 && bench.records.length === 0; i++) await bench.settle()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.1`])
})

t.test('a refused DNSRecord is reported once', async (t) => {
  const bench = new Bench(t)
  bench.api.refuse = ({ method, path }) =>
    method === 'POST' && path.endsWith('dnsrecords') ? 422 : undefined
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  await bench.settle()
  t.strictSame(bench.events, ['one RecordRefused'])
})

t.test('without the lease nothing is written', async (t) => {
  const bench = new Bench(t)
  bench.mayWrite = false
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  t.strictSame(bench.records, [])
})

t.test('an object that was made again while no operator ran', async (t) => {
  const bench = new Bench(t)
  bench.put('a', 'one', { [HOST]: '192.0.2.1' })
  await bench.lead()
  await bench.stop()
  bench.api.drop(WIDGETS, 'a/one')
  bench.put('a', 'one', { [HOST]: '192.0.2.2' })
  await bench.lead()
  t.strictSame(bench.records, [`a ${HOST} 192.0.2.2`])
  const [made] = bench.api.all(WIDGETS).values()
  const uid = textOf(made?.metadata, 'uid')
  t.match(bench.record('a', 'one'), { metadata: { ownerReferences: [{ name: 'one', uid }] } })
  t.strictSame(bench.events, [])
})

t.test('thousands of objects that were never valid', async (t) => {
  const bench = new Bench(t)
  const labels = { 'sextant.io/source': 'gizmo' }
  const spec = { rootHost: HOST, endpoints: [] }
  for (let i = 0; i < 4000; i++) {
    bench.api.put(RECORDS, { metadata: { namespace: 'a', name: `r${i}`, labels }, spec })
    const metadata = { namespace: 'a', name: `w${i}` }
    bench.api.put(WIDGETS, { metadata, spec: { note: 'no hosts' } })
  }
  const start = process.cpuUsage()
  await bench.lead()
  const { user } = process.cpuUsage(start)
  t.ok(user < 4_000_000, `${user} microseconds`)
})
