import { networkInterfaces } from 'node:os'
import type { Test } from 'tap'
import type { HostPort } from '../../src/dns/host-port.ts'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import { nameKey, scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { applyAll } from '../support/apply.ts'
import { Cluster, readCrd } from '../support/cluster.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { LACKED } from '../support/rights.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

export const DELTA10 = 'networking.delta10.nl/v1alpha4'
export const GKE = 'networking.gke.io/v1alpha3'
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
export const POLICIES = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies'
/** Ample: a busy machine takes long. */
export const SEEN_MS = 120_000
const HTTPS = [{ port: 443, protocol: 'TCP' }]
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices'

/** An address of this machine that EndpointSlices accept: not loopback. */
export function ownAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}

/** A DNS server with addresses that the test can change. */
export class Zone {
  readonly server: ScriptedServer
  readonly #records = new Map<string, { addresses: readonly string[]; ttl: number }>()

  private constructor(server: ScriptedServer) {
    this.server = server
  }

  static async open(t: Test, host: string): Promise<Zone> {
    const server = await ScriptedServer.open(t, () => undefined, host)
    const zone = new Zone(server)
    server.script = ({ question }) => {
      const found = zone.#records.get(nameKey(question!.name))
      if (found === undefined) return 3
      return found.addresses.flatMap((text) => {
        const { bytes, family } = scanAddress(text)!
        const type = family === 1 ? RRType.A : RRType.AAAA
        if (type !== question!.type) return []
        const { name } = question!
        return [{ owner: name, type, rrclass: RRClass.IN, ttlSeconds: found.ttl, rdata: bytes }]
      })
    }
    return zone
  }

  set(name: string, ttl: number, ...addresses: string[]): void {
    this.#records.set(nameKey(scanName(`${name}.`)!), { addresses, ttl })
  }

  /** Number of queries for a name. */
  count(name: string, type: number = RRType.A): number {
    const key = nameKey(scanName(`${name}.`)!)
    return this.server.asked.filter(
      ({ query: { question } }) => nameKey(question!.name) === key && question!.type === type,
    ).length
  }
}

/** The namespace `shop` of a real API server, with FQDNNetworkPolicies and their operator. */
export class Shop {
  readonly cluster: Cluster
  readonly #t: Test
  readonly #operators: RunningOperator[] = []

  private constructor(t: Test, cluster: Cluster) {
    this.#t = t
    this.cluster = cluster
  }

  /**
   * Starts the API server with both definitions. Its user `viewer`, as which the operator runs, has the rights
   * of `deploy/fqdn-network-policy` and no others.
   */
  static async start(t: Test, serverArgs: readonly string[] = []): Promise<Shop> {
    const cluster = await Cluster.start(t, serverArgs)
    const shop = new Shop(t, cluster)
    await cluster.createNamespace('shop')
    for (const group of ['networking.delta10.nl', 'networking.gke.io']) {
      await cluster.must('POST', DEFINITIONS, readCrd(`fqdnnetworkpolicy/${group}`))
    }
    await applyAll(cluster, composeManifests('deploy/fqdn-network-policy').map(forViewer))
    const paths = [shop.path(), shop.path('', GKE), SLICES]
    const areServed = async () => {
      const calls = paths.map((path) => cluster.call('GET', path, undefined, { user: 'viewer' }))
      return (await Promise.all(calls)).every(({ status }) => status === 200)
    }
    await until(areServed, 'the definitions and the rights', SEEN_MS)
    return shop
  }

  /** Adds an endpoint to the Service of cluster DNS, with the ports that kube-dns has. */
  async addServer(name: string, { host, port }: HostPort, tcpPort = port): Promise<void> {
    await this.cluster.must('POST', SLICES, {
      metadata: { name, labels: { 'kubernetes.io/service-name': 'kube-dns' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [host] }],
      ports: [
        { name: 'dns', port, protocol: 'UDP' },
        { name: 'dns-tcp', port: tcpPort, protocol: 'TCP' },
      ],
    })
  }

  async removeServer(name: string): Promise<void> {
    await this.cluster.must('DELETE', `${SLICES}/${name}`)
  }

  async startOperator(...args: readonly string[]): Promise<RunningOperator> {
    const kubeconfig = this.cluster.kubeconfig('viewer')
    const controllers = '--controllers=fqdnnetworkpolicy'
    const operator = await RunningOperator.start(this.#t, {
      kubeconfig,
      args: [controllers, ...args],
    })
    this.#operators.push(operator)
    return operator
  }

  /** Fails if an operator lacked a right, or had an internal error. */
  checkOutput(t: Test): void {
    for (const { output } of this.#operators) {
      t.notMatch(output, LACKED)
      t.notMatch(output, /panic|unhandled|TypeError/i)
    }
  }

  path(name = '', api = DELTA10): string {
    return `/apis/${api}/namespaces/shop/fqdnnetworkpolicies${name === '' ? '' : `/${name}`}`
  }

  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async create(name: string, spec: object, metadata: object = {}, api = DELTA10): Promise<any> {
    return this.cluster.must('POST', this.path('', api), {
      apiVersion: api,
      kind: 'FQDNNetworkPolicy',
      metadata: { name, ...metadata },
      spec: { podSelector: {}, ...spec },
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async status(name: string, api = DELTA10): Promise<any> {
    return (await this.cluster.must('GET', this.path(name, api))).status ?? {}
  }

  /** undefined = there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  async networkPolicy(name: string): Promise<any> {
    const reply = await this.cluster.call('GET', `${POLICIES}/${name}`)
    return reply.status === 200 ? reply.body : undefined
  }

  /** The addresses of each rule. `none` = there is no NetworkPolicy. */
  async cidrs(name: string): Promise<string> {
    const spec = (await this.networkPolicy(name))?.spec
    if (spec === undefined) return 'none'
    type Rule = Readonly<Record<'to' | 'from', { ipBlock: { cidr: string } }[] | undefined>>
    const rule = ({ to, from }: Rule): string =>
      (to ?? from)?.map(({ ipBlock }) => ipBlock.cidr).join(' ') ?? 'all'
    return [...(spec.egress ?? []), ...(spec.ingress ?? [])].map(rule).join(' | ')
  }

  async has(name: string, want: string): Promise<void> {
    let got = ''
    const isSo = async () => (got = await this.cidrs(name)) === want
    await until(isSo, `${name} to allow ${want}`, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}, it allows ${got}`)
    })
  }

  async isIn(name: string, state: string, api = DELTA10): Promise<void> {
    const isSo = async () => (await this.status(name, api)).state === state
    await until(isSo, `${name} to be ${state}`, SEEN_MS)
  }
}

/** A rule that allows HTTPS to these names. */
export const to = (...fqdns: string[]) => ({ egress: [{ to: [{ fqdns }], ports: HTTPS }] })

/** Gives the rights of the operator's account to the user `viewer`. */
function forViewer(manifest: Manifest): Manifest {
  if (manifest.subjects === undefined) return manifest
  const apiGroup = 'rbac.authorization.k8s.io'
  return { ...manifest, subjects: [{ apiGroup, kind: 'User', name: 'viewer' }] }
}
