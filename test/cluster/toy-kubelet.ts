import { join } from 'node:path'
import type { Test } from 'tap'
import type { Cluster } from '../support/cluster.ts'
import { leadToApi } from '../support/cluster-site.ts'
import { writeKubeconfig } from '../support/deployed.ts'
import type { HostProcess, NetworkHost } from '../support/host-network.ts'
import { type Manifest, manifestOf } from '../support/kustomize.ts'
import { CHOSEN, SYSTEM } from '../support/rights.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { ConfigVolume, environmentOf, STATE } from './pod.ts'

const MAIN = join(root, 'dist/main.js')
const WEB = join(root, 'test/support/fail-over-gateway.mjs')
/** What a process prints when it has started. */
const UP = /^linux\/|Sextant-\S+ operator$|^ready$/m
/** What a Service does: its port leads to the port of the container. */
const SERVICE = `table ip service {
  chain in {
    type nat hook prerouting priority -100
    udp dport 53 redirect to :1053
    tcp dport 53 redirect to :1053
  }
}`

/** Where the pods of a Deployment run, whose Service has the same name. */
export interface Place {
  readonly host: NetworkHost
  readonly address: string
}

/** The process of a Deployment. */
interface Running {
  readonly process: HostProcess
  /** Updates its ConfigMap volume, if it has one. */
  readonly refresh: () => Promise<void>
}

/**
 * Does for the Deployments and Services of one cluster what a cloud does: a Deployment with replicas is one process on a
 * host of its own, whose address its Service gets. Deployments of other images are an HTTP server.
 */
export class ToyKubelet {
  readonly #t: Test
  readonly #cluster: Cluster
  readonly #places: ReadonlyMap<string, Place>
  readonly #directory: string
  readonly #running = new Map<string, Running>()
  readonly #ending = new Map<string, HostProcess>()
  #printed = ''
  #isStopped = false

  private constructor(t: Test, cluster: Cluster, places: ReadonlyMap<string, Place>) {
    this.#t = t
    this.#cluster = cluster
    this.#places = places
    this.#directory = temporaryDirectory(t)
  }

  /** `places`: by name of the Deployment. It works until the test ends. */
  static async start(
    t: Test,
    cluster: Cluster,
    places: ReadonlyMap<string, Place>,
  ): Promise<ToyKubelet> {
    const kubelet = new ToyKubelet(t, cluster, places)
    for (const { host } of places.values()) {
      await leadToApi(t, cluster, host, temporaryDirectory(t))
      const printed = await host.run('nft', SERVICE)
      if (printed !== '') throw new Error(printed)
    }
    const work = until(() => kubelet.#reconcile(), 'the end of the test', Number.POSITIVE_INFINITY)
    t.teardown(async () => {
      kubelet.#isStopped = true
      await work
    })
    return kubelet
  }

  output(): string {
    const running = [...this.#running].map(
      ([name, { process }]) => `--- ${name}:\n${process.output()}`,
    )
    return [this.#printed, ...running].join('\n')
  }

  /** Returns whether the test has ended. */
  async #reconcile(): Promise<boolean> {
    for (const namespace of [SYSTEM, CHOSEN]) {
      const deployments = await this.#list(`/apis/apps/v1/namespaces/${namespace}/deployments`)
      for (const deployment of deployments) await this.#settle(deployment)
      const services = `/api/v1/namespaces/${namespace}/services`
      for (const { metadata, spec, status } of await this.#list(services)) {
        const place = this.#places.get(metadata.name)
        if (spec.type !== 'LoadBalancer' || !place || status.loadBalancer.ingress) continue
        const loadBalancer = { ingress: [{ ip: place.address }] }
        const path = `${services}/${metadata.name}/status`
        await this.#cluster.must('PATCH', path, { status: { loadBalancer } })
      }
    }
    return this.#isStopped
  }

  async #list(path: string): Promise<Manifest[]> {
    return (await this.#cluster.must('GET', path)).items
  }

  async #settle({ metadata, spec, status }: Manifest): Promise<void> {
    const { name, namespace = '' } = metadata
    const place = this.#places.get(name)
    if (place === undefined) return
    const running = this.#running.get(name)
    if (running !== undefined && hasEnded(running.process)) {
      this.#printed += running.process.output()
      this.#running.delete(name)
    } else if (running !== undefined && spec.replicas === 0) {
      this.#running.delete(name)
      this.#ending.set(name, running.process)
      void running.process.end('SIGTERM').then(() => this.#ending.delete(name))
    } else if (running !== undefined) await running.refresh()
    else if (spec.replicas > 0 && !this.#ending.has(name)) {
      this.#running.set(name, await this.#start(name, spec.template.spec, place))
    }
    const { generation } = metadata as { generation?: number }
    const isUp = UP.test(this.#running.get(name)?.process.output() ?? '')
    const count = isUp ? spec.replicas : 0
    if (status.observedGeneration === generation && status.replicas === count) return
    const counts = ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas']
    const next = Object.fromEntries(counts.map((key) => [key, count]))
    await this.#cluster.must(
      'PATCH',
      `/apis/apps/v1/namespaces/${namespace}/deployments/${name}/status`,
      { status: { ...next, observedGeneration: generation } },
    )
  }

  async #start(name: string, pod: Manifest['spec'], { host, address }: Place): Promise<Running> {
    const [container] = pod.containers
    if (container.args === undefined) {
      const web = [process.execPath, WEB, address, '80']
      return { process: host.start(web), refresh: async () => {} }
    }
    const kubeconfig = await writeKubeconfig(this.#cluster, pod.serviceAccountName, this.#directory)
    const manifests = await this.#configuration()
    const env = environmentOf(manifests, SYSTEM, container)
    const cwd = temporaryDirectory(this.#t)
    const volume = new ConfigVolume(join(cwd, 'config'))
    let before = ''
    const refresh = async (found?: Manifest[]): Promise<void> => {
      const { Corefile } = manifestOf(
        found ?? (await this.#configuration()),
        'ConfigMap',
        name,
      ).data
      if (Corefile === before) return
      before = Corefile
      const source = `kuadrant {\n        kubeconfig ${kubeconfig}`
      volume.write(Corefile.replaceAll(STATE, cwd).replace('kuadrant {', source))
    }
    const isServer = pod.volumes !== undefined
    if (isServer) await refresh(manifests)
    const args = isServer ? ['serve', '-conf', volume.file] : container.args
    const command = [process.execPath, MAIN, ...args]
    return {
      process: host.start(command, { cwd, env: { ...env, KUBECONFIG: kubeconfig } }),
      refresh: isServer ? refresh : async () => {},
    }
  }

  /** The ConfigMaps and Secrets of our namespace, as a manifest has them. */
  async #configuration(): Promise<Manifest[]> {
    const core = `/api/v1/namespaces/${SYSTEM}`
    const configMaps = await this.#list(`${core}/configmaps`)
    const secrets = await this.#list(`${core}/secrets`)
    return [
      ...configMaps.map((one) => ({ ...one, kind: 'ConfigMap' })),
      ...secrets.map((one) => {
        const data: [string, string][] = Object.entries(one.data ?? {})
        const texts = data.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])
        return { ...one, kind: 'Secret', stringData: Object.fromEntries(texts) }
      }),
    ]
  }
}

function hasEnded({ process }: HostProcess): boolean {
  return process.exitCode !== null || process.signalCode !== null
}
