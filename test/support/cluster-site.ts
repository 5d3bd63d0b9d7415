import { writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Cluster } from './cluster.ts'
import { deploy, writeKubeconfig } from './deployed.ts'
import type { HostProcess, NetworkHost } from './host-network.ts'
import { CHOSEN, SYSTEM } from './rights.ts'
import { root } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

/** As pods have it. */
const ENVIRONMENT = { WATCH_NAMESPACES: CHOSEN, POD_NAMESPACE: SYSTEM }
const MAIN = join(root, 'dist/main.js')
/** Ample, for a machine on which other tests run too. */
const START_MS_MAX = 300_000

/** Has 127.0.0.1 of its host lead to a socket in the file system, which all hosts share. */
const NEAR_END = `const net = require('node:net')
const [port, path] = process.argv.slice(1)
net.createServer((near) => {
  const far = net.connect(path)
  near.pipe(far).pipe(near)
  const end = () => (near.destroy(), far.destroy())
  for (const socket of [near, far]) socket.on('error', end).on('close', end)
}).listen(Number(port), '127.0.0.1', () => console.log('listening'))`

/** One cluster of several: its API server, and its nameserver and operator on a host of the network. */
export class ClusterSite {
  readonly cluster: Cluster
  readonly host: NetworkHost
  /** Where its nameserver is. */
  readonly address: string
  readonly directory: string
  #server: HostProcess | undefined
  #operator: HostProcess | undefined

  private constructor(cluster: Cluster, host: NetworkHost, address: string, directory: string) {
    this.cluster = cluster
    this.host = host
    this.address = address
    this.directory = directory
  }

  /** Starts the API server, with what `deploy/` has for the namespace `gateways`. */
  static async start(t: Test, host: NetworkHost, address: string): Promise<ClusterSite> {
    const cluster = await Cluster.start(t)
    await deploy(cluster)
    const site = new ClusterSite(cluster, host, address, temporaryDirectory(t))
    await leadToApi(t, cluster, host, site.directory)
    return site
  }

  /** Starts the nameserver, with the rights of its account and the Corefile that `compose` makes for its kubeconfig. */
  async serve(compose: (kubeconfig: string) => string): Promise<void> {
    const corefile = compose(await writeKubeconfig(this.cluster, 'sextant-server', this.directory))
    writeFileSync(join(this.directory, 'Corefile'), corefile)
    const command = [process.execPath, MAIN, 'serve', '-conf', 'Corefile']
    this.#server = this.host.start(command, { cwd: this.directory, env: ENVIRONMENT })
  }

  /** Starts the operator, with the rights of its account. */
  async operate(...flags: readonly string[]): Promise<void> {
    const path = await writeKubeconfig(this.cluster, 'sextant-operator', this.directory)
    const kubeconfig = ['--kubeconfig', path]
    const command = [process.execPath, MAIN, 'operator', '--leader-elect', ...kubeconfig, ...flags]
    this.#operator = this.host.start(command, { cwd: this.directory, env: ENVIRONMENT })
  }

  get server(): HostProcess {
    if (this.#server === undefined) throw new Error('no nameserver was started')
    return this.#server
  }

  /** What its processes printed. */
  output(): string {
    const parts = { server: this.#server, operator: this.#operator }
    return Object.entries(parts)
      .map(([name, part]) => `--- ${name} of ${this.address}:\n${part?.output() ?? ''}`)
      .join('\n')
  }

  records(name = ''): string {
    return this.cluster.records(CHOSEN, name)
  }

  probes(name = ''): string {
    return this.cluster.records(CHOSEN, name, 'dnshealthcheckprobes')
  }
}

/** Leads the host's 127.0.0.1 to the API server, whose network is that of the test. `directory`: for a socket. */
export async function leadToApi(
  t: Test,
  cluster: Cluster,
  host: NetworkHost,
  directory: string,
): Promise<void> {
  const port = Number(new URL(cluster.url).port)
  const path = join(directory, 'api.socket')
  const sockets = new Set<Socket>()
  const farEnd = createServer((far) => {
    const api = connect(port, '127.0.0.1')
    far.pipe(api).pipe(far)
    const end = (): void => {
      for (const socket of [far, api]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [far, api]) {
      sockets.add(socket)
      socket.on('error', end).on('close', end)
    }
  })
  t.teardown(() => {
    farEnd.close()
    for (const socket of sockets) socket.destroy()
  })
  await new Promise<void>((done) => farEnd.listen(path, done))
  const nearEnd = host.start([process.execPath, '-e', NEAR_END, String(port), path])
  await until(() => nearEnd.output().includes('listening'), 'the tunnel', START_MS_MAX)
}
