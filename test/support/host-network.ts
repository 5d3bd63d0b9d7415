import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Test } from 'tap'
import { run } from './peer.ts'

/** A process on a host of the network. */
export interface HostProcess {
  readonly process: ChildProcess
  /** All output so far, of both streams. */
  output(): string
  /** Sends `signal`, and waits until the process has ended. */
  end(signal: NodeJS.Signals): Promise<void>
}

const SWITCH = 'switch'
/** Long: other tests run at the same time, and one dig may send thousands of queries. */
const RUN_MS_MAX = 600_000
/**
 * Removes the network when standard input ends: at the end of the test, or when the process of the test is gone.
 * `$0`: the prefix of the names of its namespaces.
 */
const REAPER = `trap '' INT TERM HUP
cat >/dev/null
for name in $(ip netns list | awk '{ print $1 }' | grep "^$0-"); do
  while pids=$(ip netns pids "$name") && [ -n "$pids" ]; do kill -9 $pids 2>/dev/null; sleep 0.02; done
  ip netns del "$name"
done`

/** Hosts on one switch, each a network namespace of the kernel. Needs root. */
export class HostNetwork {
  readonly #prefix = `sx${randomBytes(3).toString('hex')}`
  readonly #reaper = spawn('sh', ['-c', REAPER, this.#prefix], {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  })

  /** Creates a network. The end of the test removes it and ends all its processes. */
  static async create(t: Test): Promise<HostNetwork> {
    const network = new HostNetwork()
    t.teardown(() => network.#end())
    const name = network.nameOf(SWITCH)
    await ip('netns', 'add', name)
    await ip('-n', name, 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0')
    await ip('-n', name, 'link', 'set', 'br0', 'up')
    return network
  }

  /** Adds a host with these addresses (`192.0.2.1/24`); `routes`: further networks on the switch. */
  async addHost(
    name: string,
    addresses: readonly string[],
    routes: readonly string[] = [],
  ): Promise<NetworkHost> {
    const [own, hub] = [this.nameOf(name), this.nameOf(SWITCH)]
    await ip('netns', 'add', own)
    await ip('-n', own, 'link', 'set', 'lo', 'up')
    const peer = ['peer', 'name', name, 'netns', hub]
    await ip('-n', own, 'link', 'add', 'eth0', 'type', 'veth', ...peer)
    await ip('-n', hub, 'link', 'set', name, 'master', 'br0', 'up')
    // Otherwise IPv6 addresses, also the link-local one, are not usable for up to 2 seconds, while another host may claim them:
    // packets wait for the solicitation of their next hop.
    await ip('netns', 'exec', own, 'sysctl', '-qw', 'net.ipv6.conf.eth0.accept_dad=0')
    for (const address of addresses) await ip('-n', own, 'address', 'add', address, 'dev', 'eth0')
    await ip('-n', own, 'link', 'set', 'eth0', 'up')
    for (const route of routes) await ip('-n', own, 'route', 'add', route, 'dev', 'eth0')
    return new NetworkHost(this, name)
  }

  /** Disconnects the host from the switch, or connects it again. */
  async setCable(host: string, state: 'up' | 'down'): Promise<void> {
    await ip('-n', this.nameOf(SWITCH), 'link', 'set', host, state)
  }

  /** The name of a host's namespace in the system. */
  nameOf(host: string): string {
    return `${this.#prefix}-${host}`
  }

  async #end(): Promise<void> {
    const exit = once(this.#reaper, 'exit')
    this.#reaper.stdin.end()
    await exit
  }
}

export class NetworkHost {
  readonly #network: HostNetwork
  readonly #name: string

  constructor(network: HostNetwork, name: string) {
    this.#network = network
    this.#name = name
  }

  /** The name of its namespace in the system. */
  get name(): string {
    return this.#network.nameOf(this.#name)
  }

  /** Starts a program on this host. */
  start(
    command: readonly string[],
    { cwd, env = {} }: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
  ): HostProcess {
    const words = ['netns', 'exec', this.name, ...command]
    const child = spawn('ip', words, {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    child.stdout.on('data', (chunk) => (printed += String(chunk)))
    child.stderr.on('data', (chunk) => (printed += String(chunk)))
    // Not 'exit': output may arrive later.
    const exit = once(child, 'close')
    return {
      process: child,
      output: () => printed,
      end: async (signal) => {
        child.kill(signal)
        await exit
      },
    }
  }

  /** Runs a program on this host to its end; returns its output. */
  async run(...command: readonly string[]): Promise<string> {
    const words = ['netns', 'exec', this.name, ...command]
    const { stdout, stderr } = await run('ip', words, RUN_MS_MAX)
    return stdout + stderr
  }

  disconnect(): Promise<void> {
    return this.#network.setCable(this.#name, 'down')
  }

  reconnect(): Promise<void> {
    return this.#network.setCable(this.#name, 'up')
  }
}

async function ip(...words: readonly string[]): Promise<void> {
  const { code, stderr } = await run('ip', words)
  if (code !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`)
}
