import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { HostNetwork, type NetworkHost } from './host-network.ts'
import { putFile, type RunningServer, root, type ServerOptions, startServer } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

/** The server of the zones; also the only host of the Internet of the test. */
export const UPSTREAM = '192.0.2.10'

/** The Pod `app` with these addresses, and a policy of Cilium that allows it DNS and names of `example.com`. */
export function composePodAndPolicy(addresses: readonly string[]): string {
  const podIPs = addresses.map((ip) => `{ ip: "${ip}" }`).join(', ')
  return `apiVersion: v1
kind: Pod
metadata: { name: app, namespace: a, labels: { app: app } }
status: { podIPs: [${podIPs}] }
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: app, namespace: a }
spec:
  endpointSelector: { matchLabels: { app: app } }
  egress:
    - toEndpoints: [{ matchLabels: { k8s-app: kube-dns } }]
      toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchPattern: "*" }] } }]
    - toFQDNs: [{ matchPattern: "*.example.com" }]
`
}
/** Networks whose addresses all belong to that host. */
const WORLD = ['198.18.0.0/15', '2001:db8:1::/64']
/** Ports on which it echoes what it gets: by TCP on each address, by UDP on `UDP_ADDRESSES`. */
const TCP_PORTS = [80, 443, 853, 8080, 8443]
const UDP_PORTS = [80, 443, 8080]
const UDP_ADDRESSES = ['198.18.0.1', '198.18.0.2', '2001:db8:1::1', '2001:db8:1::2']
export const CLUSTER_NETWORKS = ['10.1.0.0/24', 'fd01::/64']
const DNS_PORT = 5353

/** For results that are expected: long, for a busy machine. */
export const ALLOWED_MS = 60_000
/** For connections that are expected to be dropped. */
export const DROPPED_MS = 500

export type Protocol = 'tcp' | 'udp'
export interface Target {
  readonly address: string
  readonly port: number
  readonly protocol?: Protocol
}
export interface Resolved {
  /** `NOERROR`, or c-ares' name of an error, such as `EREFUSED`. */
  readonly rcode: string
  readonly addresses: readonly string[]
}
export interface Visit extends Resolved {
  readonly result: string
  /** TCP segments that the Pod had to send again. */
  readonly retransmits: number
}

/** A Pod: a namespace of the kernel with a program that connects and resolves. */
export class EgressPod {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (line: { result?: unknown; error?: string }) => void>()
  #count = 0

  constructor(child: ChildProcess) {
    this.#child = child
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const { id, ...rest } = JSON.parse(line)
      this.#waiting.get(id)?.(rest)
      this.#waiting.delete(id)
    })
  }

  /** `open`, `dropped` or what else happened. */
  connect(target: Target, timeoutMs: number): Promise<string> {
    return this.#ask('connect', { protocol: 'tcp', ...target, timeoutMs })
  }

  /** Opens a connection that stays open, by this name. */
  open(name: string, target: Target): Promise<string> {
    return this.#ask('open', { protocol: 'tcp', ...target, name, timeoutMs: ALLOWED_MS })
  }

  /** Sends something over an open connection, and waits for its echo. */
  echo(name: string, timeoutMs = ALLOWED_MS): Promise<string> {
    return this.#ask('echo', { name, timeoutMs })
  }

  /** `type`: A or AAAA. */
  resolve(name: string, type = 'A', server = UPSTREAM): Promise<Resolved> {
    return this.#ask('resolve', { name, type, server })
  }

  /** Resolves a name, and connects to its first address at once. */
  visit(name: string, port: number, type = 'A', timeoutMs = ALLOWED_MS): Promise<Visit> {
    return this.#ask('visit', { name, type, server: UPSTREAM, port, protocol: 'tcp', timeoutMs })
  }

  #ask<Result>(op: string, request: object): Promise<Result> {
    const id = ++this.#count
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result as Result)
        else reject(new Error(error))
      })
      this.#child.stdin!.write(`${JSON.stringify({ id, op, ...request })}\n`)
    })
  }
}

export interface EgressNodeOptions {
  /** Manifests of Pods, Namespaces and policies, as one YAML text. Each Pod has addresses in `podAddresses`. */
  readonly objects: string
  /** Addresses by the name of the Pod; `10.1.0.x` and `fd01::x`. Pods need not be in `objects`. */
  readonly podAddresses: Readonly<Record<string, readonly string[]>>
  /** IPv4 addresses of Pods with an interface of the node for each, that has no address: `10.9.0.x`. */
  readonly routedPods?: Readonly<Record<string, string>>
  /** Zone files by origin. They are read again when they change. */
  readonly zones?: Readonly<Record<string, string>>
  /** More properties of the directive `egress`, one per line. */
  readonly properties?: string
  /** What stands behind `egress` in the Corefile. */
  readonly chain?: string
  /** Of the agent, beside what the test's process has. */
  readonly env?: Readonly<Record<string, string>>
  /** False: the agent is started later. */
  readonly mustStart?: boolean
}

/**
 * A node, its Pods and the Internet on one switch; the node routes between them:
 *
 *     Pods 10.1.0.x, fd01::x ─ 10.1.0.1, fd01::1 node 192.0.2.1, 2001:db8::1 ─ 192.0.2.10, 2001:db8::10 Internet (198.18.0.0/15, 2001:db8:1::/64)
 *
 * The program runs on the node: its nftables and connection tracking are those of that namespace.
 */
export class EgressNode {
  readonly #t: Test
  readonly #options: EgressNodeOptions
  readonly network: HostNetwork
  readonly host: NetworkHost
  readonly pods = new Map<string, EgressPod>()
  /** Of the agent: its state, socket and manifests. */
  readonly directory: string
  /** Of the API. The kernel bounds paths of sockets, so it is not in `directory`. */
  readonly socket: string
  readonly #root: string
  /** The Internet. */
  world!: NetworkHost
  upstream!: RunningServer
  agent!: RunningServer

  private constructor(
    t: Test,
    network: HostNetwork,
    host: NetworkHost,
    options: EgressNodeOptions,
  ) {
    this.#t = t
    this.network = network
    this.host = host
    this.#options = options
    this.#root = temporaryDirectory(t)
    for (const name of ['node', 'upstream']) mkdirSync(join(this.#root, name))
    this.directory = join(this.#root, 'node')
    this.socket = join(this.#root, 'node.sock')
  }

  static async start(t: Test, options: EgressNodeOptions): Promise<EgressNode> {
    const network = await HostNetwork.create(t)
    const ownAddresses = ['10.1.0.1/24', 'fd01::1/64', '192.0.2.1/24', '2001:db8::1/64']
    const host = await network.addHost('node', ownAddresses)
    const node = new EgressNode(t, network, host, options)
    for (const setting of [
      'net.ipv4.ip_forward=1',
      'net.ipv6.conf.all.forwarding=1',
      'net.ipv4.conf.all.send_redirects=0',
      'net.ipv4.conf.eth0.send_redirects=0',
    ])
      await host.run('sysctl', '-qw', setting)
    await host.run('ip', 'route', 'add', 'default', 'via', UPSTREAM)
    await host.run('ip', '-6', 'route', 'add', 'default', 'via', '2001:db8::10')
    await node.#startInternet()
    for (const [name, addresses] of Object.entries(options.podAddresses))
      await node.#addPod(name, addresses)
    for (const [name, address] of Object.entries(options.routedPods ?? {}))
      await node.#addRoutedPod(name, address)
    node.putObjects(options.objects)
    if (options.mustStart !== false) node.agent = await node.startAgent()
    return node
  }

  /**
   * Starts the program on the node; a second one beside it (`-takeover`) shares its port, table and
   * state. Replies wait for nftables as long as they may: on a busy machine, 100 ms can be too short.
   */
  startAgent(
    args: readonly string[] = [],
    own: Pick<ServerOptions, 'env' | 'mustStart'> = {},
  ): Promise<RunningServer> {
    const { properties = '', chain = `forward . ${UPSTREAM}`, env = {} } = this.#options
    return startServer(this.#t, {
      corefile: `.:${DNS_PORT} {
    errors
    egress {
        policies objects.yaml
        nftables
        cluster ${CLUSTER_NETWORKS.join(' ')}
        state state.json
        api ${this.socket}
        max_delay 4s
        ${properties}
    }
    ${chain}
}
`,
      args: ['-pidfile', 'pid', ...args],
      beside: { port: DNS_PORT, directory: this.directory },
      ...own,
      env: { ...env, ...own.env },
      wrapper: ['ip', 'netns', 'exec', this.network.nameOf('node')],
    })
  }

  /** Replaces the manifests that the agent reads. */
  putObjects(yaml: string): void {
    putFile(this.directory, 'objects.yaml', yaml)
  }

  /** Replaces a zone, and waits until the server of the zones has it. */
  async putZone(origin: string, text: string): Promise<void> {
    putFile(this.upstream.directory, `${origin}zone`, text)
    const soa = / SOA \S+ \S+ (\d+)/.exec(text)?.[1]
    const hasIt = async () => {
      const query = ['dig', `@${UPSTREAM}`, origin, 'SOA', '+short', '+time=5']
      return (await this.host.run(...query)).includes(` ${soa} `)
    }
    await until(hasIt, `serial ${soa} of ${origin}`)
  }

  /** The ruleset of the node. */
  ruleset(): Promise<string> {
    return this.host.run('nft', 'list', 'ruleset')
  }

  pod(name: string): EgressPod {
    const pod = this.pods.get(name)
    if (pod === undefined) throw new Error(`there is no Pod ${name}`)
    return pod
  }

  async #startInternet(): Promise<void> {
    const world = await this.network.addHost('world', [`${UPSTREAM}/24`, '2001:db8::10/64'])
    this.world = world
    for (const pods of ['10.1.0.0/24', '10.9.0.0/24'])
      await world.run('ip', 'route', 'add', pods, 'via', '192.0.2.1')
    await world.run('ip', 'route', 'add', 'fd01::/64', 'via', '2001:db8::1')
    for (const network of WORLD)
      await world.run('ip', 'route', 'add', 'local', network, 'dev', 'lo')
    // For UDP: without it, IPv6 sockets can't be bound to addresses of a network.
    await world.run('sysctl', '-qw', 'net.ipv6.ip_nonlocal_bind=1')
    const zones = this.#options.zones ?? {}
    const blocks = Object.keys(zones).map(
      (origin) => `${origin}:53 {\n errors\n file ${origin}zone {\n  reload 1s\n }\n}\n`,
    )
    const files = Object.entries(zones).map(([origin, text]) => [`${origin}zone`, text])
    this.upstream = await startServer(this.#t, {
      corefile: `${blocks.join('')}invalid.:53 {\n whoami\n}\n`,
      files: Object.fromEntries(files),
      beside: { port: 53, directory: join(this.#root, 'upstream') },
      wrapper: ['ip', 'netns', 'exec', this.network.nameOf('world')],
    })
    const echo = world.start([
      process.execPath,
      join(root, 'test/support/egress-echo.mjs'),
      TCP_PORTS.join(),
      UDP_ADDRESSES.join(),
      UDP_PORTS.join(),
    ])
    await until(() => echo.output().includes('ready'), 'the echo server')
  }

  async #addPod(name: string, addresses: readonly string[]): Promise<void> {
    const lengths = addresses.map((address) => `${address}/${address.includes(':') ? 64 : 24}`)
    const pod = await this.network.addHost(name, lengths)
    await pod.run('ip', 'route', 'add', 'default', 'via', '10.1.0.1')
    if (addresses.some((address) => address.includes(':')))
      await pod.run('ip', '-6', 'route', 'add', 'default', 'via', 'fd01::1')
    this.#startPod(name)
  }

  /** As with CNIs that route to each Pod: the node answers ARP requests of the Pod for its gateway. */
  async #addRoutedPod(name: string, address: string): Promise<void> {
    const gateway = '169.254.1.1'
    const pod = await this.network.addHost(name, [])
    const peer = ['peer', 'name', 'route0', 'netns', this.network.nameOf(name)]
    await this.host.run('ip', 'link', 'add', name, 'type', 'veth', ...peer)
    await this.host.run('ip', 'link', 'set', name, 'up')
    await this.host.run('sysctl', '-qw', `net.ipv4.conf.${name}.proxy_arp=1`)
    await this.host.run('ip', 'route', 'add', address, 'dev', name)
    await pod.run('ip', 'address', 'add', address, 'dev', 'route0')
    await pod.run('ip', 'link', 'set', 'route0', 'up')
    await pod.run('ip', 'route', 'add', gateway, 'dev', 'route0')
    await pod.run('ip', 'route', 'add', 'default', 'via', gateway)
    this.#startPod(name)
  }

  #startPod(name: string): void {
    const words = ['netns', 'exec', this.network.nameOf(name), process.execPath]
    const child = spawn('ip', [...words, join(root, 'test/support/egress-pod.mjs')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#t.teardown(() => child.kill('SIGKILL'))
    this.pods.set(name, new EgressPod(child))
  }
}
