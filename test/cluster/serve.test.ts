import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests } from '../support/kustomize.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { needsMounts, Pod } from './pod-account.ts'
import { endpointsOf, HEALED_MS, record, SEEN_MS, ServedCluster, ZONE } from './served-cluster.ts'

t.setTimeout(CLUSTER_TEST_MS)

t.test('records of a cluster are served, and followed', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace('team')
  await cluster.createNamespace('other')
  const team = cluster.records('team')
  await cluster.must('POST', team, record('first', '192.0.2.1'))
  const site = await ServedCluster.start(t, cluster.kubeconfig('admin'))
  await site.isReady()

  await t.test(
    'records that exist at the start, and records that are created, changed and deleted',
    async (t) => {
      t.equal(await site.ask('first'), '192.0.2.1', 'as soon as it is ready')
      t.equal(await site.ask('second'), 'NXDOMAIN')
      await cluster.must('POST', team, record('second', '192.0.2.2'))
      await site.sees('second', '192.0.2.2')
      await cluster.must('PATCH', `${team}/second`, endpointsOf('second', '192.0.2.3'))
      await site.sees('second', '192.0.2.3')
      await cluster.must('DELETE', `${team}/second`)
      await site.sees('second', 'NXDOMAIN')
    },
  )

  await t.test('the label decides what is served', async () => {
    const bare = { labels: {} }
    await cluster.must('POST', team, record('bare', '192.0.2.4', bare))
    await cluster.must('POST', team, record('marker', '192.0.2.5'))
    await site.sees('marker', '192.0.2.5')
    t.equal(await site.ask('bare'), 'NXDOMAIN')
    const labels = { 'kuadrant.io/coredns-zone-name': ZONE }
    await cluster.must('PATCH', `${team}/bare`, { metadata: { labels } })
    await site.sees('bare', '192.0.2.4')
    const none = { 'kuadrant.io/coredns-zone-name': null }
    await cluster.must('PATCH', `${team}/bare`, { metadata: { labels: none } })
    await site.sees('bare', 'NXDOMAIN')
  })

  await t.test('a record on its way out is not served, finalizers or not', async () => {
    const held = {
      finalizers: ['example.org/wait'],
      labels: { 'kuadrant.io/coredns-zone-name': ZONE },
    }
    await cluster.must('POST', team, record('leaving', '192.0.2.6', held))
    await site.sees('leaving', '192.0.2.6')
    await cluster.must('DELETE', `${team}/leaving`)
    await site.sees('leaving', 'NXDOMAIN')
    await cluster.must('PATCH', `${team}/leaving`, { metadata: { finalizers: null } })
  })

  await t.test('a refused record keeps its last good version, and says why', async (t) => {
    await cluster.must('POST', team, record('bad', '192.0.2.7'))
    await site.sees('bad', '192.0.2.7')
    await cluster.must('PATCH', `${team}/bad`, endpointsOf('bad', 'nonsense'))
    const said =
      /team\/bad is refused, its last valid version is served: spec\.endpoints\[0\]\.targets\[0\]: /
    await until(() => said.test(site.server.output()), 'the refusal', SEEN_MS)
    t.equal(await site.ask('bad'), '192.0.2.7')
    t.equal(await site.metric('sextant_kuadrant_records', 'state="refused"'), 1)
    t.match(
      (await site.ready()).text,
      /^OK\n(.*\n)*.*team\/bad is refused/,
      'ready, with the problem',
    )
    await cluster.must('PATCH', `${team}/bad`, endpointsOf('bad', '192.0.2.8'))
    await site.sees('bad', '192.0.2.8')
  })

  await t.test('an address that a probe found down is left out', async () => {
    const pair = record('pair', '192.0.2.10') as { spec: { endpoints: { targets: string[] }[] } }
    pair.spec.endpoints[0]?.targets.push('192.0.2.11')
    await cluster.must('POST', team, pair)
    await site.sees('pair', '192.0.2.10 192.0.2.11')
    const probes = cluster.records('team', '', 'dnshealthcheckprobes')
    await cluster.must('POST', probes, {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSHealthCheckProbe',
      metadata: { name: 'pair-1', labels: { 'kuadrant.io/health-probes-owner': 'pair' } },
      spec: { address: '192.0.2.10' },
    })
    const health = (healthy: boolean) =>
      cluster.must('PATCH', `${probes}/pair-1/status`, { status: { healthy } })
    await health(false)
    await site.sees('pair', '192.0.2.11')
    await health(true)
    await site.sees('pair', '192.0.2.10 192.0.2.11')
    await health(false)
    await site.sees('pair', '192.0.2.11')
    await cluster.must('DELETE', `${probes}/pair-1`)
    await site.sees('pair', '192.0.2.10 192.0.2.11')
  })

  await t.test('annotations drain the endpoints of a record, until their time', async (t) => {
    const two = [record('drained-a', '192.0.2.40'), record('drained-b', '192.0.2.41')]
    for (const [i, one] of two.entries()) {
      const { spec } = one as { spec: { rootHost: string; endpoints: object[] } }
      const dnsName = `drained.${ZONE}`
      Object.assign(spec, { rootHost: dnsName })
      Object.assign(spec.endpoints[0]!, { dnsName, setIdentifier: `${i}` })
      await cluster.must('POST', team, one)
    }
    await site.sees('drained', '192.0.2.40 192.0.2.41')
    const annotate = async (annotations: object, want: string): Promise<void> => {
      await cluster.must('PATCH', `${team}/drained-a`, { metadata: { annotations } })
      const startMs = Date.now()
      await site.sees('drained', want)
      t.comment(`${JSON.stringify(annotations)}: seen after ${Date.now() - startMs} ms`)
    }
    const [one, both] = ['192.0.2.41', '192.0.2.40 192.0.2.41']
    await annotate({ 'sextant.io/drain': 'racks move' }, one)
    await site.server.prints(/drain begins: record:team\/drained-a by annotation: racks move/)
    await annotate({ 'sextant.io/drain': null }, both)
    await site.server.prints(/drain ends: record:team\/drained-a by annotation: racks move/)
    const untilMs = Math.ceil(Date.now() / 1000 + 3) * 1000
    const ending = { 'sextant.io/drain-until': new Date(untilMs).toISOString() }
    await annotate({ 'sextant.io/drain': '', ...ending }, one)
    await site.sees('drained', both)
    t.ok(Date.now() >= untilMs, 'not before its time')
    t.comment(`its time: seen after ${Date.now() - untilMs} ms`)
  })

  await t.test('annotations of a Namespace drain its records', async (t) => {
    await cluster.createNamespace('spare')
    await cluster.must('POST', team, record('both', '192.0.2.50'))
    await cluster.must('POST', cluster.records('spare'), record('both', '192.0.2.51'))
    const properties = 'namespace-drains'
    const follower = await ServedCluster.start(t, cluster.kubeconfig('admin'), { properties })
    await follower.isReady()
    t.equal(await follower.ask('both'), '192.0.2.50 192.0.2.51')
    const annotate = async (annotations: object, want: string): Promise<void> => {
      await cluster.must('PATCH', '/api/v1/namespaces/team', { metadata: { annotations } })
      const startMs = Date.now()
      await follower.sees('both', want)
      t.comment(`${JSON.stringify(annotations)}: seen after ${Date.now() - startMs} ms`)
    }
    await annotate({ 'sextant.io/drain': 'racks move' }, '192.0.2.51')
    const drain = 'record:team/* by annotation of Namespace team: racks move'
    t.match((await follower.ready()).text, `OK\nkuadrant: drained: ${drain}`)
    t.equal(await site.ask('both'), '192.0.2.50 192.0.2.51', 'only where it is wanted')
    const late = await ServedCluster.start(t, cluster.kubeconfig('admin'), { properties })
    await late.says(/^OK/)
    t.equal(await late.ask('both'), '192.0.2.51', 'the first answer of a new server')
    await annotate({ 'sextant.io/drain': null }, '192.0.2.50 192.0.2.51')

    await cluster.grant('viewer')
    const bare = await ServedCluster.start(t, cluster.kubeconfig('viewer'), { properties })
    const { status } = await bare.says(/needs get, list and watch of namespaces$/)
    t.equal(status, 200)
    await bare.server.prints(/\[WARNING\].* namespaces: 403 .*; retrying/)
    t.equal(await bare.ask('both'), '192.0.2.50 192.0.2.51')
    await applyAll(cluster, composeManifests('deploy/namespace-drains'))
    await cluster.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'viewer-namespaces' },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'ClusterRole',
        name: 'sextant-namespace-drains',
      },
      subjects: [{ kind: 'User', name: 'viewer' }],
    })
    await cluster.must('PATCH', '/api/v1/namespaces/spare', {
      metadata: { annotations: { 'sextant.io/drain': '' } },
    })
    await bare.sees('both', '192.0.2.50', HEALED_MS)
  })

  await t.test('a ConfigMap drains endpoints at all servers of the cluster', async (t) => {
    const maps = '/api/v1/namespaces/team/configmaps'
    const properties = 'cluster-drains team/sextant-drains'
    await cluster.must('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles', {
      metadata: { name: 'drains' },
      rules: [
        {
          apiGroups: [''],
          resources: ['configmaps'],
          resourceNames: ['sextant-drains'],
          verbs: ['get', 'list', 'watch'],
        },
      ],
    })
    await cluster.must('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings', {
      metadata: { name: 'drains' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'drains' },
      subjects: [{ kind: 'User', name: 'viewer' }],
    })
    const file = join(t.testdir({ drains: 'id:none\n' }), 'drains')
    const withFile = { properties: `${properties}\n drain ${file}` }
    const one = await ServedCluster.start(t, cluster.kubeconfig('viewer'), withFile)
    await one.server.prints(/drain begins: id:none; not exported to other sites/)
    const other = await ServedCluster.start(t, cluster.kubeconfig('viewer'), { properties })
    const both = '192.0.2.50 192.0.2.51'
    const sees = async (want: string): Promise<void> => {
      for (const server of [one, other]) await server.sees('both', want)
    }
    await sees(both)
    const data = (drains: string) => ({ data: { drains } })
    const metadata = { name: 'sextant-drains' }
    await cluster.must('POST', maps, { metadata, ...data('address:192.0.2.50 reason=racks\n') })
    await sees('192.0.2.51')
    await cluster.must('PATCH', `${maps}/sextant-drains`, data('address:nowhere/\n'))
    await one.says(/ConfigMap team\/sextant-drains: drains:1: /)
    await sees('192.0.2.51')
    await cluster.must('DELETE', `${maps}/sextant-drains`)
    await sees(both)
  })

  await t.test('namespaces that are not asked for are not served', async (t) => {
    await cluster.must('POST', cluster.records('other'), record('elsewhere', '192.0.2.20'))
    await site.sees('elsewhere', '192.0.2.20')
    const env = { WATCH_NAMESPACES: 'team, absent' }
    const narrow = await ServedCluster.start(t, cluster.kubeconfig('admin'), { env })
    await narrow.isReady()
    t.equal(await narrow.ask('first'), '192.0.2.1')
    t.equal(await narrow.ask('elsewhere'), 'NXDOMAIN')
  })

  await t.test(
    'without the API the answers stay, with their age on the ready page; it recovers with the API',
    async (t) => {
      await cluster.killServer()
      const { status } = await site.says(
        /^OK\nkuadrant: records are as of \d{4}-.* \(\d+ s ago\): dnsrecords in all namespaces: /,
      )
      t.equal(status, 200)
      t.equal(await site.metric('sextant_kuadrant_watch_up', 'dnsrecords'), 0)
      const age = async () => (await site.metric('sextant_kuadrant_source_age_seconds')) ?? 0
      const before = await age()
      t.equal(await site.ask('first'), '192.0.2.1')
      await until(async () => (await age()) > before + 1, 'the age to grow', SEEN_MS)
      t.equal(await site.ask('first'), '192.0.2.1')
      await cluster.startServer()
      await cluster.must('PATCH', `${team}/first`, endpointsOf('first', '192.0.2.30'))
      await site.sees('first', '192.0.2.30', HEALED_MS)
      await site.isReady()
      t.equal(await age(), 0)
      t.equal(await site.metric('sextant_kuadrant_watch_up', 'dnsrecords'), 1)
    },
  )

  await t.test('changes are not missed if the API no longer has our version', async (t) => {
    const lists = () => site.metric('sextant_kuadrant_watch_lists', 'dnsrecords')
    const before = (await lists()) ?? 0
    // A stopped server can't watch; the API compacts the changes that the server lacks.
    site.server.process.kill('SIGSTOP')
    await cluster.must('DELETE', `${team}/marker`)
    await cluster.must('PATCH', `${team}/first`, endpointsOf('first', '192.0.2.31'))
    await cluster.killServer()
    await cluster.compact()
    await cluster.startServer()
    await cluster.must('POST', team, record('late', '192.0.2.32'))
    site.server.process.kill('SIGCONT')
    await site.sees('late', '192.0.2.32', HEALED_MS)
    await site.sees('first', '192.0.2.31')
    // What is gone goes when the list is over.
    await site.sees('marker', 'NXDOMAIN')
    t.ok(((await lists()) ?? 0) > before, 'everything was listed anew')
  })
})

t.test(
  'no definitions and no rights at first: it waits, and says for what',
  needsCluster(),
  async (t) => {
    const cluster = await Cluster.start(t)
    const site = await ServedCluster.start(t, cluster.kubeconfig('viewer'))
    const first = await site.says(
      /kuadrant: records are not read yet: dnsrecords in all namespaces: 403 .*needs get, list and watch/s,
    )
    t.equal(first.status, 503)
    t.equal(await site.ask('first'), 'SERVFAIL', 'it is unknown whether the name exists')
    await cluster.grant('viewer')
    await site.says(/404 .*is the CustomResourceDefinition dnsrecords\.kuadrant\.io installed\?/)
    t.equal(await site.metric('sextant_kuadrant_watch_up', 'dnsrecords'), 0)
    await cluster.installCrds()
    await cluster.createNamespace('team')
    await cluster.must('POST', cluster.records('team'), record('first', '192.0.2.1'))
    await site.sees('first', '192.0.2.1', HEALED_MS)
    await site.isReady()
    const complaints = site.server.output().match(/kuadrant: dnsrecords in all namespaces: 403/g)
    t.equal(complaints?.length, 1, 'each reason is logged once')

    const account = '/api/v1/namespaces/team/serviceaccounts'
    const secrets = '/api/v1/namespaces/team/secrets'
    /** A token that holds as long as a Secret of that name is there. */
    const token = async (name: string): Promise<string> => {
      const { metadata } = await cluster.must('POST', secrets, { metadata: { name } })
      const boundObjectRef = { kind: 'Secret', apiVersion: 'v1', name, uid: metadata.uid }
      const request = { spec: { expirationSeconds: 3600, boundObjectRef } }
      return (await cluster.must('POST', `${account}/sextant/token`, request)).status.token
    }
    await t.test('a token that was replaced is taken up', async (t) => {
      await cluster.must('POST', account, { metadata: { name: 'sextant' } })
      await cluster.must(
        'PATCH',
        '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/reader-viewer',
        {
          subjects: [
            { kind: 'User', name: 'viewer' },
            { kind: 'ServiceAccount', name: 'sextant', namespace: 'team' },
          ],
        },
      )
      const kubeconfig = join(cluster.directory, 'pod.kubeconfig')
      const tokenFile = join(cluster.directory, 'token')
      writeFileSync(tokenFile, 'not the right one')
      writeFileSync(
        kubeconfig,
        `current-context: main
clusters: [{name: here, cluster: {server: "${cluster.url}", certificate-authority: certs/apiserver.crt}}]
users: [{name: pod, user: {tokenFile: token}}]
contexts: [{name: main, context: {cluster: here, user: pod}}]
`,
      )
      const pod = await ServedCluster.start(t, kubeconfig)
      await pod.says(/401 Unauthorized/)
      writeFileSync(tokenFile, await token('outside'))
      await pod.sees('first', '192.0.2.1', HEALED_MS)
    })

    await t.test(
      'in a pod: the service account of the pod, and its next token',
      needsMounts(),
      async (t) => {
        const directory = join(temporaryDirectory(t), 'serviceaccount')
        const pod = new Pod(cluster, directory, await token('before'))
        const { env, wrapper } = pod
        const site = await ServedCluster.start(t, '', { env, wrapper })
        await site.isReady()
        t.equal(await site.ask('first'), '192.0.2.1')
        pod.rotate(await token('after'))
        await cluster.must(
          'PATCH',
          cluster.records('team', 'first'),
          endpointsOf('first', '192.0.2.2'),
        )
        await site.sees('first', '192.0.2.2')
        // The old token is worth nothing any more, and the watch that it opened is cut.
        await cluster.must('DELETE', `${secrets}/before`)
        await cluster.killServer()
        await cluster.startServer()
        await cluster.must(
          'PATCH',
          cluster.records('team', 'first'),
          endpointsOf('first', '192.0.2.3'),
        )
        await site.sees('first', '192.0.2.3', HEALED_MS)
        t.notMatch(site.server.output(), /eyJ/, 'no token is logged')

        await cluster.must('DELETE', `${secrets}/after`)
        await cluster.killServer()
        await cluster.startServer()
        await site.says(/dnsrecords in all namespaces: 401 Unauthorized/)
        t.equal(await site.ask('first'), '192.0.2.3', 'what is known is served')
        pod.rotate(await token('last'))
        await cluster.must(
          'PATCH',
          cluster.records('team', 'first'),
          endpointsOf('first', '192.0.2.4'),
        )
        await site.sees('first', '192.0.2.4', HEALED_MS)
      },
    )
  },
)

t.test('a snapshot is served while the cluster can not be asked', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace('team')
  await cluster.must('POST', cluster.records('team'), record('first', '192.0.2.1'))
  const snapshot = join(temporaryDirectory(t), 'snapshot')
  const properties = `snapshot ${snapshot}`
  const kubeconfig = cluster.kubeconfig('admin')
  const before = await ServedCluster.start(t, kubeconfig, { properties })
  await before.isReady()
  before.server.process.kill('SIGTERM')
  await before.server.exited()
  await cluster.killServer()
  const after = await ServedCluster.start(t, kubeconfig, { properties })
  t.equal(await after.ask('first'), '192.0.2.1')
  await after.says(/zones are as of .*ECONNREFUSED/)
  await cluster.startServer()
  await cluster.must('DELETE', cluster.records('team', 'first'))
  await after.sees('first', 'NXDOMAIN', HEALED_MS)
  await after.isReady()
})
