import t, { type Test } from 'tap'
import { systemTimers } from '../../src/base/timers.ts'
import type { ApiError, ApiObject } from '../../src/kube/api.ts'
import { HttpsClient } from '../../src/kube/https-client.ts'
import { loadKubeConfig } from '../../src/kube/kubeconfig.ts'
import { isAlreadyThere, isConflict, type ObjectRef, Objects } from '../../src/kube/objects.ts'
import { Cluster, type ClusterUser } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'

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

    t.equal((await objects.list(DNS_RECORDS, 'team', 'x=y')).length, 1)
    t.equal((await objects.list(DNS_RECORDS, '', 'x=z')).length, 0)

    const other = await refusal(objects.delete(recordRef('a'), { uid: 'another' }))
    t.equal(isConflict(other), true, 'another object of that name')
    const changed = { uid, resourceVersion: created.metadata.resourceVersion }
    t.equal(isConflict(await refusal(objects.delete(recordRef('a'), changed))), true)
    t.equal(await objects.delete(recordRef('a'), { uid, resourceVersion }), true)
    t.equal(await objects.delete(recordRef('a')), false)
  })

  await t.test('what is applied is ours, and what is left out goes', async (t) => {
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

  await t.test('what is forbidden says so, and nothing of a Secret', async (t) => {
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
  })
})
