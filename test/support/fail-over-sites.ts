import { join } from 'node:path'
import type { Test } from 'tap'
import { HostNetwork, type HostProcess, type NetworkHost } from './host-network.ts'
import { layFiles, root } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

const SERVE = [process.execPath, join(root, 'dist/main.js'), 'serve']
const GATEWAY = join(root, 'test/support/fail-over-gateway.mjs')
const GATEWAY_PORT = 8080
export const DNS_PORT = 1053
export const ZONE = 'k.example.com'
/** The health check of each record: the shortest bounds that a site may promise. */
const INTERVAL_S = 1
const FAILURES = 1
const SUCCESSES = 1
/** Seconds after which the answers have no failed address, and after which they have a recovered one. */
export const DOWN_S = (FAILURES + 2) * INTERVAL_S + 10
export const UP_S = (SUCCESSES + 1) * INTERVAL_S + 10

/** `v1`: exports only what Kuadrant's servers of 2025 did, and has no peers. */
export type Generation = 'v2' | 'v1'

export interface FailOverOptions {
  /** Of each site. */
  readonly generations: readonly Generation[]
  /** Names of the record, without the zone. */
  readonly names: readonly string[]
  readonly ttlSeconds: number
  /** Creates the v2 sites; missing = as plain servers. */
  readonly create?: (t: Test, parts: SiteParts) => Promise<FailOverSite>
}

/** What a site is made of. */
export interface SiteParts {
  readonly number: number
  /** Of its own. */
  readonly directory: string
  readonly host: NetworkHost
  readonly options: FailOverOptions
}

export const serverOf = (site: number): string => `10.9.0.${site + 1}`
export const gatewayOf = (site: number): string => `10.9.1.${site + 1}`

/**
 * A site on a host of its own: a nameserver and a gateway, each a process. Its record has the address of its gateway, and
 * a health check.
 */
export class FailOverSite {
  readonly number: number
  readonly generation: Generation
  protected readonly host: NetworkHost
  protected readonly directory: string
  readonly #env: Readonly<Record<string, string>>
  #server: HostProcess | undefined
  #gateway: HostProcess | undefined
  #printed = ''

  /** `env`: of its nameserver. */
  constructor({ number, directory, host, options }: SiteParts, env = {}) {
    this.number = number
    this.directory = directory
    this.host = host
    this.generation = options.generations[number]!
    this.#env = env
  }

  get isUp(): boolean {
    return this.#server !== undefined
  }

  get output(): string {
    return this.#printed + (this.#server?.output() ?? '')
  }

  async start(): Promise<void> {
    await this.startGateway()
    await this.startServer()
  }

  async startServer(): Promise<void> {
    this.#server ??= this.host.start(SERVE, { cwd: this.directory, env: this.#env })
  }

  async killServer(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    await server?.end('SIGKILL')
    this.#printed += server?.output() ?? ''
  }

  async startGateway(): Promise<void> {
    const command = [process.execPath, GATEWAY, gatewayOf(this.number), String(GATEWAY_PORT)]
    const gateway = this.host.start(command)
    this.#gateway = gateway
    await until(() => /ready/.test(gateway.output()), 'a gateway')
  }

  async killGateway(): Promise<void> {
    await this.#gateway?.end('SIGKILL')
    this.#gateway = undefined
  }

  /** Drops all packets to and from the other sites' hosts. */
  async cut(others: readonly number[]): Promise<void> {
    const list = `{ ${others.flatMap((site) => [serverOf(site), gatewayOf(site)]).join(', ')} }`
    await this.#filter(
      `chain in { type filter hook input priority 0; ip saddr ${list} drop; }`,
      `chain out { type filter hook output priority 0; ip daddr ${list} drop; }`,
    )
  }

  /** Drops what another site asks: its queries and its probes. It still gets its answers. */
  async refuse(other: number): Promise<void> {
    const from = `ip saddr ${serverOf(other)}`
    await this.#filter(
      `chain in { type filter hook input priority 0; ${from} udp dport ${DNS_PORT} drop; ${from} tcp dport { ${DNS_PORT}, ${GATEWAY_PORT} } drop; }`,
    )
  }

  /** Drops what others send to the gateway. */
  async hideGateway(): Promise<void> {
    await this.#filter(
      `chain in { type filter hook input priority 0; iifname eth0 tcp dport ${GATEWAY_PORT} drop; }`,
    )
  }

  /** The host is gone from the network: nothing of it answers, and nothing refuses. */
  disconnect(): Promise<void> {
    return this.host.disconnect()
  }

  reconnect(): Promise<void> {
    return this.host.reconnect()
  }

  async heal(): Promise<void> {
    await this.host.run('nft', 'flush ruleset')
  }

  async #filter(...chains: readonly string[]): Promise<void> {
    const printed = await this.host.run('nft', `table inet cut {\n${chains.join('\n')}\n}`)
    if (printed !== '') throw new Error(printed)
  }
}

/** Sites on one switch, and a host whose clients reach the nameserver of each site in any fault. */
export class FailOverSites {
  readonly sites: readonly FailOverSite[]
  readonly clients: NetworkHost

  /** The first one of the record. */
  readonly #name: string

  private constructor(sites: readonly FailOverSite[], clients: NetworkHost, name: string) {
    this.sites = sites
    this.clients = clients
    this.#name = name
  }

  /** Resolves when all sites give the addresses of all. The sites end with the test. */
  static async start(t: Test, options: FailOverOptions): Promise<FailOverSites> {
    const directory = temporaryDirectory(t)
    const network = await HostNetwork.create(t)
    const sites: FailOverSite[] = []
    for (const [number, generation] of options.generations.entries()) {
      const addresses = [`${serverOf(number)}/16`, `${gatewayOf(number)}/16`]
      const host = await network.addHost(`site${number}`, addresses)
      const parts = { number, directory: join(directory, `site${number}`), host, options }
      const create = generation === 'v2' ? (options.create ?? createPlain) : createPlain
      sites.push(await create(t, parts))
    }
    const clients = await network.addHost('clients', ['10.9.9.1/16'])
    const started = new FailOverSites(sites, clients, options.names[0]!)
    for (const site of sites) await site.start()
    await started.untilWhole()
    return started
  }

  /** Resolves when each v2 site gives the addresses of all. */
  async untilWhole(): Promise<void> {
    const all = this.sites.map(({ number }) => gatewayOf(number)).join()
    for (const { number, generation } of this.sites) {
      if (generation === 'v1') continue
      const isSo = async (): Promise<boolean> =>
        (await this.answer(number, this.#name))?.join() === all
      await until(isSo, `${all} at site${number}`, 120_000).catch((error: Error) => {
        throw new Error(`${error.message}\n${this.output}`)
      })
    }
  }

  get output(): string {
    return this.sites.map((site) => `site${site.number}:\n${site.output}`).join('\n')
  }

  /** Returns the addresses of one answer of a site, sorted; undefined if it does not answer. */
  async answer(site: number, name: string): Promise<readonly string[] | undefined> {
    const at = [`@${serverOf(site)}`, '-p', String(DNS_PORT)]
    const query = [...at, `${name}.${ZONE}`, 'A', '+short', '+time=2', '+tries=2']
    const lines = (await this.clients.run('dig', ...query)).split('\n')
    if (lines.some((line) => line.startsWith(';;'))) return undefined
    return lines.filter((line) => /^10\./.test(line)).sort()
  }
}

function corefileOf(number: number, generations: readonly Generation[]): string {
  const isOld = generations[number] === 'v1'
  const others = [...generations.keys()].filter((other) => other !== number)
  const peers = others.map((other) => `${serverOf(other)}:${DNS_PORT}`).join(' ')
  const site = `site site${number}`
  return `kdrnt:${DNS_PORT} {
    ${isOld ? '' : 'transfer {\n        to *\n    }'}
    kuadrant {
        manifests zones
        ${isOld ? '' : site}
    }
}
${ZONE}:${DNS_PORT} {
    kuadrant {
        manifests zones
        ${isOld ? '' : `${site}\n        peer ${peers}\n        probe-allow 10.9.0.0/16`}
    }
}
`
}

async function createPlain(_: Test, parts: SiteParts): Promise<FailOverSite> {
  const { number, directory, options } = parts
  layFiles(directory, {
    Corefile: corefileOf(number, options.generations),
    'zones/app.yaml': JSON.stringify(recordOf(parts)),
  })
  return new FailOverSite(parts)
}

/** The DNSRecord of a site. */
export function recordOf({ number, options: { names, ttlSeconds } }: SiteParts): object {
  const endpoints = names.map((name) => ({
    dnsName: `${name}.${ZONE}`,
    recordType: 'A',
    recordTTL: ttlSeconds,
    targets: [gatewayOf(number)],
  }))
  const interval = `${INTERVAL_S}s`
  const thresholds = { failureThreshold: FAILURES, successThreshold: SUCCESSES }
  const healthCheck = { protocol: 'HTTP', port: GATEWAY_PORT, path: '/', interval, ...thresholds }
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app' },
    spec: { rootHost: `${names[0]}.${ZONE}`, healthCheck, endpoints },
  }
}
