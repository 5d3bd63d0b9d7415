import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import type { ServerStatus } from '../../src/base/telemetry/status.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { getText } from '../support/get-text.ts'
import { needs, run } from '../support/peer.ts'
import { SYSTEM } from '../support/rights.ts'
import { freePort, root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { startForwardingKubelet } from './forwarding-kubelet.ts'

const CORE = '/api/v1'
const IN_SYSTEM = `${CORE}/namespaces/${SYSTEM}`
const LABELS = { 'app.kubernetes.io/name': 'sextant', 'app.kubernetes.io/component': 'server' }
/** The Pod in which `admin` listens, and one in which nothing does. */
const PODS = ['sextant-server-1', 'sextant-server-2'] as const
const RECORD = {
  metadata: { name: 'app', labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' } },
  spec: {
    rootHost: 'app.k.example.com',
    endpoints: ['dublin', 'paris'].map((setIdentifier, i) => ({
      dnsName: 'app.k.example.com',
      recordType: 'A',
      recordTTL: 60,
      setIdentifier,
      targets: [`192.0.2.${i + 1}`],
      providerSpecific: [{ name: 'weight', value: '100' }],
    })),
  },
}

/** The Role of docs/how-to/kubectl-plugin.md, bound to the user `viewer`, who may also list the records. */
async function grant(cluster: Cluster): Promise<void> {
  const page = readFileSync(join(root, 'docs/how-to/kubectl-plugin.md'), 'utf8')
  const role = parse(/```yaml\n(.*?)```/s.exec(page)![1]!)
  const api = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}`
  await cluster.must('POST', `${api}/roles`, role)
  await cluster.must('POST', `${api}/rolebindings`, {
    metadata: { name: role.metadata.name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role.metadata.name },
    subjects: [{ kind: 'User', name: 'viewer' }],
  })
  await cluster.grant('viewer')
}

/** What a kubelet and a controller of Deployments would make: a node, and the Pods on it. */
async function putPods(cluster: Cluster, kubeletPort: number): Promise<void> {
  await cluster.must('POST', `${CORE}/nodes`, { metadata: { name: 'node' } })
  await cluster.must('PATCH', `${CORE}/nodes/node/status`, {
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
    },
  })
  await cluster.must('POST', `${IN_SYSTEM}/serviceaccounts`, { metadata: { name: 'default' } })
  for (const name of PODS) {
    await cluster.must('POST', `${IN_SYSTEM}/pods`, {
      metadata: { name, labels: LABELS },
      spec: {
        nodeName: 'node',
        automountServiceAccountToken: false,
        containers: [{ name: 'server', image: 'sextant' }],
        volumes: [{ name: 'corefile', configMap: { name: 'sextant-server' } }],
      },
    })
    await cluster.must('PATCH', `${IN_SYSTEM}/pods/${name}/status`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    })
  }
}

interface Stage {
  readonly cluster: Cluster
  /** The status, by the quick way. */
  readonly status: () => Promise<ServerStatus>
  /** Runs `kubectl sextant ARGS` as a user. */
  kubectl(args: readonly string[], user?: 'viewer' | 'stranger'): ReturnType<typeof run>
}

async function stage(t: Test): Promise<Stage> {
  const cluster = await Cluster.start(t, ['--kubelet-preferred-address-types=InternalIP'])
  await cluster.installCrds()
  for (const name of [SYSTEM, 'gateways']) await cluster.createNamespace(name)
  await cluster.must('POST', cluster.records('gateways'), {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    ...RECORD,
  })
  const adminPort = await freePort()
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    kuadrant {
        kubeconfig ${cluster.kubeconfig('admin')}
        cluster-drains ${SYSTEM}/sextant-drains
    }
    admin 127.0.0.1:${adminPort}
}
`
  const maps = { 'sextant-drains': { drains: '' }, 'sextant-server': { Corefile: corefile } }
  for (const [name, data] of Object.entries(maps)) {
    const text = JSON.stringify(data).replaceAll('{PORT}', '1053')
    await cluster.must('POST', `${IN_SYSTEM}/configmaps`, {
      metadata: { name },
      data: JSON.parse(text),
    })
  }
  await grant(cluster)
  const connects = (pod: string) => pod === PODS[0]
  await putPods(cluster, await startForwardingKubelet(t, { connects }))
  await startServer(t, { corefile })
  const folder = temporaryDirectory(t)
  const plugin = join(folder, 'kubectl-sextant')
  // As npm and krew make it: a program of that name in PATH.
  const program = join(root, 'dist/cli/kubectl-sextant.js')
  writeFileSync(plugin, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`)
  chmodSync(plugin, 0o755)
  return {
    cluster,
    status: async () => JSON.parse((await getText(`http://127.0.0.1:${adminPort}/v1/status`)).text),
    kubectl: (args, user = 'viewer') => {
      const env = [`PATH=${folder}:${process.env.PATH}`, `KUBECONFIG=${cluster.kubeconfig(user)}`]
      const port = ['--port', String(adminPort)]
      return run('env', [...env, 'kubectl', 'sextant', ...args, ...port])
    },
  }
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('kubectl sextant', { ...needs('kubectl'), ...needsCluster() }, async (t) => {
  const { cluster, kubectl, status } = await stage(t)
  const data = async (...args: string[]) =>
    JSON.parse((await kubectl([...args, '-o', 'json'])).stdout)
  const isServed = async () => (await status()).zones[0]?.records === 1
  await until(isServed, 'the record')

  await t.test('asks a server through the API server', async (t) => {
    const shown = await kubectl(['status'])
    t.match(shown, { code: 0, stderr: '', stdout: /^server +Sextant [\s\S]*^k\.example\.com\. /m })
    t.notMatch(shown.stdout, '\u001b')
    t.strictSame(await data('peers'), { peers: [], quorums: [] })
    const explained = await kubectl(['explain', 'app.k.example.com', '--client', '192.0.2.9'])
    t.match(explained, {
      code: 0,
      stdout: /^app\.k\.example\.com\. A for 192\.0\.2\.9\/32: NOERROR/,
    })
  })

  await t.test('asks each Pod', async (t) => {
    const all = await kubectl(['status', '--all'])
    t.equal(all.code, 1)
    t.match(all.stdout, /^server +Sextant /)
    t.match(
      all.stderr,
      /^Pod sextant-server-1:\nPod sextant-server-2:\nPod sextant-server-2: .*connection refused.*; add the directive admin/,
    )
    t.match(await kubectl(['status', '--pod', 'x']), {
      code: 1,
      stderr: /the Pods are sextant-server-1, /,
    })
    t.match(await kubectl(['status', '-n', 'gateways']), { code: 1, stderr: /forbidden/ })
  })

  await t.test('drains at all servers, and ends the drain', async (t) => {
    const drain = await kubectl(['drain', 'id:dublin', '--reason', 'racks move'])
    t.match(drain, {
      code: 0,
      stderr: '',
      stdout: /^drained [0-9a-f]{8} id:dublin by .*: racks move$/m,
    })
    const isDrained = async () => (await status()).endpoints[0]?.state === 'drained'
    await until(isDrained, 'the drain')
    const text = (await cluster.must('GET', `${IN_SYSTEM}/configmaps/sextant-drains`)).data.drains
    t.match(text, /^id:dublin .*reason="racks move"$/m)
    t.match(await kubectl(['drain', 'id:']), { code: 1 })
    t.match(await kubectl(['undrain', 'id:dublin']), {
      code: 0,
      stdout: /^undrained [0-9a-f]{8} id:dublin/,
    })
    await until(async () => (await status()).endpoints.length === 0, 'the end of the drain')
    t.match(await kubectl(['undrain', 'id:dublin']), { code: 1, stderr: /no drain in force/ })
    const missing = await kubectl(['drain', 'id:dublin', '--drains', 'others'])
    t.match(missing, { code: 1, stderr: /others|forbidden/ })
  })

  await t.test('compares the records of the cluster with others', async (t) => {
    const folder = t.testdir({
      'app.json': JSON.stringify({
        apiVersion: 'kuadrant.io/v1alpha1',
        kind: 'DNSRecord',
        ...RECORD,
        metadata: { ...RECORD.metadata, namespace: 'gateways' },
        spec: { ...RECORD.spec, endpoints: RECORD.spec.endpoints.slice(0, 1) },
      }),
    })
    const changed = await kubectl(['what-if', '--manifests', folder])
    t.match(changed, { code: 0, stdout: /^app\.k\.example\.com\. A changes for 100 % of IPv4/ })
  })

  await t.test('a user without the rights', async (t) => {
    t.match(await kubectl(['status'], 'stranger'), { code: 1, stderr: /pods is forbidden/ })
    t.match(await kubectl(['drain', 'id:x'], 'stranger'), { code: 1, stderr: /forbidden/ })
    const role = `/apis/rbac.authorization.k8s.io/v1/namespaces/${SYSTEM}/roles/sextant-kubectl`
    await cluster.must('PATCH', role, {
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }],
    })
    const isRefused = async () => (await kubectl(['status'])).code === 1
    await until(isRefused, 'the refusal')
    t.match(await kubectl(['status']), {
      code: 1,
      stderr: /403.*you need the rights to get and create pods\/portforward/,
    })
  })
})
