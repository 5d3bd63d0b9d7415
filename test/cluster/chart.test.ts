import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { CHART, findHelm, helm, needsHelm, parseManifests } from '../support/helm.ts'
import { manifestOf } from '../support/kustomize.ts'
import { scanFences } from '../support/page.ts'
import { needs, needsRoot, run } from '../support/peer.ts'
import { LACKED, rightsInForce, SERVER, SYSTEM } from '../support/rights.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { startPod } from './pod.ts'

t.setTimeout(CLUSTER_TEST_MS)

/** Ample, for a machine on which other tests run too. */
const SEEN_MS = 120_000
const ZONE = ['--set', 'zones={k.example.com}']
const nameserver = (address: string) => [
  ...ZONE,
  '--set',
  `nameservers[0].name=ns1.k.example.com,nameservers[0].address=${address}`,
]
const EXCHANGE = (secret: string) => ['--set', `exchange.enabled=true,tsig.secret=${secret}`]

const skipped = { ...needsCluster(), ...needsHelm(), ...needsRoot(), ...needs('dig', 'kubectl') }
t.test('the chart in a cluster', skipped, async (t) => {
  const cluster = await Cluster.start(t)
  const flags = ['--kubeconfig', cluster.kubeconfig('admin'), '--namespace', SYSTEM]
  const must = async (...words: readonly string[]) => {
    const { code, stdout, stderr } = await helm(...words, ...flags)
    if (code !== 0) throw new Error(`helm ${words[0]}: ${stderr}`)
    return stdout
  }
  const upgrade = (...values: readonly string[]) => must('upgrade', 'sextant', CHART, ...values)
  const objects = async () => parseManifests(await must('get', 'manifest', 'sextant'))
  const configMap = `/api/v1/namespaces/${SYSTEM}/configmaps/sextant-server`
  const corefile = async (): Promise<string> => {
    return (await cluster.must('GET', configMap)).data.Corefile
  }
  const podOf = async (component: string) => {
    const path = `/apis/apps/v1/namespaces/${SYSTEM}/deployments/sextant-${component}`
    return (await cluster.must('GET', path)).spec.template
  }

  // With what a user has: a package of the chart, programs on PATH, and a configuration for them.
  const folder = temporaryDirectory(t)
  symlinkSync(CHART, join(folder, 'sextant-0.1.0-chart.tgz'))
  mkdirSync(join(folder, 'bin'))
  symlinkSync(findHelm()!, join(folder, 'bin/helm'))
  const asUser = async (command: string) => {
    const set = [
      `PATH=${folder}/bin:${process.env.PATH}`,
      `KUBECONFIG=${cluster.kubeconfig('admin')}`,
    ]
    const { code, stdout, stderr } = await run(
      'env',
      ['-C', folder, ...set, 'sh', '-c', command],
      SEEN_MS,
    )
    if (code !== 0) throw new Error(`${command}: ${stdout}${stderr}`)
    return stdout
  }
  const page = scanFences(readFileSync(join(root, 'README.md'), 'utf8'))
  const [install, wait, query] = page.find(({ file }) => file === 'chart')!.text.split('\n')

  const startMs = performance.now()
  await asUser(install!)
  const installedMs = performance.now()
  await cluster.servesCrds()
  await rightsInForce(cluster, 'server', SERVER(''))
  await cluster.must('POST', cluster.records('default'), {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' } },
    spec: {
      rootHost: 'app.k.example.com',
      endpoints: [{ dnsName: 'app.k.example.com', recordType: 'A', targets: ['192.0.2.1'] }],
    },
  })
  const server = await startPod(t, cluster, await objects(), 'server')
  const isWaited = asUser(wait!)
  await server.isReady()
  await reportAvailable(cluster, 'sextant-server')
  t.match(await isWaited, 'successfully rolled out')
  t.match(query, /^dig @ADDRESS/)
  t.match(await server.dig(...query!.split(' ').slice(2)), /^ns1\.k\.example\.com\. /)
  t.match(await server.dig('app.k.example.com'), /\tA\t192\.0\.2\.1$/m)
  const seconds = (ms: number) => (ms / 1000).toFixed(1)
  const [helmSeconds, answerSeconds] = [installedMs, performance.now()].map((ms) =>
    seconds(ms - startMs),
  )
  t.comment(`helm install ${helmSeconds} s, first answer after ${answerSeconds} s`)
  t.notMatch(server.output(), LACKED)

  await t.test('an edit of the Corefile restarts no Pod, and is applied', async (t) => {
    await upgrade(...nameserver('192.0.2.11'))
    const before = await podOf('server')
    await upgrade(...nameserver('192.0.2.12'))
    const edited = await corefile()
    t.match(edited, 'nameserver ns1.k.example.com 192.0.2.12')
    t.strictSame(await podOf('server'), before)
    const line = /^ *nameserver .*\n/m.exec(edited)![0]
    server.editCorefile((text) => text.replace(/^ *kuadrant \{\n/m, `$&${line}`))
    const isEdited = async () => /\t192\.0\.2\.12$/m.test(await server.dig('ns1.k.example.com'))
    await until(isEdited, 'the edited Corefile', SEEN_MS)
  })

  await t.test('an invalid Corefile is logged, and the old one serves', async (t) => {
    await upgrade('--set', 'server.corefile=k.example.com:1053 {')
    t.equal((await corefile()).trim(), 'k.example.com:1053 {')
    server.editCorefile(() => 'k.example.com:1053 {')
    await until(() => server.output().includes('Corefile parse failed'), 'the fault', SEEN_MS)
    t.match(await server.dig('ns1.k.example.com'), /\tA\t192\.0\.2\.12$/m)
    const events = `/apis/events.k8s.io/v1/namespaces/${SYSTEM}/events`
    const rejected = async () => {
      const { items } = await cluster.must('GET', events)
      return items.find(({ reason }: { reason: string }) => reason === 'CorefileRejected')
    }
    const isThere = async () => (await rejected()) !== undefined
    await until(isThere, 'the Event', SEEN_MS)
    t.match((await rejected()).note, /is in use: .*Corefile:1/)
  })

  await t.test('a new key restarts the exchange', async (t) => {
    await upgrade(...nameserver('192.0.2.12'), ...EXCHANGE('Zmlyc3Q='))
    const first = await podOf('exchange')
    await upgrade(...nameserver('192.0.2.12'), ...EXCHANGE('c2Vjb25k'))
    t.notSame((await podOf('exchange')).metadata.annotations, first.metadata.annotations)
  })

  await t.test('values that the schema rejects change nothing', async (t) => {
    const before = await must('history', 'sextant')
    const values = ['upgrade', 'sextant', CHART, ...ZONE, '--set', 'server.replicas=two']
    const { code, stderr } = await helm(...values, ...flags)
    t.equal(code, 1)
    t.match(stderr, /at '\/server\/replicas'/)
    t.equal(await must('history', 'sextant'), before)
  })

  await t.test('a rollback restores an earlier release', async (t) => {
    await must('rollback', 'sextant', '2')
    t.match(await corefile(), 'nameserver ns1.k.example.com 192.0.2.11')
    const exchange = `/apis/apps/v1/namespaces/${SYSTEM}/deployments/sextant-exchange`
    t.equal((await cluster.call('GET', exchange)).status, 404)
  })

  await t.test('the API server accepts the other components and options', async (t) => {
    const options = [
      'server.autoscaling.enabled=true',
      'clusterDns.enabled=true',
      'node.enabled=true',
      'clusterNetworks={10.0.0.0/8}',
      'operator.service.enabled=true',
      'server.rights.clusterDrains=true',
      'operator.controllers={dnsrecord,fqdnnetworkpolicy,policystatus}',
      'dashboards.enabled=true',
    ]
    await upgrade(...ZONE, ...EXCHANGE('Zmlyc3Q='), ...options.flatMap((one) => ['--set', one]))
    const scaler = manifestOf(await objects(), 'HorizontalPodAutoscaler', 'sextant-server')
    t.equal(scaler.spec.scaleTargetRef.name, 'sextant-server')
  })

  await t.test('uninstall removes all objects but keeps definitions and records', async (t) => {
    await must('uninstall', 'sextant')
    t.equal((await cluster.call('GET', configMap)).status, 404)
    const { status } = await cluster.call('GET', cluster.records('default', 'app'))
    t.equal(status, 200)
  })
})

/** Says of a Deployment that its Pods are there, as its controller does. */
async function reportAvailable(cluster: Cluster, name: string): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${SYSTEM}/deployments/${name}`
  const { metadata, spec } = await cluster.must('GET', path)
  const { replicas } = spec
  const counts = {
    replicas,
    updatedReplicas: replicas,
    availableReplicas: replicas,
    readyReplicas: replicas,
  }
  const status = { observedGeneration: metadata.generation, ...counts }
  await cluster.must('PATCH', `${path}/status`, { status })
}
