import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { applyAll } from '../support/apply.ts'
import { Cluster } from '../support/cluster.ts'
import { composeManifests } from '../support/kustomize.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const NAMESPACE = 'gateways'
/** Where operators and the Secrets with kubeconfigs are. */
const SYSTEM = 'sextant-system'
/** Long: other tests run at the same time. */
const SEEN_MS = 120_000

/** A DNSRecord, or a part of one, as the API has it. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the API says
export type Found = any

/** One cluster of several that delegate to each other, and its operator. */
export class DelegationSite {
  readonly name: string
  readonly cluster: Cluster
  /** UID of its namespace kube-system. */
  readonly uid: string
  readonly #test: Test
  readonly #flags: readonly string[]
  #operator: RunningOperator | undefined

  private constructor(
    t: Test,
    name: string,
    cluster: Cluster,
    uid: string,
    flags: readonly string[],
  ) {
    this.#test = t
    this.name = name
    this.cluster = cluster
    this.uid = uid
    this.#flags = flags
  }

  /** Starts the API server, and creates the account that other clusters use. Does not start the operator. */
  static async start(t: Test, name: string, ...flags: readonly string[]): Promise<DelegationSite> {
    const cluster = await Cluster.start(t)
    await cluster.createNamespace(NAMESPACE)
    await applyAll(cluster, composeManifests('deploy/remote-cluster'))
    const { metadata } = await cluster.must('GET', '/api/v1/namespaces/kube-system')
    return new DelegationSite(t, name, cluster, metadata.uid, flags)
  }

  /** Creates the default provider Secret of `zone`, which a primary needs. */
  async provide(zone: string): Promise<void> {
    await this.cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: { ZONES: zone },
    })
  }

  get operator(): RunningOperator {
    if (this.#operator === undefined) throw new Error(`no operator of ${this.name} was started`)
    return this.#operator
  }

  async operate(): Promise<void> {
    this.#operator = await RunningOperator.start(this.#test, {
      kubeconfig: this.cluster.kubeconfig('admin'),
      args: [
        `--watch-namespaces=${NAMESPACE}`,
        `--cluster-secret-namespace=${SYSTEM}`,
        '--min-requeue-time=1s',
        ...this.#flags,
      ],
    })
  }

  /** A kubeconfig for other clusters, with all files inline. */
  async remoteKubeconfig(): Promise<string> {
    const account = `/api/v1/namespaces/${SYSTEM}/serviceaccounts/sextant-remote-cluster/token`
    const { status } = await this.cluster.must('POST', account, { spec: {} })
    const ca = readFileSync(this.cluster.caFile).toString('base64')
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'main',
      clusters: [
        { name: 'c', cluster: { server: this.cluster.url, 'certificate-authority-data': ca } },
      ],
      users: [{ name: 'u', user: { token: status.token } }],
      contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
    })
  }

  /** Makes this cluster follow `other`. */
  async follow(other: DelegationSite): Promise<void> {
    await this.putKubeconfig(other.name, await other.remoteKubeconfig())
  }

  async putKubeconfig(name: string, kubeconfig: string): Promise<void> {
    await this.cluster.must('POST', this.secrets(), {
      metadata: { name, labels: { 'kuadrant.io/multicluster-kubeconfig': 'true' } },
      stringData: { kubeconfig },
    })
  }

  secrets(name = ''): string {
    return `/api/v1/namespaces/${SYSTEM}/secrets${name === '' ? '' : `/${name}`}`
  }

  /** `more`: of the spec. */
  async create(
    name: string,
    rootHost: string,
    endpoints: readonly object[],
    more: object = {},
  ): Promise<void> {
    await this.cluster.must('POST', this.cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name },
      spec: { rootHost, delegate: true, endpoints, ...more },
    })
  }

  async edit(name: string, endpoints: readonly object[]): Promise<void> {
    await this.cluster.must('PATCH', this.#record(name), { spec: { endpoints } })
  }

  async annotate(name: string, annotations: object): Promise<void> {
    await this.cluster.must('PATCH', this.#record(name), { metadata: { annotations } })
  }

  async remove(name: string): Promise<void> {
    await this.cluster.must('DELETE', this.#record(name))
  }

  async read(name: string): Promise<Found | undefined> {
    const { status, body } = await this.cluster.call('GET', this.#record(name))
    return status === 200 ? body : undefined
  }

  async list(): Promise<readonly Found[]> {
    return (await this.cluster.must('GET', this.cluster.records(NAMESPACE))).items
  }

  async authoritative(): Promise<readonly Found[]> {
    return (await this.list()).filter(({ metadata }) =>
      metadata.name.startsWith('authoritative-record-'),
    )
  }

  /** `name TYPE target,…` of all endpoints of authoritative records except ownership TXT records; sorted. */
  async served(): Promise<string> {
    const lines = (await this.authoritative())
      .flatMap(({ spec }) => spec.endpoints as readonly Found[])
      .filter(({ recordType }) => recordType !== 'TXT')
      .map(({ dnsName, recordType, targets }) => `${dnsName} ${recordType} ${targets}`)
    return lines.sort().join('; ')
  }

  /** `status reason: message` of the Ready condition; '' if it is missing. */
  async ready(name: string): Promise<string> {
    return printReady((await this.read(name))?.status)
  }

  /** The same of the status that the cluster `by` wrote. */
  async readyBy(name: string, by: DelegationSite): Promise<string> {
    return printReady((await this.read(name))?.status?.remoteRecordStatuses?.[by.uid])
  }

  /** Waits until `isSo`. The error contains all records and the operator's output. */
  async wait(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await until(isSo, `${what} in ${this.name}`, SEEN_MS).catch(async (error: Error) => {
      const served = await this.served().catch(() => 'unknown')
      const records = await this.#describe().catch(() => 'unknown')
      const output = this.#operator?.output ?? ''
      throw new Error(`${error.message}:\nserved: ${served}\nrecords:\n${records}\n${output}`)
    })
  }

  async serves(want: string): Promise<void> {
    await this.wait(`"${want}"`, async () => (await this.served()) === want)
  }

  async says(name: string, want: RegExp): Promise<void> {
    await this.wait(`${want} of ${name}`, async () => want.test(await this.ready(name)))
  }

  async isGone(name: string): Promise<void> {
    await this.wait(`${name} to be gone`, async () => (await this.read(name)) === undefined)
  }

  /** Versions of all records, by name. */
  async versions(): Promise<readonly string[]> {
    return (await this.list()).map(
      ({ metadata }) => `${this.name} ${metadata.name} ${metadata.resourceVersion}`,
    )
  }

  /** The Ready condition of each record: one line for its own, one for each other cluster's. */
  async #describe(): Promise<string> {
    const lines = (await this.list()).flatMap(({ metadata, status }) => {
      const { name, generation, resourceVersion, deletionTimestamp = 'no' } = metadata
      const words = Object.entries<Found>(status?.remoteRecordStatuses ?? {})
      return [
        `${name}: generation ${generation}, version ${resourceVersion}, deleted ${deletionTimestamp}`,
        `  itself, of ${status?.observedGeneration}: ${printReady(status)}`,
        ...words.map(([id, said]) => `  ${id}, of ${said.observedGeneration}: ${printReady(said)}`),
      ]
    })
    return lines.join('\n')
  }

  #record(name: string): string {
    return this.cluster.records(NAMESPACE, name)
  }
}

export function address(dnsName: string, ...targets: readonly string[]): object {
  return { dnsName, recordType: 'A', recordTTL: 60, targets }
}

function printReady(status: Found): string {
  const conditions: readonly Found[] = status?.conditions ?? []
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready === undefined ? '' : `${ready.status} ${ready.reason}: ${ready.message}`
}
