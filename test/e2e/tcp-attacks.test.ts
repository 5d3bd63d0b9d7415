import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { HostNetwork, type NetworkHost } from '../support/host-network.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { ATTACKS, type AttackPlan, type Kind, type Outcome } from './tcp-attack.ts'

// Long: it attacks a server for tens of seconds.

/*
 * Many clients, most of them hostile, ask one server over TCP. What an attack does is bounded in number, not by what the
 * machine can: it wants 2 200 connections, which are more than there are places.
 */

const SCRIPT = fileURLToPath(new URL('./tcp-attack.ts', import.meta.url))
const HOOKS = new URL('../support/typescript-hooks.mjs', import.meta.url)
/** Loads TypeScript without tap, which would end a process after 30 s. */
const LOADER = `data:text/javascript,import{register}from"node:module";register("${HOOKS.href}")`
/** Ample: on a machine on which everything is tested at once. */
const ATTACK_MS_MAX = 300_000
t.setTimeout(1_800_000)

const RECORDS = 30_000
const ZONE = [
  '$ORIGIN z.example.\n$TTL 300',
  '@ SOA ns hostmaster 1 3600 600 86400 300',
  '@ NS ns\nns A 192.0.2.53',
  `long TXT ${`"${'x'.repeat(200)}" `.repeat(5)}`,
  ...Array.from({ length: RECORDS }, (_, i) => `host-${i} A 192.0.2.1`),
].join('\n')

const COREFILE = `z.example:{PORT} {
    errors
    file zone
    transfer {
        to *
    }
}
`

const range = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))

/** Where attackers are: each is a client of its own. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  'one address': ['127.1.0.1'],
  '30 addresses of 30 networks': range(30, (i) => `127.${i + 1}.0.1`),
  'a /59': range(32, (i) => `2001:db8:1:${(0x1e0 + i).toString(16)}::1`),
  'a /48': range(300, (i) => `2001:db8:1:${i.toString(16)}::1`),
}
const HONEST = [
  ...range(5, (i) => `127.${200 + i}.0.1`),
  ...range(5, (i) => `2001:db8:${(0x700 + i).toString(16)}::1`),
]
/** Transfers that exceed the bounds of the block, and the count of those that are not logged one by one. */
const REFUSED_TRANSFER = /^.*(AXFR: too many transfers are under way|errors not logged: .*)$/gm
/** Of each honest client. */
const QUESTIONS = 20
const CONNECTIONS = 2200

interface Arena {
  readonly host: NetworkHost
  readonly server: RunningServer
}

async function open(t: Test): Promise<Arena> {
  const network = await HostNetwork.create(t)
  const host = await network.addHost('site', ['192.0.2.1/24'])
  // Every address of it is one of this host.
  await host.run('sysctl', '-qw', 'net.ipv6.ip_nonlocal_bind=1')
  await host.run('ip', '-6', 'route', 'add', 'local', '2001:db8::/32', 'dev', 'lo')
  const server = await startServer(t, {
    corefile: COREFILE,
    files: { zone: ZONE },
    wrapper: ['ip', 'netns', 'exec', network.nameOf('site')],
  })
  return { host, server }
}

function start({ host }: Arena, plan: AttackPlan) {
  return host.start([process.execPath, '--import', LOADER, SCRIPT, JSON.stringify(plan)])
}

/** What honest clients get while the attack goes on. */
async function ask(t: Test, arena: Arena, kinds: readonly Kind[], from: readonly string[]) {
  const { port } = arena.server
  const each = Math.ceil(CONNECTIONS / from.length)
  const attack = start(arena, { port, kinds, from, each })
  try {
    const isReady = () => attack.output().includes('ready') || attack.process.exitCode !== null
    await until(isReady, 'the attack', ATTACK_MS_MAX)
    const readyMs = performance.now()
    const honest = start(arena, { port, kinds: [], from: HONEST, each: QUESTIONS })
    const isOver = () => honest.output().includes('}') || honest.process.exitCode !== null
    await until(isOver, 'honest clients', ATTACK_MS_MAX)
    const outcome = JSON.parse(honest.output()) as Outcome
    t.comment(`honest: ${(performance.now() - readyMs).toFixed(0)} ms`)
    await honest.end('SIGKILL')
    t.equal(attack.process.exitCode, null, attack.output())
    return outcome
  } finally {
    await attack.end('SIGKILL')
  }
}

t.test('honest clients are answered', { ...needsRoot(), ...needs('ip', 'sysctl') }, async (t) => {
  const arena = await open(t)
  const table: { kinds: readonly Kind[]; source: string }[] = [
    ...ATTACKS.map((kind, i) => ({
      kinds: [kind],
      source: i % 2 === 0 ? 'a /59' : '30 addresses of 30 networks',
    })),
    { kinds: ATTACKS, source: 'one address' },
    { kinds: ATTACKS, source: '30 addresses of 30 networks' },
    { kinds: ATTACKS, source: 'a /48' },
  ]
  for (const { kinds, source } of table) {
    const name = kinds.length === 1 ? kinds[0]! : 'all of it'
    const startMs = performance.now()
    const { asked, answered, failures } = await ask(t, arena, kinds, SOURCES[source]!)
    t.comment(`${name}: ${answered} of ${asked}, ${(performance.now() - startMs).toFixed(0)} ms`)
    t.equal(asked, HONEST.length * QUESTIONS)
    t.ok(answered >= 0.99 * asked, `${name} from ${source}: ${answered}, ${failures.slice(0, 3)}`)
  }
  const faults = arena.server.output().replaceAll(REFUSED_TRANSFER, '')
  t.notMatch(faults, /\[ERROR\]|panic/)
})
