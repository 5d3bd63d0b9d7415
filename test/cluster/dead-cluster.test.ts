import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { deploy, writeKubeconfig } from '../support/deployed.ts'
import { RunningOperator } from '../support/operator.ts'
import { LACKED, CHOSEN as NAMESPACE, SYSTEM } from '../support/rights.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
const CHECK = { protocol: 'TCP', interval: '2s', failureThreshold: 3, successThreshold: 2 }
/** As docs/explanation/health.md promises. */
const DOWN_MS = 2000 * (CHECK.failureThreshold + 2) + 10_000
const UP_MS = 2000 * (CHECK.successThreshold + 1) + 10_000
/** What other tests on the machine may add. */
const BUSY_MS = 20_000
const SEEN_MS = 120_000
const ADDRESSES = ['127.0.0.2', '127.0.0.3'] as const

/** A cluster: API server, nameserver, operator and application. Its programs have the rights of `deploy/`. */
class Site {
  readonly cluster: Cluster
  readonly name: string
  readonly address: string
  readonly ports: { readonly dns: number; readonly application: number }
  readonly #t: Test
  readonly #directory: string
  readonly #resolver = new Resolver({ timeout: 2000, tries: 3 })
  #server: RunningServer | undefined
  #operator: RunningOperator | undefined
  #application: Server | undefined

  constructor(t: Test, cluster: Cluster, number: number, ports: Site['ports']) {
    this.#t = t
    this.cluster = cluster
    this.name = `site${number}`
    this.address = ADDRESSES[number]!
    this.ports = ports
    this.#directory = temporaryDirectory(t)
    this.#resolver.setServers([`127.0.0.1:${ports.dns}`])
    t.teardown(() => this.stopApplication())
  }

  async startServer(): Promise<void> {
    const kubeconfig = await writeKubeconfig(this.cluster, 'sextant-server', this.#directory)
    const block = (zone: string) => `${zone}:{PORT} {
    bind 127.0.0.1
    kuadrant {
        kubeconfig ${kubeconfig}
    }
    transfer {
        to 127.0.0.1
    }
}
`
    this.#server = await startServer(this.#t, {
      corefile: block('kdrnt') + block(ZONE),
      beside: { port: this.ports.dns, directory: this.#directory },
      env: { WATCH_NAMESPACES: NAMESPACE },
    })
  }

  async startOperator(): Promise<void> {
    this.#operator = await RunningOperator.start(this.#t, {
      kubeconfig: await writeKubeconfig(this.cluster, 'sextant-operator', this.#directory),
      args: [
        `--watch-namespaces=${NAMESPACE}`,
        `--cluster-secret-namespace=${SYSTEM}`,
        `--site=${this.name}`,
        '--leader-elect',
        `--leader-elect-namespace=${SYSTEM}`,
        '--probe-allow=127.0.0.0/8',
        '--silent-site=remove 5s',
      ],
    })
    await this.#operator.prints(/lease \S+: ours/)
  }

  async startApplication(): Promise<void> {
    const server = createServer((socket) => socket.destroy())
    this.#application = server.listen(this.ports.application, this.address)
    await once(server, 'listening')
  }

  async stopApplication(): Promise<void> {
    const application = this.#application
    this.#application = undefined
    if (application !== undefined) await new Promise((done) => application.close(done))
  }

  async killServer(): Promise<void> {
    this.#server?.process.kill('SIGKILL')
    await this.#server?.exited()
  }

  async killOperator(): Promise<void> {
    await this.#operator?.kill()
  }

  async resolve(): Promise<string> {
    return (await this.#resolver.resolve4(HOST).catch(() => [])).sort().join()
  }

  /** Waits until the answer is that; returns how many milliseconds it took. */
  async answers(want: readonly string[]): Promise<number> {
    const startMs = performance.now()
    let got = ''
    const isThere = async () => (got = await this.resolve()) === want.join()
    await until(isThere, `${this.name} to answer ${want}`, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}, it is ${got}:\n${this.output}`)
    })
    return performance.now() - startMs
  }

  get output(): string {
    return `${this.#operator?.output}\n${this.#server?.output()}`
  }
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('a dead cluster loses its traffic at the other one', needsCluster(), async (t) => {
  const [first, second] = await Promise.all([Cluster.start(t), Cluster.start(t)])
  const ports = [await freePort(), await freePort()]
  // The definition does not allow every port.
  let application = await freePort()
  while (application > 49_151) application = await freePort()
  const sites = [first, second].map((cluster, i) => {
    return new Site(t, cluster, i, { dns: ports[i]!, application })
  })
  const [here, there] = sites as [Site, Site]
  for (const site of sites) {
    const { cluster } = site
    await deploy(cluster)
    await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: { ZONES: ZONE, NAMESERVERS: ports.map((one) => `127.0.0.1:${one}`).join() },
    })
    const endpoint = { dnsName: HOST, recordType: 'A', recordTTL: 1, targets: [site.address] }
    await cluster.must('POST', cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'app' },
      spec: { rootHost: HOST, endpoints: [endpoint], healthCheck: { ...CHECK, port: application } },
    })
    await Promise.all([site.startApplication(), site.startServer(), site.startOperator()])
  }
  const within = (what: string, takenMs: number, boundMs: number): void => {
    const taken = `${what}: ${Math.round(takenMs)} ms, promised are ${boundMs} ms`
    t.comment(taken)
    t.ok(takenMs <= boundMs + BUSY_MS, taken)
  }
  for (const site of sites) await site.answers(ADDRESSES)
  const observes = async (): Promise<boolean> => {
    const { spec } = await first.must('GET', first.records(NAMESPACE, 'local-app'))
    const text = JSON.stringify(spec.endpoints)
    return text.includes(`o2.${HOST}.kdrnt`) && text.includes('health=up')
  }
  await until(observes, 'an observation in local-app', SEEN_MS)
  const observed = await first.must('GET', first.records(NAMESPACE, '', 'dnshealthcheckprobes'))
  t.equal(observed.items.length, 1, 'the addresses of peers need no objects')

  // A site whose nameserver is silent, and whose application answers.
  await there.killServer()
  let isServed = true
  const endMs = performance.now() + 15_000
  const isOver = async () => {
    if ((await here.resolve()) !== ADDRESSES.join()) isServed = false
    return performance.now() >= endMs
  }
  await until(isOver, '15 s to pass', SEEN_MS)
  t.ok(isServed, 'a silent site whose application answers is served')

  await Promise.all([there.stopApplication(), there.killOperator()])
  within('the dead address is taken out', await here.answers([here.address]), DOWN_MS)
  t.match(here.output, /127\.0\.0\.3 of app\.k\.example\.com is taken out: /)
  const merged = await first.must('GET', first.records(NAMESPACE, 'merged-app'))
  t.strictSame(
    merged.spec.endpoints.map(({ targets }: { targets: string[] }) => targets),
    [[here.address]],
    'other programs get only what works',
  )
  // Another operator takes over.
  await here.killOperator()
  await here.startOperator()
  t.equal(await here.resolve(), here.address, 'a new operator changes nothing')

  await Promise.all([there.startApplication(), there.startServer()])
  within('the address is served again', await here.answers(ADDRESSES), UP_MS)
  await there.startOperator()
  await there.answers(ADDRESSES)
  for (const site of sites) t.notMatch(site.output, LACKED, 'no right was missing')
})
