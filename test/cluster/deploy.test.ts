import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import {
  composeManifests,
  type Manifest,
  manifestOf,
  SITE,
  siteParts,
} from '../support/kustomize.ts'
import { scanFences } from '../support/page.ts'
import { needs, needsRoot } from '../support/peer.ts'
import {
  CHOSEN,
  EVENTS_AT_HOME,
  each,
  LACKED,
  may,
  OPERATOR,
  OPERATOR_AT_HOME,
  READ,
  RECORDS,
  rightsInForce,
  SERVER,
  SYSTEM,
  WRITE,
} from '../support/rights.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'
import { startPod } from './pod.ts'

/** Ample, for a machine on which other tests run too. */
const SEEN_MS = 120_000

/** What neither account may do. */
const FORBIDDEN = [
  ...each(WRITE, `secrets ${SYSTEM}`),
  ...each(WRITE, `secrets ${CHOSEN}`),
  ...each([...READ, ...WRITE], `pods ${SYSTEM}`),
  ...each(['list', 'watch', ...WRITE], 'namespaces'),
  'get namespaces team team',
  ...each([...READ, ...WRITE], `configmaps ${SYSTEM}`),
  ...each(['create'], `serviceaccounts/token ${SYSTEM}`),
  ...each(READ, 'nodes'),
  ...each([...READ, ...WRITE], 'apiextensions.k8s.io:customresourcedefinitions'),
  ...each(WRITE, 'rbac.authorization.k8s.io:clusterroles'),
  ...each(WRITE, `rbac.authorization.k8s.io:rolebindings ${CHOSEN}`),
  ...each(['update', 'deletecollection'], `kuadrant.io:dnsrecords ${CHOSEN}`),
  ...each([...READ, ...WRITE], `events ${SYSTEM}`),
  ...each([...READ, 'update', 'delete'], 'events.k8s.io:events'),
  'impersonate users',
  ...each(READ, 'coordination.k8s.io:leases kube-system'),
  ...each(['list', 'patch', 'delete'], `coordination.k8s.io:leases ${SYSTEM}`),
]

async function prove(
  t: Test,
  cluster: Cluster,
  account: string,
  rights: { readonly may: readonly string[]; readonly mayNot: readonly string[] },
): Promise<void> {
  await rightsInForce(cluster, account, rights.may)
  for (const right of rights.may) t.pass(`${account}: ${right}`)
  for (const right of rights.mayNot) {
    t.notOk(await may(cluster, account, right), `${account}: not ${right}`)
  }
}

const writesOf = (where: string) => [
  ...RECORDS.flatMap((path) => each(WRITE, `${path} ${where}`)),
  ...RECORDS.flatMap((path) => each(['update', 'patch'], `${path}/status ${where}`)),
  ...each(READ, `secrets ${where}`),
  ...each(['create', 'patch'], `events.k8s.io:events ${where}`),
]

t.setTimeout(CLUSTER_TEST_MS)

t.test('deploy/ as the API server takes it', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.createNamespace(CHOSEN)
  await cluster.createNamespace('team')

  await t.test('chosen namespaces: every manifest is taken, field by field', async () => {
    await applyAll(cluster, composeManifests('deploy/overlays/chosen-namespaces'))
    await applyAll(cluster, siteParts())
  })

  await t.test('chosen namespaces: each account may what it needs, there alone', async (t) => {
    await prove(t, cluster, 'server', {
      may: [...SERVER(CHOSEN), ...EVENTS_AT_HOME],
      mayNot: [
        ...SERVER('team'),
        ...SERVER(''),
        ...writesOf(CHOSEN),
        ...OPERATOR_AT_HOME,
        ...FORBIDDEN,
      ],
    })
    await prove(t, cluster, 'operator', {
      may: [...OPERATOR(CHOSEN), ...OPERATOR_AT_HOME, ...EVENTS_AT_HOME],
      mayNot: [...OPERATOR('team'), ...OPERATOR(''), ...FORBIDDEN],
    })
  })

  await t.test('pods of the Deployments are taken under the restricted standard', async (t) => {
    const manifests = composeManifests('deploy/overlays/chosen-namespaces')
    const pods = `/api/v1/namespaces/${SYSTEM}/pods?dryRun=All&fieldValidation=Strict`
    for (const component of ['server', 'exchange', 'operator']) {
      const { template } = manifestOf(manifests, 'Deployment', `sextant-${component}`).spec
      const metadata = { ...template.metadata, name: component }
      const reply = await cluster.call('POST', pods, { ...template, metadata })
      t.equal(reply.status, 201, JSON.stringify(reply.body))
      const rooted = structuredClone({ ...template, metadata })
      rooted.spec.securityContext.runAsNonRoot = false
      t.equal((await cluster.call('POST', pods, rooted)).status, 403, 'the standard is in force')
    }
  })

  const manifests = [...composeManifests('deploy/overlays/chosen-namespaces'), ...siteParts()]
  const pods = { ...needsRoot(), ...needs('dig') }
  await t.test(
    'server and exchange run without privileges, on a read-only file system',
    pods,
    async (t) => {
      const record = (name: string) => ({
        apiVersion: 'kuadrant.io/v1alpha1',
        kind: 'DNSRecord',
        metadata: { name, labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' } },
        spec: {
          rootHost: `${name}.k.example.com`,
          endpoints: [
            { dnsName: `${name}.k.example.com`, recordType: 'A', targets: ['192.0.2.1'] },
          ],
        },
      })
      await cluster.must('POST', cluster.records(CHOSEN), record('ours'))
      await cluster.must('POST', cluster.records('team'), record('theirs'))
      const server = await startPod(t, cluster, manifests, 'server')
      await server.isReady()
      t.match(await server.dig('ours.k.example.com'), /\tA\t192\.0\.2\.1$/m)
      t.match(await server.dig('theirs.k.example.com'), /status: NXDOMAIN/)
      t.match(await server.dig('ours.k.example.com', '+tcp'), /\tA\t192\.0\.2\.1$/m)
      await until(() => server.state().includes('k.example.com.snapshot'), 'the snapshot', SEEN_MS)
      // An edit of the ConfigMap is applied without a restart.
      server.editCorefile((text) => text.replace('192.0.2.13', '192.0.2.14'))
      const isEdited = async () => /\t192\.0\.2\.14$/m.test(await server.dig('ns3.k.example.com'))
      await until(isEdited, 'the edited Corefile', SEEN_MS)

      const exchange = await startPod(t, cluster, manifests, 'exchange')
      await exchange.isReady()
      t.match(await exchange.dig('ours.k.example.com.kdrnt'), /\tA\t192\.0\.2\.1$/m)
      t.match(await exchange.dig('kdrnt', 'AXFR'), /Transfer failed/)
      const key = 'hmac-sha256:sextant-exchange:NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='
      t.match(await exchange.dig('-y', key, 'kdrnt', 'AXFR'), /^ours\.k\.example\.com\.kdrnt\./m)
    },
  )

  await t.test('so does the operator', pods, async (t) => {
    const host = 'published.k.example.com'
    await cluster.must('POST', cluster.records(CHOSEN), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'published' },
      spec: {
        rootHost: host,
        endpoints: [{ dnsName: host, recordType: 'A', targets: ['192.0.2.1'] }],
      },
    })
    const operator = await startPod(t, cluster, manifests, 'operator')
    await operator.isReady()
    const isMerged = async () => {
      const { status } = await cluster.call('GET', cluster.records(CHOSEN, 'merged-published'))
      return status === 200
    }
    await until(isMerged, 'the merged record', SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}:\n${operator.output()}`)
    })
    const events = `/apis/events.k8s.io/v1/namespaces/${CHOSEN}/events`
    const hasEvent = async () => (await cluster.must('GET', events)).items.length > 0
    await until(hasEvent, 'an Event', SEEN_MS)
    t.notMatch(operator.output(), LACKED)
  })

  await t.test(
    'all namespaces: every manifest is accepted, and the rights are for all namespaces',
    async (t) => {
      await applyAll(cluster, composeManifests(SITE))
      await prove(t, cluster, 'server', {
        may: [...SERVER('team'), ...SERVER(''), ...EVENTS_AT_HOME],
        mayNot: [...writesOf('team'), ...writesOf(''), ...OPERATOR_AT_HOME, ...FORBIDDEN],
      })
      await prove(t, cluster, 'operator', {
        may: [...OPERATOR('team'), ...OPERATOR(''), ...OPERATOR_AT_HOME, ...EVENTS_AT_HOME],
        mayNot: FORBIDDEN,
      })
    },
  )

  await t.test('the DaemonSet for AF_XDP needs the level privileged', async (t) => {
    const fences = scanFences(readFileSync(join(root, 'docs/how-to/xdp.md'), 'utf8'))
    const { text } = fences.find(({ language }) => language === 'yaml')!
    const parsed: Manifest[] = parseAllDocuments(text).map((document) => document.toJS())
    for (const [level, want] of [
      ['privileged', 201],
      ['baseline', 403],
    ] as const) {
      const labels = { 'pod-security.kubernetes.io/enforce': level }
      await cluster.must('POST', '/api/v1/namespaces', { metadata: { name: level, labels } })
      // No controller manager runs that would create it.
      const accounts = `/api/v1/namespaces/${level}/serviceaccounts`
      await cluster.must('POST', accounts, { metadata: { name: 'default' } })
      const manifests = parsed.map((one) => {
        return { ...one, metadata: { ...one.metadata, namespace: level } }
      })
      await applyAll(cluster, manifests)
      const { template } = manifestOf(manifests, 'DaemonSet', 'sextant').spec
      const pod = { ...template, metadata: { ...template.metadata, name: 'sextant' } }
      const pods = `/api/v1/namespaces/${level}/pods?dryRun=All&fieldValidation=Strict`
      const reply = await cluster.call('POST', pods, pod)
      t.equal(reply.status, want, JSON.stringify(reply.body))
      const refused = String(reply.body.message)
      if (want === 403) t.match(refused, /"BPF", "NET_ADMIN", "NET_RAW".*hostNetwork=true/)
    }
  })

  await t.test('a remote cluster: its account reads records and writes their status', async (t) => {
    await applyAll(cluster, composeManifests('deploy/remote-cluster'))
    await prove(t, cluster, 'remote-cluster', {
      may: [
        ...each(READ, 'kuadrant.io:dnsrecords'),
        ...each(['get', 'update', 'patch'], 'kuadrant.io:dnsrecords/status'),
        'get namespaces kube-system kube-system',
      ],
      mayNot: [
        ...each(WRITE, 'kuadrant.io:dnsrecords'),
        ...each(['update', 'patch'], 'kuadrant.io:dnsrecords/finalizers'),
        ...each(READ, 'kuadrant.io:dnshealthcheckprobes'),
        ...each(READ, 'secrets'),
        ...each(['create', 'patch'], 'events.k8s.io:events'),
        ...FORBIDDEN,
      ],
    })
  })
})
