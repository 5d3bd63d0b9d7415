import { chmodSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { composePodAndPolicy, EgressNode, UPSTREAM } from '../support/egress-node.ts'
import { NetworkHost } from '../support/host-network.ts'
import { composeManifests, type Manifest, manifestOf } from '../support/kustomize.ts'
import { needs, needsRoot, run } from '../support/peer.ts'
import { type RunningServer, root, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts many servers.

/* The rollout of the DaemonSet of the node agent: what the kubelet sees, and what clients lose. */

t.setTimeout(600_000)

const { template } = manifestOf(composeManifests('deploy/node'), 'DaemonSet', 'sextant-node').spec
const [container] = template.spec.containers
const MOUNT = '/run/sextant-pod'
const SERVERS = [UPSTREAM, '2001:db8::10']
/** Sockets per server: the kernel chooses a process for each. */
const SOCKETS = 8
const PER_SECOND = 10
const ROLLOUTS = 3
const START_MS_MAX = 120_000
/** A query without an answer for so long is lost. On a busy machine, others wait for seconds. */
const LOST_MS = 30_000
/** `forward` answers within this time. Older queries do not wait when an agent is killed. */
const ANSWER_MS = 5000

/** A Pod of the DaemonSet: its process, and its startup probe. */
class AgentPod {
  readonly process: RunningServer
  readonly #fit: (word: string) => string

  private constructor(process: RunningServer, fit: (word: string) => string) {
    this.process = process
    this.#fit = fit
  }

  /** `args` and `env`: beside those of the manifest. */
  static async start(
    node: EgressNode,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<AgentPod> {
    const volume = mkdtempSync(join(node.directory, 'pod-'))
    const fit = (word: string) => word.replace(MOUNT, volume)
    const own = container.args.slice(1).map(fit)
    const process = await node.startAgent([...own, ...args], { env, mustStart: false })
    return new AgentPod(process, fit)
  }

  async isStarted(): Promise<boolean> {
    const [program, ...args] = container.startupProbe.exec.command.map(this.#fit)
    return (await run(program, args)).code === 0
  }

  get hasEnded(): boolean {
    return this.process.process.exitCode !== null
  }
}

t.test('the volume of the startup probe belongs to one Pod', (t) => {
  const { name } = container.volumeMounts.find((one: Manifest['spec']) => one.mountPath === MOUNT)
  const volume = template.spec.volumes.find((one: Manifest['spec']) => one.name === name)
  t.strictSame(volume, { name, emptyDir: {} })
  t.end()
})

const OBJECTS = composePodAndPolicy(['10.1.0.2', 'fd01::2'])
const NAMES = Array.from({ length: 100 }, (_, i) => `n${i}`)
const ZONE = `$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A ${UPSTREAM}
${NAMES.map((name, i) => `${name} 1 A 198.18.2.${i + 1}`).join('\n')}
fresh0 A 198.18.3.1
fresh1 A 198.18.3.2
`

interface LoadResult {
  readonly sent: number
  readonly failed: number
  readonly failures: readonly string[]
  /** Number of failed queries. */
  readonly reasons: Readonly<Record<string, number>>
  /** When each of these was sent. */
  readonly failedMs: readonly number[]
}

/** Starts clients that ask all servers for all names. Resolves to what ends them. */
async function startLoad(node: EgressNode): Promise<() => Promise<readonly LoadResult[]>> {
  const load = new NetworkHost(node.network, 'app').start([
    'env',
    `LOAD_TIMEOUT_MS=${LOST_MS}`,
    process.execPath,
    join(root, 'test/support/load-client.mjs'),
    NAMES.map((name) => `${name}.example.com`).join(),
    ...SERVERS.flatMap((server) => Array(SOCKETS).fill(`${server}:53:${PER_SECOND}:1`)),
  ])
  await until(() => load.output().includes('ready'), 'the clients')
  return async () => {
    await load.end('SIGTERM')
    return JSON.parse(load.output().split('\n')[1]!)
  }
}

const SERVFAIL = 'rcode 2, 0 addresses'

/** Failed queries of all clients, by reason. */
function reasonCounts(results: readonly LoadResult[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { reasons } of results) {
    for (const [reason, count] of Object.entries(reasons)) {
      counts.set(reason, (counts.get(reason) ?? 0) + count)
    }
  }
  return counts
}

/** Number of SERVFAILs because the upstream did not answer in time, on a busy machine. Others fail the test. */
function countLateReplies(t: Test, agents: readonly AgentPod[]): number {
  let count = 0
  for (const line of agents.flatMap(({ process }) => process.output().split('\n'))) {
    const [, reason] = /^\[ERROR\] plugin\/errors: (.*)/.exec(line) ?? []
    if (reason === undefined) continue
    const [, more] = /^errors not logged: (\d+)/.exec(reason) ?? []
    count += Number(more ?? 1)
    if (more === undefined) t.match(reason, /timed out|no upstream replied in time/)
  }
  return count
}

/** Why queries failed, and warnings, each with how often the agents logged it. */
function reasonsOf(agents: readonly AgentPod[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const { process } of agents) {
    for (const line of process.output().split('\n')) {
      const reason = /^\[(?:ERROR|WARNING)\].*/
        .exec(line)?.[0]
        .replace(/\bn\d+\.example/, 'n.example')
      if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1)
    }
  }
  return [...counts].map(([reason, count]) => `${count} x ${reason}`)
}

const PLACE = {
  objects: OBJECTS,
  podAddresses: { app: ['10.1.0.2', 'fd01::2'] },
  zones: { 'example.com.': ZONE },
  // On a busy machine, all queries of some seconds come at once, and from one Pod.
  properties: 'concurrency 0 per-client 0',
  chain: `forward . ${UPSTREAM} {\n max_concurrent 100000\n}`,
  mustStart: false,
}

t.test(
  `no query is lost in ${ROLLOUTS} rollouts, and in two of a version that does not start`,
  { ...needsRoot(), ...needs('ip', 'nft', 'conntrack', 'dig') },
  async (t) => {
    const node = await EgressNode.start(t, PLACE)
    let running = await AgentPod.start(node)
    const agents = [running]
    await until(() => running.isStarted(), 'the first agent', START_MS_MAX)
    const endLoad = await startLoad(node)

    for (let i = 0; i < ROLLOUTS; i++) {
      const next = await AgentPod.start(node)
      agents.push(next)
      await until(() => next.isStarted(), 'the new agent', START_MS_MAX)
      await next.process.prints(/^Sextant-/m)
      running.process.process.kill('SIGTERM')
      t.equal(await running.process.exited(), 0)
      t.notOk(await running.isStarted(), 'an agent that ended')
      running = next
    }

    const tools = join(node.directory, 'tools')
    mkdirSync(tools)
    writeFileSync(join(tools, 'nft'), '#!/bin/sh\nexec sleep 3600\n')
    chmodSync(join(tools, 'nft'), 0o755)
    const hangs = await AgentPod.start(node, [], { PATH: `${tools}:${process.env.PATH}` })
    const ends = await AgentPod.start(node, ['-no-such-flag'])
    for (const bad of [hangs, ends]) {
      const isOver = async () => {
        t.notOk(await bad.isStarted(), 'a version that does not start')
        return bad.hasEnded
      }
      await until(isOver, 'the end', START_MS_MAX)
      t.equal(await bad.process.exited(), 1)
    }
    t.notOk(running.hasEnded)

    const results = await endLoad()
    const sent = results.reduce((sum, one) => sum + one.sent, 0)
    t.comment(`${sent} queries`)
    for (const reason of reasonsOf(agents)) t.comment(reason)
    t.equal(results.length, SERVERS.length * SOCKETS)
    for (const { sent, failures } of results) {
      t.ok(sent > 0)
      if (failures.length > 0) t.comment(failures.join(', '))
    }
    const { [SERVFAIL]: refused = 0, ...lost } = Object.fromEntries(reasonCounts(results))
    t.strictSame(lost, {})
    const late = countLateReplies(t, agents)
    t.ok(refused <= late, `${refused} SERVFAIL, ${late} of them because of the upstream`)
  },
)

t.test(
  'two agents side by side: one answers while the other is killed and starts again',
  { ...needsRoot(), ...needs('ip', 'nft', 'conntrack', 'dig') },
  async (t) => {
    const node = await EgressNode.start(t, PLACE)
    const agents: AgentPod[] = []
    const all: AgentPod[] = []
    const add = async (): Promise<void> => {
      const agent = await AgentPod.start(node)
      await until(() => agent.isStarted(), 'an agent', START_MS_MAX)
      agents.push(agent)
      all.push(agent)
    }
    await add()
    await add()
    const endLoad = await startLoad(node)
    /** When each agent was killed, and when it had ended. */
    const kills: (readonly [number, number])[] = []
    for (let i = 0; i < 2; i++) {
      const killed = agents.shift()!
      const killedMs = Date.now()
      killed.process.process.kill('SIGKILL')
      await killed.process.exited()
      kills.push([killedMs, Date.now()])
      const { result } = await node.pod('app').visit(`fresh${i}.example.com`, 443)
      t.equal(result, 'open', 'a name that is asked for the first time')
      await add()
    }
    const results = await endLoad()
    const failed = results.reduce((sum, one) => sum + one.failed, 0)
    const sent = results.reduce((sum, one) => sum + one.sent, 0)
    t.comment(`${failed} of ${sent} queries were lost in two kills`)
    t.ok(sent > 0)
    // What waited in the sockets of the process that was killed is lost, but nothing that was sent after its end.
    const others = results
      .flatMap(({ failedMs }) => failedMs)
      .filter((ms) => !kills.some(([from, to]) => ms > from - ANSWER_MS && ms <= to))
    const late = countLateReplies(t, all)
    t.ok(
      others.length <= late,
      `${others.length} sent otherwise, ${late} late replies of the upstream`,
    )
  },
)

t.test('the file of a container that was killed is gone before the server starts', async (t) => {
  // The new container has the process id of the old one.
  const server = await startServer(t, {
    corefile: `.:{PORT} {
    bind 127.0.0.1
    egress {
        kubernetes node
        endpoint http://127.0.0.1:1
        dry_run
        cluster 10.0.0.0/8
        api off
        startup_timeout 1h
    }
    whoami
}
`,
    args: ['-pidfile', 'pid'],
    wrapper: ['sh', '-c', 'echo $$ > pid; touch written; exec "$@"', 'sh'],
    mustStart: false,
  })
  const has = (file: string) => existsSync(join(server.directory, file))
  await until(() => has('written') && !has('pid'), 'the removal', START_MS_MAX)
  t.equal(server.process.exitCode, null)
  t.notMatch(server.output(), /^Sextant-/m)
})
