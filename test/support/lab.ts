import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Test } from 'tap'
import { run } from './peer.ts'

/** A process in a namespace of the lab. */
export interface LabProcess {
  readonly process: ChildProcess
  /** Everything it printed so far, both streams. */
  output(): string
  /** Ends it, and waits until it has ended. */
  end(signal: NodeJS.Signals): Promise<void>
}

const SWITCH = 'switch'
/** Ample: on a machine on which everybody tests at once, and thousands of questions of one dig. */
const RUN_MS_MAX = 600_000
/**
 * Takes the lab down when its standard input ends: when the test says so, or when the process of the test is gone,
 * however it went. `$0`: what the names of the lab's namespaces begin with.
 */
const REAPER = `trap '' INT TERM HUP
cat >/dev/null
for name in $(ip netns list | awk '{ print $1 }' | grep "^$0-"); do
  ip netns pids "$name" | xargs -r kill -9
  ip netns del "$name"
done`

/** A network of the kernel's own: hosts, each a network namespace, on one switch. Takes root. */
export class Lab {
  readonly #prefix = `sx${randomBytes(3).toString('hex')}`
  readonly #reaper = spawn('sh', ['-c', REAPER, this.#prefix], {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  })

  /** A lab that is gone, with all that runs in it, when the test ends. */
  static async create(t: Test): Promise<Lab> {
    const lab = new Lab()
    t.teardown(() => lab.#end())
    const name = lab.nameOf(SWITCH)
    await ip('netns', 'add', name)
    await ip('-n', name, 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0')
    await ip('-n', name, 'link', 'set', 'br0', 'up')
    return lab
  }

  /** A host with these addresses (`192.0.2.1/24`); `routes` are networks that are on the switch as well. */
  async addHost(
    name: string,
    addresses: readonly string[],
    routes: readonly string[] = [],
  ): Promise<LabHost> {
    const [own, hub] = [this.nameOf(name), this.nameOf(SWITCH)]
    await ip('netns', 'add', own)
    await ip('-n', own, 'link', 'set', 'lo', 'up')
    const peer = ['peer', 'name', name, 'netns', hub]
    await ip('-n', own, 'link', 'add', 'eth0', 'type', 'veth', ...peer)
    await ip('-n', hub, 'link', 'set', name, 'master', 'br0', 'up')
    for (const address of addresses) await ip('-n', own, 'address', 'add', address, 'dev', 'eth0')
    await ip('-n', own, 'link', 'set', 'eth0', 'up')
    for (const route of routes) await ip('-n', own, 'route', 'add', route, 'dev', 'eth0')
    return new LabHost(this, name)
  }

  /** Pulls the host's cable, or plugs it in again. */
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

export class LabHost {
  readonly #lab: Lab
  readonly #name: string

  constructor(lab: Lab, name: string) {
    this.#lab = lab
    this.#name = name
  }

  /** Starts a program on this host. */
  start(
    command: readonly string[],
    { cwd, env = {} }: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
  ): LabProcess {
    const words = ['netns', 'exec', this.#lab.nameOf(this.#name), ...command]
    const child = spawn('ip', words, {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    child.stdout.on('data', (chunk) => (printed += String(chunk)))
    child.stderr.on('data', (chunk) => (printed += String(chunk)))
    // Not 'exit': what it printed may come later than that.
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

  /** Runs a program on this host to its end; what it prints. */
  async run(...command: readonly string[]): Promise<string> {
    const words = ['netns', 'exec', this.#lab.nameOf(this.#name), ...command]
    const { stdout, stderr } = await run('ip', words, RUN_MS_MAX)
    return stdout + stderr
  }

  cut(): Promise<void> {
    return this.#lab.setCable(this.#name, 'down')
  }

  mend(): Promise<void> {
    return this.#lab.setCable(this.#name, 'up')
  }
}

async function ip(...words: readonly string[]): Promise<void> {
  const { code, stderr } = await run('ip', words)
  if (code !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`)
}
