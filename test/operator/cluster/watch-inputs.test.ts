import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { Informer } from '../../../src/kube/informer.ts'
import { ObjectCache } from '../../../src/operator/cluster/object-cache.ts'
import { watchInputs } from '../../../src/operator/cluster/watch-inputs.ts'
import { RECORDS } from '../../../src/operator/record/resources.ts'
import { printZoneFault } from '../../../src/operator/zones/zone-state.ts'
import {
  ApiDouble,
  type Asked,
  listBody,
  type Stream,
  statusBody,
  turns,
} from '../../support/api-double.ts'
import { AUTHORITATIVE } from '../../support/delegation-fixture.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

/** Longer than any wait between attempts. */
const WAIT_MS = 15_001

class Stage {
  readonly api = new ApiDouble()
  readonly timers = new FakeTimers()
  readonly keys: string[] = []
  /** Authoritative records whose health check changed. */
  readonly checked: string[] = []
  readonly cache: ObjectCache
  /** Reports that a record which shares a name with this one changed. */
  share: (key: string) => void = () => {}
  readonly #records: Informer
  readonly #secrets: Informer

  constructor(t: Test) {
    const clock = new FakeClock()
    const log = createLogger(
      '',
      () => {},
      () => false,
    )
    const env = { log, clock, timers: this.timers, random: new Random(1) }
    const shape = { resource: RECORDS, namespaces: [], labelSelector: '' }
    this.#records = new Informer({ ...env, ...shape, api: this.api })
    this.#secrets = new Informer({ ...env, ...shape, api: new ApiDouble() })
    this.cache = new ObjectCache(this.#records, clock)
    this.#records.start()
    t.teardown(() => this.#records.close())
  }

  /** As a term does when it begins. */
  watch(): void {
    watchInputs({
      records: this.#records,
      secrets: this.#secrets,
      cache: this.cache,
      owners: { onGone: () => () => {} },
      onNames: (listener) => {
        this.share = listener
        return () => {}
      },
      onEvent: (key) => this.keys.push(key),
      onCheck: (key) => this.checked.push(key),
    })
  }

  async asked(): Promise<Asked> {
    await this.timers.advance(WAIT_MS)
    await turns()
    return this.api.next()
  }

  async heard(): Promise<string[]> {
    await turns()
    await this.timers.advance(10)
    await turns()
    return this.keys.splice(0)
  }
}

const record = (resourceVersion: string, metadata: ApiObject = {}): ApiObject =>
  dnsRecord({ metadata: { resourceVersion, ...metadata } })

const deleted = (resourceVersion: string): ApiObject =>
  record(resourceVersion, { generation: 2, deletionTimestamp: '2026-02-01T00:00:00Z' })

/** A stage on which one record was listed, and its watch. */
async function setUp(t: Test): Promise<{ stage: Stage; watch: Stream }> {
  const stage = new Stage(t)
  ;(await stage.asked()).reply(200, listBody('10', [record('10')]))
  const watch = (await stage.asked()).stream()
  stage.watch()
  t.strictSame(await stage.heard(), ['a/app'], 'a new session gets all records')
  return { stage, watch }
}

/** The API forgets what it had, as one that starts does. */
async function listAnew(stage: Stage, watch: Stream, items: readonly ApiObject[]): Promise<void> {
  watch.event('ERROR', statusBody(410, 'too old resource version'))
  await turns()
  ;(await stage.asked()).reply(200, listBody('30', items))
}

for (const { name, written, deliver, want } of [
  {
    name: 'the watch event of our own write is ignored',
    written: record('20', { finalizers: ['kuadrant.io/dns-record'] }),
    deliver: ({ watch }: { watch: Stream }, object: ApiObject) => watch.event('MODIFIED', object),
    want: [],
  },
  {
    name: 'what others do is looked at',
    written: record('19'),
    deliver: ({ watch }: { watch: Stream }) => watch.event('MODIFIED', deleted('20')),
    want: ['a/app'],
  },
  {
    name: 'what others did before our write, which a list has as one with it, is looked at',
    written: deleted('20'),
    deliver: ({ stage, watch }: { stage: Stage; watch: Stream }, object: ApiObject) =>
      listAnew(stage, watch, [object]),
    want: ['a/app'],
  },
  {
    name: 'a list without changes requests no reconcile',
    written: record('20'),
    deliver: ({ stage, watch }: { stage: Stage; watch: Stream }) =>
      listAnew(stage, watch, [record('10')]),
    want: [],
  },
]) {
  t.test(name, async (t) => {
    const site = await setUp(t)
    site.stage.cache.noteWritten(written)
    await deliver(site, written)
    t.strictSame(await site.stage.heard(), want)
  })
}

t.test('a new session also gets what was written before', async (t) => {
  const { stage, watch } = await setUp(t)
  const written = record('20', { finalizers: ['kuadrant.io/dns-record'] })
  stage.cache.noteWritten(written)
  watch.event('MODIFIED', written)
  t.strictSame(await stage.heard(), [])
  stage.watch()
  t.strictSame(await stage.heard(), ['a/app'])
})

t.test(
  'a delegating record is reconciled if its authoritative record may be in conflict, or its zone is not served',
  async (t) => {
    const stage = new Stage(t)
    const object = dnsRecord()
    const { providerRef: _, ...spec } = object.spec as ApiObject
    const delegating = { ...object, spec: { ...spec, delegate: true } }
    const authoritative = (resourceVersion: string, status: ApiObject) => {
      const labels = { 'kuadrant.io/authoritative-record': 'true' }
      const metadata = { name: AUTHORITATIVE, namespace: 'a', labels, resourceVersion }
      return { ...object, metadata, status }
    }
    const ready = (reason: string, message: string) => ({
      conditions: [{ type: 'Ready', status: 'False', reason, message }],
    })
    ;(await stage.asked()).reply(200, listBody('10', [delegating, authoritative('9', {})]))
    const watch = (await stage.asked()).stream()
    stage.watch()
    await stage.heard()
    stage.share(`a/${AUTHORITATIVE}`)
    t.strictSame(await stage.heard(), ['a/app'])
    stage.share('a/other')
    t.strictSame(await stage.heard(), [])
    watch.event('MODIFIED', authoritative('20', ready('ProviderError', 'x')))
    t.strictSame(await stage.heard(), [])
    const fault = `Published, but ${printZoneFault('k.example.com', '192.0.2.53:53 (REFUSED)')}`
    watch.event('MODIFIED', authoritative('21', ready('ZoneNotServed', fault)))
    t.strictSame(await stage.heard(), [`a/${AUTHORITATIVE}`, 'a/app'])
  },
)

t.test('a health check of a delegating record is news to its authoritative record', async (t) => {
  const stage = new Stage(t)
  const object = dnsRecord()
  const { providerRef: _, ...spec } = object.spec as ApiObject
  const delegating = (resourceVersion: string, more: ApiObject): ApiObject => {
    const metadata = { ...Object(object.metadata), resourceVersion }
    return { ...object, metadata, spec: { ...spec, delegate: true, ...more } }
  }
  const check = (interval: string) => ({ healthCheck: { protocol: 'TCP', port: 443, interval } })
  ;(await stage.asked()).reply(200, listBody('10', [delegating('9', check('5s'))]))
  const watch = (await stage.asked()).stream()
  stage.watch()
  await stage.heard()
  const news = (): number => stage.checked.splice(0).length
  t.equal(news(), 1, 'a new session')
  let version = 20
  for (const { change, type = 'MODIFIED', more, want } of [
    { change: 'another interval', more: check('6s'), want: 1 },
    { change: 'none', more: check('6s'), want: 0 },
    { change: 'no check', more: {}, want: 1 },
    { change: 'the check again', more: check('6s'), want: 1 },
    { change: 'deleted', type: 'DELETED', more: check('6s'), want: 1 },
  ] as const) {
    watch.event(type, delegating(`${version++}`, more))
    await stage.heard()
    t.equal(news(), want, change)
  }
})
