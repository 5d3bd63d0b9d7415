import { networkInterfaces } from 'node:os'
import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { type Answered, ask, questionOf } from '../../src/client/ask.ts'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import { lowerName, printName, scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { monitoredRows } from '../../src/egress/sinks/ovn/address-set-row.ts'
import { OvsdbClient } from '../../src/ovsdb/client.ts'
import type { OvsdbRow } from '../../src/ovsdb/datum.ts'
import { scanRemotes } from '../../src/ovsdb/remote.ts'
import { applyAll } from '../support/apply.ts'
import { Cluster, readCrd } from '../support/cluster.ts'
import { freePort } from '../support/free-port.ts'
import { getText } from '../support/get-text.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { NorthboundServer } from '../support/ovsdb.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

export const OWNER = 'sextant'
/** Namespaces of the firewalls. */
export const TEAMS: readonly string[] = ['a', 'b', 'c', 'd']
/** Ample: a busy machine takes long. */
export const SEEN_MS = 180_000
/** A loopback address: the zone may answer with it, and no policy may grant it. */
export const DENIED = '127.0.0.66'
const NAMESPACE = 'ovn-kubernetes'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const RESOLVERS = `/apis/network.openshift.io/v1alpha1/namespaces/${NAMESPACE}/dnsnameresolvers`
const FIREWALLS = (namespace: string): string =>
  `/apis/k8s.ovn.org/v1/namespaces/${namespace}/egressfirewalls`
const POLICIES = (api: string): string => `/apis/${api}/namespaces/${TEAMS[0]}`
const FQDN_POLICIES = `${POLICIES('networking.delta10.nl/v1alpha4')}/fqdnnetworkpolicies`
const NETWORK_POLICIES = `${POLICIES('networking.k8s.io/v1')}/networkpolicies`
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices'
const QUERY_MS = 3000

/** An address of this machine that EndpointSlices accept: not loopback. */
export const HOST: string | undefined = Object.values(networkInterfaces())
  .flatMap((found) => found ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

/** What a name has now. */
export interface NameRecords {
  readonly ips: readonly string[]
  readonly ttlSeconds: number
  readonly rcode: number
}

/** The upstream of the DNS server: names that the test changes, and what was answered so far. */
export class ChangingZone {
  readonly records = new Map<string, NameRecords>()
  /** Addresses of all answers so far, by name. */
  readonly #answered = new Map<string, Set<string>>()
  readonly #counts = new Map<string, number>()
  #server: ScriptedServer | undefined

  static async open(t: Test): Promise<ChangingZone> {
    const zone = new ChangingZone()
    zone.#server = await ScriptedServer.open(t, ({ question }) => {
      const { name, type } = question!
      return zone.#answer(printName(lowerName(name)), name, type)
    })
    return zone
  }

  get address(): string {
    return this.#server!.address
  }

  start(): Promise<void> {
    return this.#server!.start()
  }

  stop(): Promise<void> {
    return this.#server!.stop()
  }

  /** Number of queries for A of a name. */
  count(dnsName: string): number {
    return this.#counts.get(dnsName) ?? 0
  }

  /** True if an answer for the name had the address; for a wildcard, one for any name below it. */
  explains(dnsName: string, ip: string): boolean {
    if (ip === DENIED) return false
    if (this.#answered.get(dnsName)?.has(ip) === true) return true
    if (!dnsName.startsWith('*.')) return false
    return [...this.#answered].some(([name, ips]) => isBelow(name, dnsName) && ips.has(ip))
  }

  #answer(dnsName: string, owner: Uint8Array, type: number) {
    if (type === RRType.A) this.#counts.set(dnsName, this.count(dnsName) + 1)
    const { ips, ttlSeconds, rcode } = this.records.get(dnsName) ?? NO_RECORDS
    if (rcode !== Rcode.NOERROR) return rcode
    const wanted = ips.filter((ip) => ip.includes(':') === (type === RRType.AAAA))
    const answered = this.#answered.get(dnsName) ?? new Set()
    this.#answered.set(dnsName, answered)
    return wanted.map((ip) => {
      answered.add(ip)
      return { owner, type, rrclass: RRClass.IN, ttlSeconds, rdata: scanAddress(ip)!.bytes }
    })
  }
}

const NO_RECORDS: NameRecords = { ips: [], ttlSeconds: 0, rcode: Rcode.NXDOMAIN }

/** True if `wildcard` selects `name`. */
export function isBelow(name: string, wildcard: string): boolean {
  return `*${name.slice(name.indexOf('.'))}` === wildcard
}

/** A FQDNNetworkPolicy and its NetworkPolicy as the API has them. */
export interface PolicyState {
  /** Addresses that the NetworkPolicy allows; undefined = there is none. */
  readonly allowed: ReadonlySet<string> | undefined
  /** Addresses of all names in the status. */
  readonly stored: ReadonlySet<string>
  /** Of the status: `Active`. */
  readonly state: string
}

/** A DNSNameResolver as the API has it. */
export interface Resolver {
  readonly dnsName: string
  readonly uid: string
  readonly version: string
  /** `ends`: of the TTLs, by address; milliseconds since 1970. */
  readonly names: readonly {
    readonly dnsName: string
    readonly ends: ReadonlyMap<string, number>
  }[]
}

/**
 * All parts from a DNS answer to an address set, each a process that can be killed:
 *
 *     upstream ─▶ server ─▶ API server ─▶ operator ─▶ OVN Northbound
 *                   ▲───────────────────────┘ looks names up
 */
export class EgressSite {
  readonly cluster: Cluster
  readonly zone: ChangingZone
  readonly database: NorthboundServer
  readonly #t: Test
  readonly #metricsPort: number
  #server: RunningServer | undefined
  #operator: RunningOperator | undefined
  /** Processes that ended without a kill. */
  readonly ends: string[] = []
  /** What all servers and operators printed. */
  readonly #outputs: (() => string)[] = []

  private constructor(
    t: Test,
    cluster: Cluster,
    zone: ChangingZone,
    { database, metricsPort }: { database: NorthboundServer; metricsPort: number },
  ) {
    this.#t = t
    this.cluster = cluster
    this.zone = zone
    this.database = database
    this.#metricsPort = metricsPort
  }

  static async start(t: Test): Promise<EgressSite> {
    const cluster = await Cluster.start(t)
    for (const namespace of [NAMESPACE, ...TEAMS]) await cluster.createNamespace(namespace)
    const crds = {
      'openshift/dnsnameresolvers': RESOLVERS,
      'ovn/egressfirewalls': FIREWALLS('a'),
      'fqdnnetworkpolicy/networking.delta10.nl': FQDN_POLICIES,
    }
    for (const [file, path] of Object.entries(crds)) {
      await cluster.must('POST', DEFINITIONS, readCrd(file))
      await until(async () => (await cluster.call('GET', path)).status === 200, file, SEEN_MS)
    }
    await applyAll(cluster, composeManifests('deploy/base/namespace'))
    const folders = ['egress-firewall', 'egress-names', 'fqdn-network-policy']
    for (const folder of folders.map((name) => `deploy/${name}`)) {
      await applyAll(cluster, composeManifests(folder).map(forViewer))
    }
    const zone = await ChangingZone.open(t)
    const database = await NorthboundServer.start(t)
    const metricsPort = await freePort()
    const site = new EgressSite(t, cluster, zone, { database, metricsPort })
    await site.startServer()
    await cluster.must('POST', SLICES, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'kube-dns-1', labels: { 'kubernetes.io/service-name': 'kube-dns' } },
      addressType: 'IPv4',
      ports: [{ name: 'dns', protocol: 'UDP', port: site.#server!.port }],
      endpoints: [{ addresses: [HOST], conditions: { ready: true } }],
    })
    await site.startOperator()
    return site
  }

  async startServer(mustStart = true): Promise<void> {
    const corefile = `.:{PORT} {
    bind ${HOST}
    prometheus 127.0.0.1:${this.#metricsPort}
    egressfirewall {
        kubeconfig ${this.cluster.kubeconfig('viewer')}
        namespaces ${NAMESPACE}
        gate 500ms
    }
    cache
    forward . ${this.zone.address}
}
`
    const beside = this.#server
    const server = await startServer(this.#t, {
      corefile,
      mustStart,
      ...(beside === undefined ? {} : { beside }),
    })
    this.#server = server
    this.#outputs.push(() => server.output())
  }

  async startOperator(mustStart = true): Promise<void> {
    const operator = await RunningOperator.start(this.#t, {
      kubeconfig: this.cluster.kubeconfig('viewer'),
      mustStart,
      args: [
        '--controllers=egressfirewall,dnsnameresolver,ovn,fqdnnetworkpolicy',
        `--ovn-nb=${this.database.remote}`,
        `--ovn-owner=${OWNER}`,
      ],
    })
    this.#operator = operator
    this.#outputs.push(() => operator.output)
  }

  async killServer(): Promise<void> {
    const server = this.#server!
    if (server.process.exitCode !== null) this.ends.push(`the server: ${server.output()}`)
    server.process.kill('SIGKILL')
    await server.exited()
  }

  async killOperator(): Promise<void> {
    await this.#operator?.kill()
  }

  get output(): string {
    return this.#outputs.map((output) => output()).join('\n----\n')
  }

  operatorMetric(series: string): Promise<number | undefined> {
    return this.#operator!.metric(series)
  }

  /** The value of a series of the server; NaN = there is none. */
  async serverMetric(series: string): Promise<number> {
    const { text } = await getText(`http://127.0.0.1:${this.#metricsPort}/metrics`)
    const line = text.split('\n').find((one) => one.startsWith(`${series} `))
    return Number(line?.slice(series.length + 1) ?? Number.NaN)
  }

  /** Sends a query as a Pod does. */
  query(dnsName: string, type: number = RRType.A): Promise<Answered> {
    return ask({
      server: { host: HOST!, port: this.#server!.port },
      query: { ...questionOf(scanName(dnsName)!, type), flags: HeaderFlag.RD },
      timeoutMs: QUERY_MS,
      tries: 1,
    })
  }

  /** Applies the firewall of a namespace; no names = deletes it. Throws if the API refuses, or is away. */
  async putFirewall(namespace: string, dnsNames: readonly string[]): Promise<void> {
    const path = `${FIREWALLS(namespace)}/default`
    if (dnsNames.length === 0) {
      const { status } = await this.cluster.call('DELETE', path)
      if (status !== 200 && status !== 404) throw new Error(`DELETE ${path}: ${status}`)
      return
    }
    const object = {
      apiVersion: 'k8s.ovn.org/v1',
      kind: 'EgressFirewall',
      metadata: { name: 'default' },
      spec: { egress: dnsNames.map((dnsName) => ({ type: 'Allow', to: { dnsName } })) },
    }
    const query = 'fieldManager=test&force=true'
    const contentType = 'application/apply-patch+yaml'
    const reply = await this.cluster.call('PATCH', `${path}?${query}`, object, { contentType })
    if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
  }

  /** All DNSNameResolvers; undefined = the API is away. */
  async resolvers(): Promise<readonly Resolver[] | undefined> {
    const reply = await this.cluster.call('GET', RESOLVERS).catch(() => undefined)
    return reply?.status === 200 ? reply.body.items.map(resolverOf) : undefined
  }

  /** Creates a FQDNNetworkPolicy for these names. */
  async createPolicy(name: string, dnsNames: readonly string[]): Promise<void> {
    await this.cluster.must('POST', FQDN_POLICIES, {
      apiVersion: 'networking.delta10.nl/v1alpha4',
      kind: 'FQDNNetworkPolicy',
      metadata: { name },
      spec: { podSelector: {}, egress: [{ to: [{ fqdns: dnsNames }] }] },
    })
  }

  /** Undefined = the API is away. */
  async policyState(name: string): Promise<PolicyState | undefined> {
    const calls = [NETWORK_POLICIES, FQDN_POLICIES].map((path) => {
      return this.cluster.call('GET', `${path}/${name}`).catch(() => undefined)
    })
    const [made, policy] = await Promise.all(calls)
    if (policy?.status !== 200 || (made?.status !== 200 && made?.status !== 404)) return undefined
    const { state = '', cache = {} } = policy.body.status ?? {}
    const stored = Object.values<{ ipExpiration: object }>(cache).flatMap((entry) => {
      return Object.keys(entry.ipExpiration)
    })
    const peers = made.status === 404 ? undefined : made.body.spec.egress.flatMap(peersOf)
    return {
      allowed: peers && new Set(peers),
      stored: new Set(stored.map(addressOf)),
      state,
    }
  }

  /** Follows the address sets, by a client of its own, until the test ends. */
  followSets(onChange: (rows: readonly OvsdbRow[]) => void): OvsdbClient {
    const report = (): void => onChange([...client.rows])
    const client = new OvsdbClient({
      clock: systemClock,
      timers: systemTimers,
      random: new Random(1),
      log: createLogger(
        '',
        () => {},
        () => false,
      ),
      remotes: scanRemotes(this.database.remote)!,
      tls: undefined,
      database: 'OVN_Northbound',
      monitored: monitoredRows(OWNER),
      onRow: report,
      onSync: report,
    })
    this.#t.teardown(() => client.close())
    client.start()
    return client
  }
}

/** Addresses of a rule of a NetworkPolicy. */
function peersOf({ to }: { to: { ipBlock: { cidr: string } }[] }): string[] {
  return to.map(({ ipBlock }) => addressOf(ipBlock.cidr))
}

function addressOf(cidr: string): string {
  return cidr.split('/', 1)[0]!
}

/** Gives the rights of our accounts to the user `viewer`. */
function forViewer(manifest: Manifest): Manifest {
  if (manifest.subjects === undefined) return manifest
  const apiGroup = 'rbac.authorization.k8s.io'
  return { ...manifest, subjects: [{ apiGroup, kind: 'User', name: 'viewer' }] }
}

// biome-ignore lint/suspicious/noExplicitAny: as the API has it
function resolverOf({ metadata, spec, status }: any): Resolver {
  // biome-ignore lint/suspicious/noExplicitAny: as the API has it
  const names = (status?.resolvedNames ?? []).map(({ dnsName, resolvedAddresses }: any) => {
    const ends = new Map<string, number>()
    for (const { ip, ttlSeconds, lastLookupTime } of resolvedAddresses) {
      ends.set(ip, Date.parse(lastLookupTime) + ttlSeconds * 1000)
    }
    return { dnsName, ends }
  })
  const { uid, resourceVersion: version } = metadata
  return { dnsName: spec.name, uid, version, names }
}

/** All addresses of a DNSNameResolver with the end of their TTL. */
export function addressesOf({ names }: Resolver): ReadonlyMap<string, number> {
  const ends = new Map<string, number>()
  for (const [ip, endMs] of names.flatMap((name) => [...name.ends])) {
    ends.set(ip, Math.max(endMs, ends.get(ip) ?? 0))
  }
  return ends
}
