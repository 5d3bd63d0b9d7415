import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { RunningOperator } from '../support/operator.ts'
import { until } from '../support/until.ts'

const NAMESPACE = 'team'
const HOST = 'app.k.example.com'
const SEEN_MS = 30_000
/** The last that the definition lets be probed. */
const PORT_MAX = 49_151

/** Answers on a port of `address`; 0 = any that the definition allows. */
async function gateway(address: string, port = 0): Promise<Server> {
  for (;;) {
    const server = createServer((_, response) => response.end()).listen(port, address)
    await once(server, 'listening')
    if ((server.address() as AddressInfo).port <= PORT_MAX) return server
    server.close()
  }
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
}

t.test('an operator probes what records ask for', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace(NAMESPACE)
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: { ZONES: 'k.example.com', NAMESERVERS: '127.0.0.1:1' },
  })
  let one = await gateway('127.0.0.2')
  const { port } = one.address() as AddressInfo
  const two = await gateway('127.0.0.3', port)
  t.teardown(() => Promise.all([stop(one), stop(two)]))
  const startOperator = () =>
    RunningOperator.start(t, {
      kubeconfig: cluster.kubeconfig('admin'),
      args: [`--watch-namespaces=${NAMESPACE}`, '--site=here', '--probe-allow=127.0.0.0/8'],
    })
  let operator = await startOperator()
  const PROBES = cluster.records(NAMESPACE, '', 'dnshealthcheckprobes')
  // biome-ignore lint/suspicious/noExplicitAny: objects as the API has them
  const probes = async (): Promise<any[]> => (await cluster.must('GET', PROBES)).items
  const healthOf = async (name: string) =>
    (await probes()).find(({ metadata }) => metadata.name === name)?.status?.healthy
  const condition = async (): Promise<string> => {
    const { status } = await cluster.must('GET', cluster.records(NAMESPACE, 'app'))
    const found = status?.conditions?.find(({ type }: { type: string }) => type === 'Healthy')
    return `${found?.status} ${found?.reason}: ${found?.message}`
  }
  const spec = (...targets: string[]) => ({
    rootHost: HOST,
    healthCheck: { protocol: 'HTTP', port, path: '/healthz', interval: '1s', failureThreshold: 1 },
    endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets }],
  })

  await t.test('it makes a probe of each address, and tells what it finds', async (t) => {
    await cluster.must('POST', cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'app' },
      spec: spec('127.0.0.2', '127.0.0.3'),
    })
    const areUp = async () =>
      (await healthOf('app-127.0.0.2')) === true && (await healthOf('app-127.0.0.3')) === true
    await until(areUp, 'both to be up', SEEN_MS)
    await until(async () => (await condition()).startsWith('True'), 'the record to say so', SEEN_MS)
    t.equal(await condition(), 'True AllChecksPassed: All healthchecks succeeded')
    const found = await probes()
    t.match(found, [
      {
        metadata: { name: 'app-127.0.0.2', labels: { 'kuadrant.io/health-probes-owner': 'app' } },
        spec: { address: '127.0.0.2', hostname: HOST, port, allowInsecureCertificate: true },
        status: { healthy: true, consecutiveFailures: 0, status: 200, observedGeneration: 1 },
      },
      { metadata: { name: 'app-127.0.0.3' }, status: { healthy: true } },
    ])
    t.match(found[0].metadata.ownerReferences, [
      { kind: 'DNSRecord', name: 'app', controller: true },
    ])
  })

  await t.test('one that stops leaves the merged record', async (t) => {
    await stop(one)
    const want = 'False SomeChecksPassed: Not healthy addresses: [127.0.0.2]'
    await until(async () => (await condition()) === want, want, SEEN_MS)
    const merged = async () => {
      const { spec } = await cluster.must('GET', cluster.records(NAMESPACE, 'merged-app'))
      return spec.endpoints.flatMap(({ targets }: { targets: string[] }) => targets).join()
    }
    await until(async () => (await merged()) === '127.0.0.3', 'the other alone', SEEN_MS)
    t.match((await probes())[0].status, {
      healthy: false,
      consecutiveFailures: 2,
      reason: 'connection refused',
      status: 0,
    })
  })

  const versions = async () => (await probes()).map(({ metadata }) => metadata.resourceVersion)
  const looks = async () => {
    const at = (outcome: string) =>
      `sextant_probe_looks_total{source="kubernetes",outcome="${outcome}"}`
    return (
      ((await operator.metric(at('unhealthy'))) ?? 0) +
      ((await operator.metric(at('healthy'))) ?? 0)
    )
  }

  await t.test('as long as nothing changes nothing is written, over a restart too', async (t) => {
    const before = await versions()
    const start = await looks()
    await until(async () => (await looks()) > start + 6, 'more looks', SEEN_MS)
    t.strictSame(await versions(), before)
    await operator.stop()
    operator = await startOperator()
    await until(async () => (await looks()) > 4, 'looks after the restart', SEEN_MS)
    t.strictSame(await versions(), before)
    t.equal(await healthOf('app-127.0.0.2'), false)
  })

  await t.test('it comes back', async (t) => {
    one = await gateway('127.0.0.2', port)
    await until(async () => (await healthOf('app-127.0.0.2')) === true, 'it to be up', SEEN_MS)
    await until(async () => (await condition()).startsWith('True'), 'the record to say so', SEEN_MS)
    t.pass('and the record says so')
  })

  await t.test('an address that leaves the record takes its probe along', async () => {
    await cluster.must('PATCH', cluster.records(NAMESPACE, 'app'), { spec: spec('127.0.0.3') })
    await until(async () => (await probes()).length === 1, 'one probe', SEEN_MS)
  })

  await t.test('with the record they all go', async () => {
    await cluster.must('DELETE', cluster.records(NAMESPACE, 'app'))
    await until(async () => (await probes()).length === 0, 'no probe', SEEN_MS)
  })

  await t.test('without a provider of ours nothing is probed', async (t) => {
    const before = await looks()
    await cluster.must('POST', cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'elsewhere' },
      spec: { ...spec('127.0.0.3'), providerRef: { name: 'aws' } },
    })
    await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: 'aws' },
      type: 'kuadrant.io/aws',
    })
    await cluster.must('POST', PROBES, {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSHealthCheckProbe',
      metadata: { name: 'stray', labels: { 'kuadrant.io/health-probes-owner': 'nobody' } },
      spec: { address: '127.0.0.3', port, protocol: 'HTTP', interval: '1s' },
    })
    await cluster.must('POST', cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'ours' },
      spec: { ...spec('127.0.0.3'), rootHost: HOST },
    })
    await until(async () => (await looks()) > before + 3, 'looks at what is ours', SEEN_MS)
    t.equal(await healthOf('stray'), undefined)
    t.strictSame((await probes()).map(({ metadata }) => metadata.name).sort(), [
      'ours-127.0.0.3',
      'stray',
    ])
  })
})
