import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { isSubdomain } from '../../src/dns/name/name.ts'
import { type RunningPeer, startPeer } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-names.ts'
import { CachedKeys } from './cached-keys.ts'
import { startUnboundResolver } from './resolvers.ts'
import { makeSettledKeys } from './settled-keys.ts'
import { SignedClients } from './signed-clients.ts'
import { parentText, SignedParent } from './signed-parent.ts'

// Long: it waits for the steps of rolls.

/*
 * Rolls that change the DS go on when all servers of the parent, Knot and BIND, have the DS: also if one of them is behind,
 * or stops for a while. A registry follows the CDS. Unbound trusts the parent's key.
 */

const PARENT = 'example'
const ROLLS: Readonly<Record<string, readonly string[]>> = {
  'k.example': ['--ksk'],
  'c.example': ['--csk'],
  'a.example': ['--algorithm', 'ED25519'],
}
const ZONES = Object.keys(ROLLS)
const FOLLOW_MS = 200
t.setTimeout(600_000)

const ZONE_TEXT = `$TTL 1
@ SOA ns1 hostmaster 1 3600 600 86400 1
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.1
*.wild TXT text
`
const QUESTIONS = ['www A', 'www TXT', 'r.wild TXT', 'nope A', '@ SOA', '@ NS', '@ DNSKEY', '@ CDS']

function corefile(keys: string, parents: readonly number[]): string {
  const addresses = parents.map((port) => `127.0.0.1:${port}`).join(' ')
  return ZONES.map(
    (zone) => `${zone}:{PORT} {
 bind 127.0.0.1
 errors
 file db ${zone}
 dnssec {
  keys ${keys}
  ${zone === 'k.example' ? 'split' : ''}
  parent ${addresses}
  policy fast {
   dnskey-ttl 1
   zone-propagation-delay 2
   parent-propagation-delay 1
   parent-ds-ttl 1
   publish-safety 1
   retire-safety 1
  }
 }
}
`,
  )
    .join('')
    .replace(/ {2}policy fast \{[^}]*\}/g, (text, at, whole: string) =>
      whole.indexOf(text) === at ? text : '  policy fast',
    )
}

/** Makes the DS of both servers of the parent those that the CDS ask for. */
class Registry {
  readonly #parent: SignedParent
  readonly #second: RunningPeer
  readonly #port: number
  readonly #behind = new Map<string, readonly string[]>()
  /** True: the second server of the parent does not get changes. */
  isBehind = false

  constructor(parent: SignedParent, second: RunningPeer, port: number) {
    this.#parent = parent
    this.#second = second
    this.#port = port
  }

  async follow(): Promise<void> {
    for (const zone of ZONES) {
      if (await this.#parent.follow(zone, [this.#port])) {
        this.#behind.set(zone, this.#parent.dsOf(zone))
      }
    }
    if (!this.isBehind) {
      for (const [zone, ds] of this.#behind) await this.#parent.put(this.#second.port, zone, ds)
      this.#behind.clear()
    }
    await delay(FOLLOW_MS)
  }

  /** Zones whose DS the servers of the parent disagree on. */
  get disputed(): readonly string[] {
    return [...this.#behind.keys()]
  }
}

async function start(t: Test) {
  const keys = join(temporaryDirectory(t), 'keys')
  const made = await Promise.all(
    ZONES.map((zone) => makeSettledKeys(keys, zone, zone === 'k.example')),
  )
  const children = Object.fromEntries(ZONES.map((zone, i) => [zone, made[i]!.ds]))
  const parent = await SignedParent.start(t, PARENT, children, 1)
  const second = await startPeer(t, 'named', {
    ...{ zone: PARENT, port: 1, signed: false },
    zoneText: parentText(PARENT, children),
  })
  const server = await startServer(t, {
    corefile: corefile(keys, [parent.port, second.port]),
    files: { db: ZONE_TEXT },
  })
  return { keys, made, parent, second, server }
}

/** The lines of the log about steps of the keys of a zone. */
function stepsOf(server: RunningServer, zone: string): readonly string[] {
  return (
    server
      .output()
      .split('\n')
      .filter((line) => line.includes(`[INFO] plugin/dnssec: keys of ${zone}.: `))
      .map((line) => line.replace(/^.*keys of \S+ /, ''))
      // The next step is last, and may itself have several parts.
      .flatMap((line) => line.replace(/(^|; )next: .*$/, '').split('; '))
      .filter((text) => text !== '')
  )
}

const tools = needs('knotd', 'named', 'unbound', 'dig', 'nsupdate')
t.test('rolls wait for all servers of the parent', tools, async (t) => {
  const { keys, made, parent, second, server } = await start(t)
  const registry = new Registry(parent, second, server.port)
  const checks = ZONES.map(
    (zone) => new CachedKeys({ zone, ports: [server.port], parentPort: parent.port }),
  )
  for (const check of checks) void check.watch()
  await until(() => checks.every(({ dsTags, tags }) => dsTags.length * tags.length > 0), 'keys')
  const random = new Random(1)
  let turn = 0
  const clients = new SignedClients(() => {
    const [name = '', type = ''] = QUESTIONS[random.below(QUESTIONS.length)]!.split(' ')
    const zone = ZONES[turn++ % ZONES.length]!
    return { name: name === '@' ? zone : `${name}.${zone}`, type }
  })
  const zones = Object.fromEntries(ZONES.map((zone) => [zone, [server.port]]))
  const resolver = await startUnboundResolver(t, {
    key: parent.key,
    zones: { [PARENT]: [parent.port], ...zones },
  })
  await clients.askResolver(resolver)
  await clients.askServer('server', server.port, (reply) => {
    const { name } = parseMessage(reply)!.question!
    checks[ZONES.findIndex((zone) => isSubdomain(name, wire(`${zone}.`)))]!.check(reply)
  })
  clients.repeat(() => registry.follow())
  registry.isBehind = true
  for (const [zone, roll] of Object.entries(ROLLS)) {
    const args = ['keys', 'roll', zone, ...roll, '-keys', keys]
    const { code, stderr } = await runSextant(server.directory, args)
    t.equal(code, 0, stderr)
  }
  const reported = (text: string): number => server.output().split(text).length - 1
  const disputes = (): number => reported('the servers of the parent have different DS records')

  await until(() => registry.disputed.length === ZONES.length, 'new DS at one server of the parent')
  await until(() => disputes() === ZONES.length, 'the server to see that')
  const removals = /ask the parent to remove/
  for (const zone of ZONES) t.notMatch(stepsOf(server, zone).join(), removals, `${zone} waits`)
  second.signal('SIGSTOP')
  await until(() => reported('timed out') >= ZONES.length, 'the server to see that one is dead')
  for (const zone of ZONES) t.notMatch(stepsOf(server, zone).join(), removals, `${zone} waits`)
  second.signal('SIGCONT')
  registry.isBehind = false
  const areRolled = (): boolean => {
    return checks.every(({ tags, dsTags }, i) => {
      return (
        tags.length > 0 && ![...tags, ...dsTags].some((tag) => isOld(tag, made[i]!.tags, ZONES[i]!))
      )
    })
  }
  await until(areRolled, 'the ends of all rolls', 200_000).catch((error) => {
    const states = checks.map(({ tags, dsTags }) => `DNSKEY ${tags}, DS ${dsTags}`)
    t.fail(`${error}: ${states.join('; ')}\n${server.output().slice(-4000)}`)
  })
  for (const check of checks) check.stop()
  await clients.stop()
  const faults = [...clients.faults, ...checks.flatMap((check) => check.faults)]
  t.equal(faults.length, 0, faults.slice(0, 20).join('\n'))
  t.ok(clients.count > 1000, `${clients.count} answers`)
  for (const zone of ZONES) {
    const steps = stepsOf(server, zone).flatMap((text) => text.split(', '))
    t.ok(steps.length > 4, zone)
    t.equal(new Set(steps).size, steps.length, `${zone}: ${steps.join(', ')}`)
  }
  t.notMatch(server.output(), /\[ERROR\]/)
})

/** The roll of a KSK leaves the ZSK, the second key. */
function isOld(tag: number, tags: readonly number[], zone: string): boolean {
  return zone === 'k.example' ? tag === tags[0] : tags.includes(tag)
}
