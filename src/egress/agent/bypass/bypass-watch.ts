import { readFile } from 'node:fs/promises'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { Timers } from '../../../base/timers.ts'
import { runNft } from '../../sinks/nft/nft-session.ts'
import { type ChainName, chainsBeforeTracking, untrackedDnsOf } from './untracked-dns.ts'

/** Why packets of clients bypass this server. */
export interface Bypass {
  /** An interface, or a chain of nftables. */
  readonly object: string
  /** False: they may bypass it. */
  readonly isCertain: boolean
  /** Names the object, and the fix. */
  readonly reason: string
}

interface BypassWatchOptions {
  /** nft(8) and its first arguments; `['nft']` unless it runs in another namespace. */
  readonly command: readonly string[]
  /** Reads a file of /proc of the network namespace. */
  readonly read?: (path: string) => Promise<string>
  /** True once a client has received an answer: its query was redirected, so nftables sees packets of Pods. */
  readonly hasAnswered: () => boolean
  readonly timers: Timers
  readonly log: Logger
}

const CHECK_MS = 60_000
const LIST_MS = 10_000
/** Most chains that a check reads. Other programs have few chains before connection tracking. */
const CHAINS_MAX = 64
/** The default name of the interface of NodeLocal DNSCache. */
const NODE_LOCAL = 'nodelocaldns'
const LEGACY_TABLES = ['/proc/net/ip_tables_names', '/proc/net/ip6_tables_names']

/** Interfaces of CNIs that may send packets of Pods past nftables, with the fix. */
const OTHER_PATHS: ReadonlyMap<string, string> = new Map([
  [
    'cilium_host',
    'with eBPF host routing, Cilium sends packets of Pods past nftables; set bpf.hostLegacyRouting=true in the values of Cilium',
  ],
  [
    'bpfin.cali',
    'the eBPF dataplane of Calico sends packets of Pods past nftables; use the nftables or iptables dataplane of Calico',
  ],
  [
    'ovn-k8s-mp0',
    'OVN-Kubernetes handles packets of Pods in Open vSwitch; use EgressFirewalls with sextant operator',
  ],
])

/** Detects why packets of clients bypass nftables and this server. Checks at the start and each minute. */
export class BypassWatch {
  readonly #options: BypassWatchOptions
  readonly #read: (path: string) => Promise<string>
  #found: readonly Bypass[] = []
  #logged = new Map<string, Bypass>()
  /** False: nft may be missing. */
  #hasListed = false
  #checks = 0
  #isChecking = false
  #isClosed = false
  #cancel: () => void = () => {}

  constructor(options: BypassWatchOptions) {
    this.#options = options
    this.#read = options.read ?? ((path) => readFile(path, 'utf8'))
  }

  /**
   * What the last check found, without what an answer to a client has disproved. At the first check, no client can have
   * received an answer yet.
   */
  get found(): readonly Bypass[] {
    const isUnanswered = this.#checks > 1 && !this.#options.hasAnswered()
    return this.#found.filter(({ isCertain }) => isCertain || isUnanswered)
  }

  /** Resolves after the first check. */
  start(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#cancel = this.#options.timers.every(CHECK_MS, () => void this.check())
    return this.check()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async check(): Promise<void> {
    if (this.#isChecking || this.#isClosed) return
    this.#isChecking = true
    this.#checks++
    try {
      const interfaces = await this.#interfaces()
      this.#found = [
        ...(await this.#untracked()),
        ...(await this.#legacy(interfaces)),
        ...pathsOf(interfaces),
      ]
    } catch {
      // The findings of the check before are kept until the next one.
    } finally {
      this.#isChecking = false
    }
    if (!this.#isClosed) this.#report()
  }

  async #interfaces(): Promise<ReadonlySet<string>> {
    const text = await this.#read('/proc/net/dev')
    return new Set([...text.matchAll(/^\s*(\S+):/gm)].map(([, name = '']) => name))
  }

  async #untracked(): Promise<readonly Bypass[]> {
    const listing = await this.#list('list chains')
    if (listing === undefined) {
      if (this.#hasListed) throw new Error('nft has failed')
      // Without nft, or an nft without JSON, a dry run shows interfaces only.
      return []
    }
    this.#hasListed = true
    const found: Bypass[] = []
    const queue = [...chainsBeforeTracking(listing)]
    const seen = new Set(queue.map(keyOf))
    for (let at = 0; at < queue.length && at < CHAINS_MAX; at++) {
      const { table, chain } = queue[at]!
      const rules = await this.#list(`list chain ${table} ${chain}`)
      // The chain was removed meanwhile, which the next check shows, or nft has failed.
      if (rules === undefined) {
        const object = objectOfChain(queue[at]!)
        found.push(...this.#found.filter((one) => one.object === object))
        continue
      }
      const { servers, jumps } = untrackedDnsOf(rules)
      if (servers.length > 0) found.push(untrackedOf(queue[at]!, servers))
      for (const jump of jumps) {
        const next = { table, chain: jump }
        if (seen.has(keyOf(next))) continue
        seen.add(keyOf(next))
        queue.push(next)
      }
    }
    return found
  }

  /** nft does not show rules of iptables-legacy. */
  async #legacy(interfaces: ReadonlySet<string>): Promise<readonly Bypass[]> {
    if (!interfaces.has(NODE_LOCAL)) return []
    const tables = await Promise.all(LEGACY_TABLES.map((path) => this.#read(path).catch(() => '')))
    if (!tables.some((text) => text.split('\n').includes('raw'))) return []
    const cause = `interface ${NODE_LOCAL} exists, and iptables-legacy has a table raw`
    return [
      {
        object: `interface ${NODE_LOCAL}`,
        isCertain: true,
        reason: `${cause}: ${hiddenBy('its rules', [''])}`,
      },
    ]
  }

  /** Returns the output of nft; undefined if nft fails. */
  async #list(command: string): Promise<string | undefined> {
    const args = ['-j', ...command.split(' ')]
    const run = await runNft({ ...this.#options, args, input: '', timeoutMs: LIST_MS })
    return run.fault === '' ? run.output : undefined
  }

  #report(): void {
    const { log } = this.#options
    const now = new Map(this.found.map((one) => [one.object, one]))
    for (const [object, { isCertain, reason }] of now) {
      if (this.#logged.get(object)?.reason === reason) continue
      if (isCertain) log.error(`clients bypass this server: ${reason}`, 'clients-bypass-server')
      else log.warning(`clients may bypass this server: ${reason}`, 'clients-may-bypass-server')
    }
    for (const object of this.#logged.keys()) {
      if (!now.has(object))
        log.info(
          `clients no longer bypass this server: ${object}`,
          'clients-no-longer-bypass-server',
        )
    }
    this.#logged = now
  }
}

function keyOf({ table, chain }: ChainName): string {
  return `${table} ${chain}`
}

function objectOfChain({ table, chain }: ChainName): string {
  return `table ${table}, chain ${chain}`
}

function untrackedOf(chain: ChainName, servers: readonly string[]): Bypass {
  const object = objectOfChain(chain)
  return { object, isCertain: true, reason: `${object}: ${hiddenBy('rules', servers)}` }
}

function hiddenBy(rules: string, servers: readonly string[]): string {
  const known = servers.filter((server) => server !== '').join(', ')
  const effect = `${rules} exempt DNS queries${known === '' ? '' : ` to ${known}`} from connection tracking, so they are not redirected here, and names allow nothing`
  const upstream = known === '' ? 'its address' : known
  return `${effect}; if NodeLocal DNSCache has made them, start it with -setupiptables=false, and forward to ${upstream}`
}

function pathsOf(interfaces: ReadonlySet<string>): readonly Bypass[] {
  return [...OTHER_PATHS]
    .filter(([name]) => interfaces.has(name))
    .map(([name, fix]) => {
      const object = `interface ${name}`
      const reason = `${object} exists, and no client has received an answer from this server: ${fix}`
      return { object, isCertain: false, reason }
    })
}
