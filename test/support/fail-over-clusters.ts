import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Cluster } from './cluster.ts'
import { leadToApi } from './cluster-site.ts'
import { deploy, writeKubeconfig } from './deployed.ts'
import { ROWS, type Row } from './fail-over-rows.ts'
import {
  DNS_PORT,
  type FailOverOptions,
  FailOverSite,
  FailOverSites,
  recordOf,
  type SiteParts,
  serverOf,
  ZONE,
} from './fail-over-sites.ts'
import type { HostProcess } from './host-network.ts'
import { CHOSEN as NAMESPACE, SYSTEM } from './rights.ts'
import { layFiles, root } from './server.ts'
import { until } from './until.ts'

const OPERATOR = [process.execPath, join(root, 'dist/main.js'), 'operator']
const SEEN_MS = 120_000
const ENVIRONMENT = { WATCH_NAMESPACES: NAMESPACE, POD_NAMESPACE: SYSTEM }

/** A site whose record is in a cluster of its own: beside the nameserver, an operator on the host, with the rights of `deploy/`. */
export class FailOverCluster extends FailOverSite {
  readonly cluster: Cluster
  readonly #host: string
  #operator: HostProcess | undefined
  #operated = ''

  private constructor(parts: SiteParts, cluster: Cluster) {
    super(parts, ENVIRONMENT)
    this.cluster = cluster
    this.#host = `${parts.options.names[0]}.${ZONE}`
  }

  /** Starts the API server, with what its programs read. */
  static async create(t: Test, parts: SiteParts): Promise<FailOverCluster> {
    const { host, directory, options } = parts
    const cluster = await Cluster.start(t)
    await deploy(cluster)
    const nameservers = options.generations.map((_, one) => `${serverOf(one)}:${DNS_PORT}`)
    await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: { ZONES: ZONE, NAMESERVERS: nameservers.join() },
    })
    await cluster.must('POST', cluster.records(NAMESPACE), recordOf(parts))
    mkdirSync(directory, { recursive: true })
    const kubeconfig = await writeKubeconfig(cluster, 'sextant-server', directory)
    layFiles(directory, { Corefile: corefileOf(kubeconfig) })
    await leadToApi(t, cluster, host, directory)
    return new FailOverCluster(parts, cluster)
  }

  override async start(): Promise<void> {
    await super.start()
    await this.startOperator()
  }

  override get output(): string {
    return `${super.output}\n--- operator:\n${this.#operated}${this.#operator?.output() ?? ''}`
  }

  /** Starts the operator if none runs, and waits until it leads. */
  async startOperator(): Promise<void> {
    if (this.#operator !== undefined && this.#operator.process.exitCode === null) return
    this.#operated += this.#operator?.output() ?? ''
    const operator = this.host.start(
      [
        ...OPERATOR,
        `--kubeconfig=${await writeKubeconfig(this.cluster, 'sextant-operator', this.directory)}`,
        `--cluster-secret-namespace=${SYSTEM}`,
        `--site=site${this.number}`,
        '--leader-elect',
        `--leader-elect-namespace=${SYSTEM}`,
        '--probe-allow=10.9.0.0/16',
        // The port of its default belongs to the gateway.
        '--metrics-bind-address=0',
      ],
      { cwd: this.directory, env: ENVIRONMENT },
    )
    this.#operator = operator
    await until(() => /lease \S+: ours/.test(operator.output()), 'the lease', SEEN_MS).catch(
      (error: Error) => {
        throw new Error(`${error.message}\n${this.output}`)
      },
    )
  }

  async killOperator(): Promise<void> {
    const operator = this.#operator
    this.#operator = undefined
    await operator?.end('SIGKILL')
    this.#operated += operator?.output() ?? ''
  }

  /** Waits until `local-app` exports what this cluster observed of an address of another one. */
  async observes(): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      const { cluster } = this
      const { spec } = await cluster.must('GET', cluster.records(NAMESPACE, 'local-app'))
      const text = JSON.stringify(spec.endpoints)
      return text.includes(`o2.${this.#host}.kdrnt`) && text.includes('health=up')
    }
    await until(isThere, 'an observation in local-app', SEEN_MS)
  }

  /** Targets of the record that other programs read. */
  async mergedTargets(): Promise<readonly string[]> {
    const merged = await this.cluster.must('GET', this.cluster.records(NAMESPACE, 'merged-app'))
    return merged.spec.endpoints.flatMap(({ targets }: { targets: string[] }) => targets)
  }

  /** Names of the probes in its API. */
  async probes(): Promise<readonly string[]> {
    const path = this.cluster.records(NAMESPACE, '', 'dnshealthcheckprobes')
    const { items } = await this.cluster.must('GET', path)
    return items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
  }
}

function corefileOf(kubeconfig: string): string {
  return ['kdrnt', ZONE]
    .map(
      (zone) => `${zone}:${DNS_PORT} {
    transfer {
        to *
    }
    kuadrant {
        kubeconfig ${kubeconfig}
    }
}
`,
    )
    .join('')
}

/** Returns a site that is a cluster. */
export function clusterAt({ sites }: FailOverSites, number: number): FailOverCluster {
  const site = sites[number]
  if (!(site instanceof FailOverCluster)) throw new Error(`site${number} is no cluster`)
  return site
}

const both = ROWS.find(({ fault }) => fault === 'both die')!

export const WHOLE_SITE_DIES: Row = {
  ...both,
  fault: 'its operator dies, too',
  begin: async (of, last) => {
    await Promise.all([both.begin(of, last), clusterAt(of, last).killOperator()])
  },
}

/** Rows of the partition table that only clusters have. */
export const CLUSTER_ROWS: readonly Row[] = [
  WHOLE_SITE_DIES,
  {
    fault: 'the API server of a site dies',
    begin: (of, last) => clusterAt(of, last).cluster.killServer(),
    end: async (of, last) => {
      await clusterAt(of, last).cluster.startServer()
      // As Kubernetes does: an operator that cannot renew its lease ends.
      await clusterAt(of, last).startOperator()
    },
    two: {},
    three: {},
  },
  {
    fault: 'the operator of a site dies',
    begin: (of, last) => clusterAt(of, last).killOperator(),
    end: (of, last) => clusterAt(of, last).startOperator(),
    two: {},
    three: {},
  },
]

/** Starts sites whose v2 ones are clusters, and waits until they know the addresses of each other. They end with the test. */
export async function startFailOverClusters(
  t: Test,
  options: Omit<FailOverOptions, 'create'>,
): Promise<FailOverSites> {
  const of = await FailOverSites.start(t, { ...options, create: FailOverCluster.create })
  for (const site of of.sites) if (site instanceof FailOverCluster) await site.observes()
  return of
}
