import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Test } from 'tap'
import { Cluster } from './cluster.ts'
import { deploy, writeKubeconfig } from './deployed.ts'
import type { Generation } from './fail-over-sites.ts'
import { RunningOperator } from './operator.ts'
import { CHOSEN as NAMESPACE, SYSTEM } from './rights.ts'
import { freePort, type RunningServer, startServer } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
const CHECK = { protocol: 'TCP', interval: '1s', failureThreshold: 2, successThreshold: 1 }
/** Seconds as docs/explanation/health.md promises. */
export const DOWN_S = CHECK.failureThreshold + 2 + 10
export const UP_S = CHECK.successThreshold + 1 + 10
const SEEN_MS = 120_000

/** What all sites know of each other. */
interface Ports {
  /** Of the nameserver of each site. */
  readonly dns: readonly number[]
  readonly application: number
}

/**
 * A site: nameserver and application; v2: a cluster with API server and operator, whose programs have the rights of
 * `deploy/`. v1: a plain server that reports no health.
 */
export class FailOverCluster {
  readonly number: number
  readonly address: string
  /** Missing at a v1 site. */
  readonly cluster: Cluster | undefined
  readonly #ports: Ports
  readonly #t: Test
  readonly #directory: string
  readonly #resolver = new Resolver({ timeout: 2000, tries: 3 })
  #server: RunningServer | undefined
  #operator: RunningOperator | undefined
  #application: Server | undefined
  #isUp = false

  constructor(t: Test, number: number, ports: Ports, cluster: Cluster | undefined) {
    this.#t = t
    this.number = number
    this.address = `127.0.0.${number + 2}`
    this.cluster = cluster
    this.#ports = ports
    this.#directory = temporaryDirectory(t)
    this.#resolver.setServers([`127.0.0.1:${this.#port}`])
    t.teardown(() => this.stopApplication())
  }

  get generation(): Generation {
    return this.cluster === undefined ? 'v1' : 'v2'
  }

  /** True if its nameserver runs. */
  get isUp(): boolean {
    return this.#isUp
  }

  get #port(): number {
    return this.#ports.dns[this.number]!
  }

  /** Creates what the operators of all sites read. */
  async prepare(): Promise<void> {
    if (this.cluster === undefined) return
    await deploy(this.cluster)
    const nameservers = this.#ports.dns.map((one) => `127.0.0.1:${one}`)
    await this.cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: { ZONES: ZONE, NAMESERVERS: nameservers.join() },
    })
    await this.cluster.must('POST', this.cluster.records(NAMESPACE), this.#record())
  }

  async start(): Promise<void> {
    await Promise.all([this.startApplication(), this.startServer(), this.startOperator()])
  }

  async startServer(): Promise<void> {
    const { cluster } = this
    const path = cluster && (await writeKubeconfig(cluster, 'sextant-server', this.#directory))
    const source = path === undefined ? 'manifests records' : `kubeconfig ${path}`
    const transfer = cluster === undefined ? '' : 'transfer {\n        to 127.0.0.1\n    }'
    const block = (zone: string) => `${zone}:{PORT} {
    bind 127.0.0.1
    kuadrant {
        ${source}
    }
    ${transfer}
}
`
    this.#server = await startServer(this.#t, {
      corefile: block('kdrnt') + block(ZONE),
      files: cluster === undefined ? { 'records/app.json': JSON.stringify(this.#record()) } : {},
      beside: { port: this.#port, directory: this.#directory },
      env: { WATCH_NAMESPACES: NAMESPACE },
    })
    this.#isUp = true
  }

  /** Starts the operator if none runs. */
  async startOperator(): Promise<void> {
    if (this.cluster === undefined || this.#operator?.isOver === false) return
    this.#operator = await RunningOperator.start(this.#t, {
      kubeconfig: await writeKubeconfig(this.cluster, 'sextant-operator', this.#directory),
      args: [
        `--watch-namespaces=${NAMESPACE}`,
        `--cluster-secret-namespace=${SYSTEM}`,
        `--site=site${this.number}`,
        '--leader-elect',
        `--leader-elect-namespace=${SYSTEM}`,
        '--probe-allow=127.0.0.0/8',
      ],
    })
    await this.#operator.prints(/lease \S+: ours/)
  }

  async startApplication(): Promise<void> {
    const server = createServer((socket) => socket.destroy())
    this.#application = server.listen(this.#ports.application, this.address)
    await once(server, 'listening')
  }

  async stopApplication(): Promise<void> {
    const application = this.#application
    this.#application = undefined
    if (application !== undefined) await new Promise((done) => application.close(done))
  }

  async killServer(): Promise<void> {
    this.#isUp = false
    this.#server?.process.kill('SIGKILL')
    await this.#server?.exited()
  }

  async killOperator(): Promise<void> {
    await this.#operator?.kill()
  }

  /** Returns the addresses of one answer, sorted; undefined if it does not answer. */
  async answer(): Promise<readonly string[] | undefined> {
    return this.#resolver.resolve4(HOST).then(
      (addresses) => addresses.sort(),
      ({ code }) => (code === 'ENODATA' || code === 'ENOTFOUND' ? [] : undefined),
    )
  }

  /** Waits until `local-app` exports what this cluster observed of an address of another one. */
  async observes(): Promise<void> {
    const { cluster } = this
    if (cluster === undefined) return
    const isThere = async (): Promise<boolean> => {
      const { spec } = await cluster.must('GET', cluster.records(NAMESPACE, 'local-app'))
      const text = JSON.stringify(spec.endpoints)
      return text.includes(`o2.${HOST}.kdrnt`) && text.includes('health=up')
    }
    await until(isThere, 'an observation in local-app', SEEN_MS)
  }

  /** Targets of the record that other programs read. */
  async mergedTargets(): Promise<readonly string[]> {
    const merged = await this.cluster!.must('GET', this.cluster!.records(NAMESPACE, 'merged-app'))
    return merged.spec.endpoints.flatMap(({ targets }: { targets: string[] }) => targets)
  }

  /** Names of the probes in its API. */
  async probes(): Promise<readonly string[]> {
    const path = this.cluster!.records(NAMESPACE, '', 'dnshealthcheckprobes')
    const { items } = await this.cluster!.must('GET', path)
    return items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
  }

  get output(): string {
    return `--- site${this.number}:\n${this.#operator?.output ?? ''}\n${this.#server?.output()}`
  }

  #record(): object {
    const endpoint = { dnsName: HOST, recordType: 'A', recordTTL: 1, targets: [this.address] }
    const healthCheck = { ...CHECK, port: this.#ports.application }
    return {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'app' },
      spec: { rootHost: HOST, endpoints: [endpoint], healthCheck },
    }
  }
}

/** Starts sites of these generations. They end with the test. */
export async function startFailOverClusters(
  t: Test,
  generations: readonly Generation[],
): Promise<readonly FailOverCluster[]> {
  let application = await freePort()
  // The definition does not allow every port.
  while (application > 49_151) application = await freePort()
  const dns: number[] = []
  for (const _ of generations) dns.push(await freePort())
  const clusters = await Promise.all(
    generations.map((one) => (one === 'v1' ? undefined : Cluster.start(t))),
  )
  const sites = clusters.map((cluster, i) => {
    return new FailOverCluster(t, i, { dns, application }, cluster)
  })
  for (const site of sites) {
    await site.prepare()
    await site.start()
  }
  return sites
}
