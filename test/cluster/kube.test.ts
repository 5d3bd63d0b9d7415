import { spawn } from 'node:child_process'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { systemTimers } from '../../src/base/timers.ts'
import type { ApiError, ApiObject } from '../../src/kube/api.ts'
import { EventRecorder } from '../../src/kube/event-recorder.ts'
import { HttpsClient } from '../../src/kube/https-client.ts'
import { Informer } from '../../src/kube/informer.ts'
import { loadKubeConfig } from '../../src/kube/kubeconfig.ts'
import { keyOf } from '../../src/kube/object-key.ts'
import { isAlreadyThere, isConflict, type ObjectRef, Objects } from '../../src/kube/objects.ts'
import { CLUSTER_TEST_MS, Cluster, type ClusterUser } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Of the electors: long enough that a busy machine lets them renew it in time. */
const LEASE_SECONDS = 10
const RENEW_DEADLINE_MS = 8000
/** Ample, for a machine on which other tests run too. */
const SEEN_MS = 120_000

const quiet = createLogger(
  '',
  () => {},
  () => false,
)

const DNS_RECORDS = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }
const SECRETS = { group: '', version: 'v1', plural: 'secrets' }

const recordRef = (name: string): ObjectRef => ({ resource: DNS_RECORDS, namespace: 'team', name })

function record(name: string, more: object = {}): ApiObject {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, ...more },
    spec: {
      rootHost: 'a.k.example.com',
      endpoints: [
        { dnsName: 'a.k.example.com', recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] },
      ],
    },
  }
}

async function clientOf(cluster: Cluster, user: ClusterUser): Promise<HttpsClient> {
  const load = () => loadKubeConfig({ kubeconfig: cluster.kubeconfig(user), context: '' })
  return new HttpsClient(await load(), load)
}

async function objectsOf(t: Test, cluster: Cluster, user: ClusterUser = 'admin') {
  const api = await clientOf(cluster, user)
  const objects = new Objects({ api, timers: systemTimers, fieldManager: 'sextant-operator' })
  t.teardown(() => objects.close())
  return objects
}

function refusal(request: Promise<unknown>): Promise<ApiError> {
  return request.then(
    () => {
      throw new Error('it was not refused')
    },
    (error) => error,
  )
}

// biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
const loose = (object: ApiObject | undefined): any => object

t.setTimeout(CLUSTER_TEST_MS)

/** One API server for all: it takes ten seconds to start. */
t.test('against an API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace('team')

  await t.test('objects are created, read, changed and deleted', async (t) => {
    const objects = await objectsOf(t, cluster)
    t.equal(await objects.get(recordRef('a')), undefined)
    const created = loose(await objects.create(DNS_RECORDS, 'team', record('a')))
    t.match(created.metadata, { name: 'a', namespace: 'team', uid: /./, resourceVersion: /\d/ })
    const again = await refusal(objects.create(DNS_RECORDS, 'team', record('a')))
    t.match(again, { status: 409, reason: 'AlreadyExists' })
    t.equal(isAlreadyThere(again), true)
    t.equal(isConflict(again), false)

    const patched = loose(await objects.patch(recordRef('a'), { metadata: { labels: { x: 'y' } } }))
    t.equal(patched.metadata.labels.x, 'y')
    const stale = await refusal(objects.replace(recordRef('a'), created))
    t.match(stale, { status: 409, reason: 'Conflict', message: /the object has been modified/ })
    t.equal(isConflict(stale), true)
    const { resourceVersion, uid } = patched.metadata
    const bad = { ...patched, spec: { ...patched.spec, endpoints: [{ dnsName: 1 }] } }
    t.match(await refusal(objects.replace(recordRef('a'), bad)), { status: 422, reason: 'Invalid' })

    const other = await refusal(objects.delete(recordRef('a'), { uid: 'another' }))
    t.equal(isConflict(other), true, 'another object of that name')
    const changed = { uid, resourceVersion: created.metadata.resourceVersion }
    t.equal(isConflict(await refusal(objects.delete(recordRef('a'), changed))), true)
    t.equal(await objects.delete(recordRef('a'), { uid, resourceVersion }), true)
    t.equal(await objects.delete(recordRef('a')), false)
  })

  await t.test('applied fields are ours, and omitted ones are removed', async (t) => {
    const objects = await objectsOf(t, cluster)
    const labels = { ours: '1', more: '2' }
    const created = loose(await objects.apply(recordRef('b'), record('b', { labels })))
    t.strictSame(created.metadata.labels, labels)
    await cluster.must('PATCH', cluster.records('team', 'b'), {
      metadata: { labels: { theirs: '3', ours: '9' } },
    })
    const forced = loose(
      await objects.apply(recordRef('b'), record('b', { labels: { ours: '1' } })),
    )
    t.strictSame(forced.metadata.labels, { ours: '1', theirs: '3' })
    const same = loose(await objects.apply(recordRef('b'), record('b', { labels: { ours: '1' } })))
    const { resourceVersion } = forced.metadata
    t.equal(same.metadata.resourceVersion, resourceVersion, 'nothing new is no new version')
    const gone = record('c', { uid: forced.metadata.uid })
    t.match(
      await refusal(objects.apply(recordRef('c'), gone)),
      { status: 409 },
      'with a uid it is not created',
    )
  })

  await t.test('the status is applied by itself', async (t) => {
    const objects = await objectsOf(t, cluster)
    await objects.create(DNS_RECORDS, 'team', record('d'))
    const head = { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata: { name: 'd' } }
    const status = { observedGeneration: 1 }
    const applied = loose(await objects.applyStatus(recordRef('d'), { ...head, status }))
    t.equal(applied.status.observedGeneration, 1)
    t.equal(applied.metadata.generation, 1, 'the spec is as it was')
    t.equal(applied.spec.rootHost, 'a.k.example.com')
    const patched = loose(
      await objects.patchStatus(recordRef('d'), { status: { observedGeneration: 2 } }),
    )
    t.equal(patched.status.observedGeneration, 2)
    const missing = { ...head, metadata: { name: 'none' } }
    t.match(await refusal(objects.applyStatus(recordRef('none'), { ...missing, status })), {
      status: 404,
    })
  })

  await t.test('a finalizer is taken away in steps that are tested', async (t) => {
    const objects = await objectsOf(t, cluster)
    const finalizers = ['kuadrant.io/one', 'kuadrant.io/two']
    const made = loose(await objects.create(DNS_RECORDS, 'team', record('e', { finalizers })))
    await objects.delete(recordRef('e'))
    t.match(loose(await objects.get(recordRef('e'))).metadata, { deletionTimestamp: /./ })
    const path = '/metadata/finalizers/0'
    const wrong = await refusal(
      objects.patchSteps(recordRef('e'), [
        { op: 'test', path, value: 'kuadrant.io/two' },
        { op: 'remove', path },
      ]),
    )
    t.match(wrong, { status: 422, reason: 'Invalid' })
    const uid = { op: 'test', path: '/metadata/uid', value: made.metadata.uid } as const
    const left = loose(
      await objects.patchSteps(recordRef('e'), [
        uid,
        { op: 'test', path, value: 'kuadrant.io/one' },
        { op: 'remove', path },
      ]),
    )
    t.strictSame(left.metadata.finalizers, ['kuadrant.io/two'])
    await objects.patchSteps(recordRef('e'), [uid, { op: 'remove', path }])
    t.equal(await objects.get(recordRef('e')), undefined)
  })

  await t.test(
    'an error of a forbidden request says so, and contains nothing of a Secret',
    async (t) => {
      const objects = await objectsOf(t, cluster, 'stranger')
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 's' },
        stringData: { token: 'very-secret' },
      }
      const error = await refusal(objects.create(SECRETS, 'team', secret))
      t.match(error, { status: 403, reason: 'Forbidden', message: /stranger/ })
      t.notMatch(error.message, /very-secret/)
      const admin = await objectsOf(t, cluster)
      const invalid = { ...secret, type: 'kubernetes.io/tls' }
      const refused = await refusal(admin.create(SECRETS, 'team', invalid))
      t.match(refused, { status: 422 })
      t.notMatch(refused.message, /very-secret/)
    },
  )

  await t.test('an informer has what the API has, and hears of what changes', async (t) => {
    const { informer, calls } = await informerOf(t, cluster, 'app=x')
    const labels = { app: 'x' }
    const objects = await objectsOf(t, cluster)
    await objects.create(DNS_RECORDS, 'team', record('f', { labels }))
    await objects.create(DNS_RECORDS, 'team', record('other'))
    informer.start()
    await informer.synced()
    t.strictSame(calls, ['+team/f'])
    t.equal(loose(informer.get('team/f')).metadata.managedFields, undefined)
    await objects.create(DNS_RECORDS, 'team', record('g', { labels }))
    await objects.patch(recordRef('f'), { metadata: { annotations: { a: 'b' } } })
    await objects.delete(recordRef('f'))
    const want = ['+team/f', '+team/g', 'team/f', '-team/f']
    await until(() => calls.length >= want.length, 'the changes', SEEN_MS)
    t.strictSame(calls, want)
    await objects.patch(recordRef('g'), { metadata: { labels: null } })
    await until(() => calls.includes('-team/g'), 'what the selector leaves out', SEEN_MS)
  })

  await t.test(
    'one of two electors leads, and the other one after the first is killed',
    async (t) => {
      const rights = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] }
      const verbs = ['get', 'create', 'update']
      const api = '/apis/rbac.authorization.k8s.io/v1/namespaces/team'
      const metadata = { name: 'elector' }
      await cluster.must('POST', `${api}/roles`, { metadata, rules: [{ ...rights, verbs }] })
      await cluster.must('POST', `${api}/rolebindings`, {
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'elector' },
        subjects: [{ kind: 'User', name: 'viewer' }],
      })
      const kubeconfig = cluster.kubeconfig('viewer')
      const [a, b] = [await elector(t, kubeconfig, 'a'), await elector(t, kubeconfig, 'b')]
      await until(() => a.leads() || b.leads(), 'a leader', SEEN_MS)
      const [first, second] = a.leads() ? [a, b] : [b, a]
      const lease = async () =>
        (await cluster.must('GET', '/apis/coordination.k8s.io/v1/namespaces/team/leases/sextant'))
          .spec
      const { renewTime } = await lease()
      const isRenewed = async () => (await lease()).renewTime !== renewTime
      await until(isRenewed, 'the lease to be renewed', SEEN_MS)
      t.equal(second.leads(), false)
      const { renewTime: lastSeen } = await lease()
      first.process.kill('SIGKILL')
      await until(() => second.leads(), 'the other one to lead', SEEN_MS)
      const taken = await lease()
      t.match(taken, { holderIdentity: second.identity, leaseTransitions: 1 })
      const freeMs = Date.parse(taken.acquireTime) - Date.parse(lastSeen)
      t.ok(freeMs > (LEASE_SECONDS - 1) * 1000, `not before the lease was over: after ${freeMs} ms`)

      const third = await elector(t, kubeconfig, 'c')
      second.process.kill('SIGTERM')
      await until(() => third.leads(), 'the third one, as the lease is given back', SEEN_MS)
      t.equal((await lease()).leaseTransitions, 2)

      third.process.kill('SIGSTOP')
      const fourth = await elector(t, kubeconfig, 'd')
      await until(() => fourth.leads(), 'one that was stopped to be replaced', SEEN_MS)
      third.process.kill('SIGCONT')
      await until(() => !third.leads(), 'one that was stopped to know it', SEEN_MS)
      t.equal((await lease()).holderIdentity, 'd')
    },
  )

  await t.test('events are as the API wants them', async (t) => {
    const recorder = new EventRecorder({
      api: await clientOf(cluster, 'admin'),
      controller: 'kuadrant.io/sextant-operator',
      instance: 'test',
      clock: systemClock,
      timers: systemTimers,
      random: new Random(1),
      log: quiet,
    })
    t.teardown(() => recorder.close())
    const objects = await objectsOf(t, cluster)
    const made = loose(await objects.create(DNS_RECORDS, 'team', record('h')))
    const { uid } = made.metadata
    const head = { apiVersion: made.apiVersion, kind: made.kind }
    const subject = { ...head, namespace: 'team', name: 'h', uid }
    const details = { type: 'Warning', reason: 'Failed', action: 'Publish' } as const
    recorder.record(subject, { ...details, note: 'once' })
    for (let i = 0; i < 5; i++) recorder.record(subject, { ...details, note: 'often' })
    recorder.record(subject, { ...details, note: 'ü'.repeat(3000) })
    await until(() => recorder.counts.written === 3, 'the events', SEEN_MS)
    const path = '/apis/events.k8s.io/v1/namespaces/team/events'
    const { items } = await cluster.must('GET', path)
    const byNote = (note: string) => items.find((item: { note: string }) => item.note === note)
    t.match(byNote('once'), { regarding: subject, reportingInstance: 'test', type: 'Warning' })
    t.match(byNote('often').series, { count: 5 })
    // As older clients see it.
    const old = await cluster.must('GET', '/api/v1/namespaces/team/events')
    t.equal(old.items.length, 3)
    t.equal(recorder.counts.dropped, 0)
  })

  await t.test('an API that was restored from a backup is noticed, and what it has', async (t) => {
    const objects = await objectsOf(t, cluster)
    const labels = { app: 'backup' }
    await objects.create(DNS_RECORDS, 'team', record('kept', { labels }))
    await cluster.backUp()
    for (let i = 0; i < 30; i++) {
      await objects.patch(recordRef('kept'), { metadata: { annotations: { n: `${i}` } } })
    }
    await objects.create(DNS_RECORDS, 'team', record('lost', { labels }))
    const { informer } = await informerOf(t, cluster, 'app=backup')
    informer.start()
    await informer.synced()
    t.strictSame([...informer.objects()].map(keyOf).sort(), ['team/kept', 'team/lost'])
    await cluster.restore()
    await objects.create(DNS_RECORDS, 'team', record('new', { labels }))
    const isThere = () => informer.get('team/new') !== undefined
    await until(isThere, 'what is new after the restoration', SEEN_MS)
    const names = () => [...informer.objects()].map(keyOf).sort()
    // What is gone goes when the list is over.
    await until(() => !names().includes('team/lost'), 'what was lost to go', SEEN_MS)
    t.strictSame(names(), ['team/kept', 'team/new'])
  })
})

async function informerOf(t: Test, cluster: Cluster, labelSelector: string) {
  const informer = new Informer({
    api: await clientOf(cluster, 'admin'),
    resource: DNS_RECORDS,
    namespaces: ['team'],
    labelSelector,
    log: quiet,
    clock: systemClock,
    timers: systemTimers,
    random: new Random(1),
  })
  t.teardown(() => informer.close())
  const calls: string[] = []
  informer.subscribe({
    onAdd: (key) => calls.push(`+${key}`),
    onUpdate: (key) => calls.push(key),
    onDelete: (key) => calls.push(`-${key}`),
  })
  return { informer, calls }
}

/** An elector in a process of its own. */
async function elector(t: Test, kubeconfig: string, identity: string) {
  const program = `
    const { HttpsClient } = await import('${root}/dist/kube/https-client.js')
    const { loadKubeConfig } = await import('${root}/dist/kube/kubeconfig.js')
    const { LeaderElector } = await import('${root}/dist/kube/lease.js')
    const { Random } = await import('${root}/dist/base/random.js')
    const { systemClock } = await import('${root}/dist/base/clock.js')
    const { systemTimers } = await import('${root}/dist/base/timers.js')
    const load = () => loadKubeConfig({ kubeconfig: '${kubeconfig}', context: '' })
    const say = (what) => process.stdout.write(what + '\\n')
    const elector = new LeaderElector({
      api: new HttpsClient(await load(), load), namespace: 'team', name: 'sextant', identity: '${identity}',
      clock: systemClock, timers: systemTimers, random: new Random(1),
      log: { debug() {}, info() {}, warning: say, error: say },
      onAcquire: () => say('leads'), onLose: () => say('lost'),
      durationSeconds: ${LEASE_SECONDS}, renewDeadlineMs: ${RENEW_DEADLINE_MS}, retryMs: 200,
    })
    elector.start()
    setInterval(() => {}, 1e6)
    process.once('SIGTERM', async () => { await elector.close(); process.exit() })
    say('started')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  let printed = ''
  const keep = (chunk: Buffer): void => {
    printed += String(chunk)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  t.teardown(() => child.kill('SIGKILL'))
  await until(() => printed.includes('started'), 'the elector to start', SEEN_MS)
  const last = () => printed.match(/^(leads|lost)$/gm)?.at(-1)
  return { identity, process: child, leads: () => last() === 'leads' }
}
