import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { SETTLE_MS } from '../../src/health/slow-start-bounds.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { deploy, writeKubeconfig } from '../support/deployed.ts'
import { LACKED, CHOSEN as NAMESPACE, SYSTEM } from '../support/rights.ts'
import { startServer } from '../support/server.ts'
import { SlowStartShare } from '../support/slow-start-share.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
/** A record that is served as it is; another operator sees to its probes. */
const PLAIN = `plain.${ZONE}`
const SEEN_MS = 120_000
/** The last that the definition lets be probed. */
const PORT_MAX = 49_151
/** An answer may take as long as the interval, and no three in a row take longer on a busy machine. */
const CHECK = { protocol: 'HTTP', path: '/healthz', interval: '3s', failureThreshold: 2 }
const RAMP_UP_MS = 8000
/** Questions of a batch, and how many of them at least are answered with what has its full weight: half of them by rights. */
const BATCH = 400
const FULL_MIN = 160

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

const weighted = (host: string, targets: readonly string[]) =>
  targets.map((target) => ({
    dnsName: host,
    recordType: 'A',
    recordTTL: 60,
    setIdentifier: target,
    providerSpecific: [{ name: 'weight', value: '100' }],
    targets: [target],
  }))

t.setTimeout(CLUSTER_TEST_MS)

/** Operator and nameserver have the rights of their accounts in `deploy/`, and no others. */
t.test('an operator probes what records ask for', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await deploy(cluster)
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: { ZONES: ZONE, NAMESERVERS: '127.0.0.1:1' },
  })
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'aws' },
    type: 'kuadrant.io/aws',
  })
  let one = await gateway('127.0.0.2')
  const { port } = one.address() as AddressInfo
  const two = await gateway('127.0.0.3', port)
  t.teardown(() => Promise.all([stop(one), stop(two)]))
  const directory = temporaryDirectory(t)
  const kubeconfig = await writeKubeconfig(cluster, 'sextant-operator', directory)
  const startOperator = (...args: readonly string[]) =>
    RunningOperator.start(t, {
      kubeconfig,
      args: [
        `--watch-namespaces=${NAMESPACE}`,
        `--cluster-secret-namespace=${SYSTEM}`,
        '--leader-elect',
        `--leader-elect-namespace=${SYSTEM}`,
        '--probe-allow=127.0.0.0/8',
        ...args,
      ],
    })
  const kuadrant = `kuadrant {
    kubeconfig ${await writeKubeconfig(cluster, 'sextant-server', directory)}
    slow-start ${RAMP_UP_MS / 1000}s
  }`
  const [first, server] = await Promise.all([
    startOperator(),
    startServer(t, {
      corefile: `${ZONE}:{PORT} {\n  bind 127.0.0.1\n  errors\n  ${kuadrant}\n}\n`,
      env: { WATCH_NAMESPACES: NAMESPACE },
    }),
  ])
  let operator = first
  const resolver = new Resolver({ timeout: 2000, tries: 3 })
  resolver.setServers([`127.0.0.1:${server.port}`])
  /** The address that is drawn; '' = none. */
  const draw = async (host: string): Promise<string> =>
    (await resolver.resolve4(host).catch(() => []))[0] ?? ''
  const drawn = async (host: string, count: number, address: string): Promise<number> => {
    let found = 0
    for (let i = 0; i < count; i++) if ((await draw(host)) === address) found++
    return found
  }
  const PROBES = cluster.records(NAMESPACE, '', 'dnshealthcheckprobes')
  // biome-ignore lint/suspicious/noExplicitAny: objects as the API has them
  const probes = async (): Promise<any[]> => (await cluster.must('GET', PROBES)).items
  const healthOf = async (name: string) =>
    (await probes()).find(({ metadata }) => metadata.name === name)?.status?.healthy
  const condition = async (name = 'app'): Promise<string> => {
    const { status } = await cluster.must('GET', cluster.records(NAMESPACE, name))
    const found = status?.conditions?.find(({ type }: { type: string }) => type === 'Healthy')
    return `${found?.status} ${found?.reason}: ${found?.message}`
  }
  const spec = (...targets: string[]) => ({
    rootHost: HOST,
    healthCheck: { ...CHECK, port },
    endpoints: weighted(HOST, targets),
  })

  await t.test('it makes a probe of each address, and reports the results', async (t) => {
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

  const tellOfPlain = (healthy: boolean) =>
    cluster.must('PATCH', `${PROBES}/plain-192.0.2.1/status`, {
      status: { healthy, consecutiveFailures: healthy ? 0 : 6, observedGeneration: 1 },
    })
  let seenMs = 0

  await t.test('a nameserver draws among what is up', async (t) => {
    await cluster.must('POST', cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'plain', labels: { 'kuadrant.io/coredns-zone-name': ZONE } },
      spec: {
        rootHost: PLAIN,
        providerRef: { name: 'aws' },
        endpoints: weighted(PLAIN, ['192.0.2.1', '192.0.2.2']),
      },
    })
    await cluster.must('POST', PROBES, {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSHealthCheckProbe',
      metadata: { name: 'plain-192.0.2.1', labels: { 'kuadrant.io/health-probes-owner': 'plain' } },
      spec: { address: '192.0.2.1', port: 443, protocol: 'HTTPS', interval: '1h' },
    })
    await tellOfPlain(true)
    for (const [host, ...addresses] of [
      [HOST, '127.0.0.2', '127.0.0.3'],
      [PLAIN, '192.0.2.1', '192.0.2.2'],
    ] as const) {
      for (const address of addresses) {
        await until(async () => (await draw(host)) === address, `${address} of ${host}`, SEEN_MS)
      }
    }
    seenMs = performance.now()
    t.pass('all of them')
  })

  await t.test('an address that stops is removed from the merged record', async (t) => {
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
      consecutiveFailures: CHECK.failureThreshold + 1,
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

  await t.test('without changes nothing is written, also over a restart', async (t) => {
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

  const AWAY = [
    { host: HOST, address: '127.0.0.2' },
    { host: PLAIN, address: '192.0.2.1' },
  ]

  await t.test('an address that is down is in no answer', async (t) => {
    await tellOfPlain(false)
    for (const { host, address } of AWAY) {
      const isAway = async () => (await drawn(host, 30, address)) === 0
      await until(isAway, `${address} to be away`, SEEN_MS)
      t.equal(await drawn(host, BATCH, address), 0, host)
    }
  })

  await t.test(
    'the address returns with slow start: merged by the operator, and served with its weight',
    async (t) => {
      // What joins a record is its full part of it until the record is that old.
      const isSettled = () => performance.now() > seenMs + SETTLE_MS + 1000
      await until(isSettled, 'the records to be whole', SETTLE_MS + SEEN_MS)
      const startMs = performance.now()
      one = await gateway('127.0.0.2', port)
      await tellOfPlain(true)
      const shares = AWAY.map((away) => ({ ...away, share: new SlowStartShare(RAMP_UP_MS) }))
      const drawBoth = async () => {
        for (const { host, address, share } of shares) {
          const isDrawn = (await draw(host)) === address
          share.note(isDrawn, performance.now() - startMs)
        }
        return performance.now() - startMs > RAMP_UP_MS
      }
      await until(drawBoth, 'the time to pass', RAMP_UP_MS + SEEN_MS)
      for (const { host, address, share } of shares) {
        t.ok(share.isWithinBound, `${host}: ${share}`)
        t.comment(`${host}: ${share}${share.isConclusive ? '' : ', too few to decide'}`)
        const isFull = async () => (await drawn(host, BATCH, address)) >= FULL_MIN
        await until(isFull, `${address} to be back`, SEEN_MS)
      }
      await until(async () => (await healthOf('app-127.0.0.2')) === true, 'it to be up', SEEN_MS)
      await until(
        async () => (await condition()).startsWith('True'),
        'the record to say so',
        SEEN_MS,
      )
      await cluster.must('DELETE', cluster.records(NAMESPACE, 'plain'))
      await cluster.must('DELETE', `${PROBES}/plain-192.0.2.1`)
    },
  )

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

  await t.test('without the Secret of its headers an address is not probed', async () => {
    const additionalHeadersRef = { name: 'token' }
    const healthCheck = { ...CHECK, port, additionalHeadersRef }
    await cluster.must('PATCH', cluster.records(NAMESPACE, 'ours'), { spec: { healthCheck } })
    const want =
      'Unknown NotProbed: Addresses that cannot be probed are served: 127.0.0.3: Secret token with headers'
    const isReported = async () => (await condition('ours')).startsWith(want)
    await until(isReported, want, SEEN_MS)
  })

  await t.test('an operator that does not probe removes its results', async (t) => {
    await cluster.must('POST', PROBES, {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSHealthCheckProbe',
      metadata: { name: 'mine', labels: { 'kuadrant.io/health-probes-owner': 'ours' } },
      spec: { address: '127.0.0.3', port, protocol: 'HTTP', interval: '1s' },
    })
    await until(async () => (await healthOf('mine')) === true, 'the probe of a user', SEEN_MS)
    await operator.stop()
    operator = await startOperator('--enable-probes=false')
    const isGone = async () => {
      const names = (await probes()).map(({ metadata }) => metadata.name)
      return names.sort().join() === 'mine,stray' && (await healthOf('mine')) === undefined
    }
    await until(isGone, 'the results to be removed', SEEN_MS)
    const isDisabled = async () => (await condition('ours')).startsWith('Unknown ProbesDisabled')
    await until(isDisabled, 'the condition', SEEN_MS)
    const [mine] = (await probes()).filter(({ metadata }) => metadata.name === 'mine')
    t.strictSame(mine.status, { reason: 'the operator runs with --enable-probes=false' })
  })

  await t.test('no right was missing', async (t) => {
    for (const output of [first.output, operator.output, server.output()]) {
      t.match(output, /\S/)
      t.notMatch(output, LACKED)
    }
  })
})
