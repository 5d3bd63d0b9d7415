import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests } from '../support/kustomize.ts'
import { needs, needsRoot, run } from '../support/peer.ts'
import { each, LACKED, may, READ, rightsInForce, WRITE } from '../support/rights.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { startPod } from './pod.ts'

t.setTimeout(CLUSTER_TEST_MS)

const OVERLAY = 'deploy/overlays/cluster-dns'
const SERVICES = '/api/v1/namespaces/kube-system/services'
const SELECTOR = {
  'app.kubernetes.io/name': 'sextant',
  'app.kubernetes.io/component': 'kube-dns',
}

/** The Service of a cluster that kubeadm installed. */
const KUBEADM = {
  metadata: {
    name: 'kube-dns',
    labels: { 'k8s-app': 'kube-dns', 'kubernetes.io/name': 'CoreDNS' },
  },
  spec: {
    clusterIP: '10.0.0.10',
    selector: { 'k8s-app': 'kube-dns' },
    ports: [
      { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
      { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 53 },
      { name: 'metrics', port: 9153, protocol: 'TCP', targetPort: 9153 },
    ],
  },
}

t.test('the cluster DNS of deploy/', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)

  await t.test('its account reads what it serves, and nothing else', async (t) => {
    await applyAll(cluster, composeManifests(OVERLAY))
    const names = ['namespaces', 'services', 'discovery.k8s.io:endpointslices']
    const rights = names.flatMap((name) => each(['list', 'watch'], name))
    await rightsInForce(cluster, 'kube-dns', rights, 'kube-system')
    const forbidden = [
      ...each(WRITE, 'services kube-system'),
      ...each([...READ, ...WRITE], 'pods kube-system'),
      ...each([...READ, ...WRITE], 'secrets kube-system'),
      ...each([...READ, ...WRITE], 'configmaps kube-system'),
      ...each(['create'], 'serviceaccounts/token kube-system'),
    ]
    for (const right of forbidden) {
      t.notOk(await may(cluster, 'kube-dns', right, 'kube-system'), `not ${right}`)
    }
  })

  await t.test('the Service of CoreDNS moves to it and back', needs('kubectl'), async (t) => {
    const directory = temporaryDirectory(t)
    const kubeconfig = cluster.kubeconfig('admin')
    const kubectl = (...words: readonly string[]) => {
      const flags = ['--kubeconfig', kubeconfig, '--cache-dir', join(directory, 'cache')]
      return run('kubectl', [...flags, ...words])
    }
    const applyService = async (clusterIP: string) => {
      const [service] = composeManifests('deploy/kube-dns-service')
      const file = join(directory, 'service.json')
      writeFileSync(file, JSON.stringify({ ...service, spec: { ...service!.spec, clusterIP } }))
      return kubectl('apply', '--server-side', '--force-conflicts', '-f', file)
    }
    await cluster.must('POST', SERVICES, KUBEADM)
    const { stdout: saved } = await kubectl(
      '-n',
      'kube-system',
      'get',
      'service',
      'kube-dns',
      '-o',
      'yaml',
    )
    const file = join(directory, 'kube-dns.yaml')
    writeFileSync(file, saved.replace(/^ +resourceVersion:.*\n/m, ''))

    t.match(await applyService('10.0.0.11'), { code: 1, stderr: /may not change once set/ })
    t.match((await cluster.must('GET', `${SERVICES}/kube-dns`)).spec.selector, {
      'k8s-app': 'kube-dns',
    })
    t.match(await applyService('10.0.0.10'), { code: 0 })
    const { spec } = await cluster.must('GET', `${SERVICES}/kube-dns`)
    t.strictSame(spec.selector, SELECTOR)
    t.strictSame(
      spec.ports.map(({ port, protocol, targetPort }: Record<string, unknown>) => [
        port,
        protocol,
        targetPort,
      ]),
      [
        [53, 'UDP', 'dns'],
        [53, 'TCP', 'dns-tcp'],
        [9153, 'TCP', 'metrics'],
      ],
    )
    t.match(await kubectl('replace', '-f', file), { code: 0 })
    const { spec: restored } = await cluster.must('GET', `${SERVICES}/kube-dns`)
    t.strictSame(restored.selector, KUBEADM.spec.selector)
    t.strictSame(restored.ports, KUBEADM.spec.ports)
    t.match(await applyService('10.0.0.10'), { code: 0 })
  })

  const pods = { ...needsRoot(), ...needs('dig') }
  await t.test(
    'its Pod answers for the cluster, and asks the resolvers of its node',
    pods,
    async (t) => {
      const upstream = await ScriptedServer.open(t, ({ question }) => {
        const rdata = Uint8Array.of(192, 0, 2, 1)
        return [
          { owner: question!.name, type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 60, rdata },
        ]
      })
      const manifests = composeManifests(OVERLAY).map((manifest) => {
        if (manifest.kind !== 'ConfigMap') return manifest
        const Corefile = manifest.data.Corefile.replace(
          '/etc/resolv.conf',
          `127.0.0.1:${upstream.port}`,
        )
        return { ...manifest, data: { Corefile } }
      })
      const server = await startPod(t, cluster, manifests, 'kube-dns')
      await server.isReady()
      t.match(await server.dig('kubernetes.default.svc.cluster.local'), /\bA\t10\.0\.0\.1$/m)
      t.match(
        await server.dig('-x', '10.0.0.1'),
        /\bPTR\tkubernetes\.default\.svc\.cluster\.local\.$/m,
      )
      t.match(await server.dig('www.example.com'), /\bA\t192\.0\.2\.1$/m)
      t.match(await server.dig('www.example.com', '+tcp'), /\bA\t192\.0\.2\.1$/m)
      t.match(await server.dig('none.default.svc.cluster.local'), /status: NXDOMAIN/)
      t.notMatch(server.output(), LACKED)
    },
  )
})
