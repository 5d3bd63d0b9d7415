import t, { type Test } from 'tap'
import { ClusterWatch } from '../../../src/authority/cluster/cluster-watch.ts'
import type { ClusterChanges } from '../../../src/authority/cluster/object-store.ts'
import type { EndpointsTrigger } from '../../../src/authority/cluster/packed.ts'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { ApiDouble, type Asked, listBody, type Stream, turns } from '../../support/api-double.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

let version = 100

const named = (name: string) => ({ metadata: { name, resourceVersion: `${++version}` } })
const service = (name: string, address: string) => ({
  metadata: { namespace: 'shop', name, resourceVersion: `${++version}` },
  spec: { clusterIPs: [address] },
})

/** The Services of a cluster, as a subscriber sees them. */
class Viewer {
  /** Packed Services by name. */
  readonly services = new Map<string, string>()
  readonly namespaces = new Set<string>()
  calls = 0
  /** Changes whose `before` is not what the viewer knew. */
  faults = 0

  apply({ namespaces, services }: ClusterChanges): void {
    this.calls++
    for (const { namespace, isExposed } of namespaces) {
      if (isExposed) this.namespaces.add(namespace)
      else this.namespaces.delete(namespace)
    }
    for (const { before, after } of services) {
      const name = (before ?? after)!.name
      if (before?.service !== this.services.get(name)) this.faults++
      if (after === undefined) this.services.delete(name)
      else this.services.set(name, after.service)
    }
  }

  get names(): string[] {
    return [...this.services.keys()].sort()
  }
}

class Stage {
  readonly api = new ApiDouble()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  readonly watch: ClusterWatch

  constructor(t: Test, readsEndpoints = false) {
    const scope = { namespaces: [], namespaceLabels: '', labels: '' }
    this.watch = new ClusterWatch({
      scope: { ...scope, readsEndpoints, readsPods: false },
      api: this.api,
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      clock: this.clock,
      timers: this.timers,
      random: new Random(1),
    })
    t.teardown(() => this.watch.close())
  }

  view(): { viewer: Viewer; stop: () => void } {
    const viewer = new Viewer()
    return { viewer, stop: this.watch.subscribe(async (changes) => viewer.apply(changes)) }
  }

  async asked(plural: string): Promise<Asked> {
    await turns()
    const index = this.api.asked.findIndex(({ path }) => path.endsWith(`/v1/${plural}`))
    if (index === -1) throw new Error(`nothing asks for ${plural}`)
    return this.api.asked.splice(index, 1)[0]!
  }

  /** Lets the events arrive, which are collected for a moment. */
  async settle(): Promise<void> {
    await turns()
    this.clock.pass(10)
    await this.timers.advance(10)
    await turns()
  }

  /** Answers the lists; returns the watch of Services. */
  async synced(...services: readonly object[]): Promise<Stream> {
    this.watch.start()
    ;(await this.asked('namespaces')).reply(200, listBody('50', [named('shop')]))
    ;(await this.asked('services')).reply(200, listBody('50', services))
    ;(await this.asked('namespaces')).stream()
    const stream = (await this.asked('services')).stream()
    await turns()
    return stream
  }
}

t.test('subscribers get everything first, and then what changes', async (t) => {
  const stage = new Stage(t)
  const early = stage.view()
  const stream = await stage.synced(service('web', '10.3.0.1'))
  t.strictSame(early.viewer.names, ['web'])
  t.strictSame([...early.viewer.namespaces], ['shop'])
  t.equal(early.viewer.calls, 1)
  const late = stage.view()
  await stage.settle()
  t.strictSame(late.viewer.names, ['web'])
  t.equal(early.viewer.calls, 1, 'the others get nothing for that')
  stream.event('ADDED', service('db', '10.3.0.2'))
  await stage.settle()
  for (const { viewer } of [early, late]) t.strictSame(viewer.names, ['db', 'web'])
  early.stop()
  stream.event('DELETED', service('web', '10.3.0.1'))
  await stage.settle()
  t.strictSame(early.viewer.names, ['db', 'web'], 'after its end')
  t.strictSame(late.viewer.names, ['db'])
  t.equal(early.viewer.faults + late.viewer.faults, 0)
})

t.test('a cluster without Services is something, too', async (t) => {
  const stage = new Stage(t)
  await stage.synced()
  const { viewer } = stage.view()
  await stage.settle()
  t.equal(viewer.calls, 1)
})

t.test('a subscriber that fails costs the others nothing', async (t) => {
  const stage = new Stage(t)
  stage.watch.subscribe(async () => {
    throw new Error('no room')
  })
  const { viewer } = stage.view()
  const stream = await stage.synced(service('web', '10.3.0.1'))
  stream.event('ADDED', service('db', '10.3.0.2'))
  await stage.settle()
  t.strictSame(viewer.names, ['db', 'web'])
  t.match(stage.lines.join('\n'), /Applying changes of the cluster failed.*no room/)
})

t.test('a start waits for the API together with those before it', async (t) => {
  const stage = new Stage(t)
  stage.watch.start()
  stage.clock.pass(3000)
  t.equal(stage.watch.waitMs(5000), 2000)
  stage.clock.pass(3000)
  t.equal(stage.watch.waitMs(5000), 0)
  ;(await stage.asked('namespaces')).reply(200, listBody('50', []))
  ;(await stage.asked('services')).reply(200, listBody('50', []))
  await stage.settle()
  t.equal(stage.watch.waitMs(5000), 5000, 'only for its own zones')
})

t.test('a change of endpoints has a time only if it changes a record', async (t) => {
  const stage = new Stage(t, true)
  const triggers: EndpointsTrigger[][] = []
  stage.watch.subscribe(async (_, some) => {
    triggers.push([...some])
  })
  const slice = (address: string, at: string, node: string) => ({
    metadata: {
      ...service('db-1', '').metadata,
      labels: { 'kubernetes.io/service-name': 'db' },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': at },
    },
    endpoints: [{ addresses: [address], nodeName: node }],
  })
  stage.watch.start()
  ;(await stage.asked('endpointslices')).reply(200, listBody('50', []))
  const slices = (await stage.asked('endpointslices')).stream()
  slices.event('ADDED', slice('10.1.0.1', '2026-11-23T00:00:00Z', 'a'))
  await stage.settle()
  await stage.synced({ ...service('db', ''), spec: { clusterIPs: ['None'] } })
  t.strictSame(triggers, [[]], 'before everything was read')
  slices.event('MODIFIED', slice('10.1.0.1', '2026-11-23T01:00:00Z', 'b'))
  await stage.settle()
  t.equal(triggers.length, 1, 'the record is the same')
  const changed = '2026-11-23T02:00:00Z'
  slices.event('MODIFIED', slice('10.1.0.2', changed, 'b'))
  await stage.settle()
  const own = { namespace: 'shop', service: 'db', changedMs: Date.parse(changed) }
  t.strictSame(triggers, [[], [own]])
})

t.test('subscribers that come and go amid changes see what is there', async (t) => {
  const stage = new Stage(t)
  const random = new Random(7)
  const stream = await stage.synced()
  const viewers: { viewer: Viewer; stop: () => void }[] = []
  const known = new Map<string, object>()
  for (let i = 0; i < 600; i++) {
    const name = `s${random.below(12)}`
    const object = service(name, `10.3.0.${random.below(200) + 1}`)
    if (random.below(3) === 0 && known.delete(name)) stream.event('DELETED', object)
    else {
      stream.event(known.has(name) ? 'MODIFIED' : 'ADDED', object)
      known.set(name, object)
    }
    if (random.below(20) === 0) {
      const viewer = new Viewer()
      // Changes arrive while it works.
      const apply = async (changes: ClusterChanges): Promise<void> => {
        await turns(random.below(4))
        viewer.apply(changes)
      }
      viewers.push({ viewer, stop: stage.watch.subscribe(apply) })
    }
    if (random.below(60) === 0) viewers.shift()?.stop()
    if (random.below(4) === 0) await stage.timers.advance(random.below(20))
  }
  for (let i = 0; i < 50; i++) await stage.settle()
  t.ok(viewers.length > 10)
  for (const { viewer } of viewers) {
    t.strictSame(viewer.names, [...known.keys()].sort())
    t.equal(viewer.faults, 0)
  }
})
