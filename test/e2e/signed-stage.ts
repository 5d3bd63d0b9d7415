import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { isSubdomain } from '../../src/dns/name/name.ts'
import type { Question } from '../support/client.ts'
import { putFile, type RunningServer, runSextant, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-names.ts'
import { CachedKeys } from './cached-keys.ts'
import { Delv } from './delv.ts'
import { type RunningResolver, startNamedResolver, startUnboundResolver } from './resolvers.ts'
import { makeSettledKeys } from './settled-keys.ts'
import { SignedClients } from './signed-clients.ts'
import { SignedParent } from './signed-parent.ts'
import { CLIENT_NETWORKS, SteeredRecords } from './steered-records.ts'

const PARENT = 'example'
/** How often the parent looks for CDS. */
const FOLLOW_MS = 500

interface Zone {
  readonly zone: string
  /** Lines of `dnssec` and of its policy. */
  readonly lines: string
  readonly policy: string
  readonly rolls: readonly (readonly string[])[]
}

const ZONES: readonly Zone[] = [
  {
    zone: 'a.example',
    lines: 'split',
    policy: '',
    rolls: [['--zsk'], ['--ksk']],
  },
  { zone: 'b.example', lines: 'denial nsec3', policy: '', rolls: [['--csk']] },
  {
    zone: 'c.example',
    lines: '',
    // Signatures are refreshed all the time.
    policy: 'signatures-validity 240\n signatures-refresh 120\n signatures-jitter 60',
    rolls: [['--algorithm', 'ED25519']],
  },
]

/** The delays are those of two servers on one busy machine. */
const POLICY = `dnskey-ttl 1
 zone-propagation-delay 5
 parent-propagation-delay 1
 parent-ds-ttl 1
 publish-safety 1
 retire-safety 1`

function corefile(keys: string): string {
  const blocks = ZONES.map(
    ({ zone, lines, policy }, i) => `${zone}:{PORT} {
 bind 127.0.0.1
 errors
 multisocket 1
 geoip {
  edns-subnet
  ${Object.entries(CLIENT_NETWORKS)
    .filter(([code]) => code !== 'none')
    .map(([code, network]) => `net ${network} ${code}`)
    .join('\n  ')}
 }
 dnssec {
  keys ${keys}
  policy of-${zone} {
   ${POLICY}
   ${policy}
  }
  ${lines}
 }
 kuadrant {
  manifests zones
  nameserver ns1.${zone} 127.0.0.1
  snapshot ${zone}.snapshot 1s
  ${i === 0 ? 'drain drains\n  shift shifts' : ''}
 }
}
`,
  )
  return blocks.join('')
}

/** The servers, the resolvers, and what is counted. */
export class Stage {
  readonly #t: Test
  readonly #keys: string
  readonly #servers: RunningServer[]
  readonly #parent: SignedParent
  readonly #records: readonly SteeredRecords[]
  readonly #checks: readonly CachedKeys[]
  readonly #clients: SignedClients
  #resolvers: readonly RunningResolver[] = []
  #firstTags: readonly (readonly number[])[] = []
  /** Zones whose new DS the parent has, which is not confirmed yet. */
  readonly #followed = new Set<string>()
  #disturbances = 0
  #turn = 0

  private constructor(t: Test, keys: string, servers: RunningServer[], parent: SignedParent) {
    this.#t = t
    this.#keys = keys
    this.#servers = servers
    this.#parent = parent
    this.#records = recordsOfZones()
    const ports = servers.map(({ port }) => port)
    this.#checks = ZONES.map(({ zone }) => new CachedKeys({ zone, ports, parentPort: parent.port }))
    this.#clients = new SignedClients(() => this.#nextQuestion())
  }

  /** Starts all, and waits until the delegations are signed. */
  static async start(t: Test): Promise<Stage> {
    const keys = join(temporaryDirectory(t), 'keys')
    const made = await Promise.all(
      ZONES.map(({ zone, lines }) => makeSettledKeys(keys, zone, lines === 'split')),
    )
    const files = {
      ...Object.assign({}, ...recordsOfZones().map((one) => one.files())),
      drains: '',
    }
    const servers: RunningServer[] = []
    for (let i = 0; i < 2; i++) {
      servers.push(await startServer(t, { corefile: corefile(keys), files }))
    }
    const names = ZONES.map(({ zone }) => zone)
    const children = Object.fromEntries(names.map((zone, i) => [zone, made[i]!.ds]))
    const parent = await SignedParent.start(t, PARENT, children, servers[0]!.port)
    const stage = new Stage(t, keys, servers, parent)
    stage.#firstTags = made.map(({ tags }) => tags)
    for (const check of stage.#checks) void check.watch()
    stage.#clients.repeat(() => stage.#followCds())
    await until(
      () => stage.#checks.every(({ dsTags, tags }) => dsTags.length * tags.length > 0),
      'the keys',
    )
    const ports = servers.map(({ port }) => port)
    const zones = Object.fromEntries(names.map((zone) => [zone, ports]))
    const delegated = { key: parent.key, zones: { [PARENT]: [parent.port], ...zones } }
    stage.#resolvers = [
      await startUnboundResolver(t, delegated),
      await startNamedResolver(t, delegated),
    ]
    return stage
  }

  /** Answers so far. */
  get count(): number {
    return this.#clients.count
  }

  /** True if no cache has a key of the start. */
  get areRolled(): boolean {
    return this.#checks.every(({ tags, dsTags }, i) => {
      const old = this.#firstTags[i]!
      return tags.length > 0 && ![...tags, ...dsTags].some((tag) => old.includes(tag))
    })
  }

  describeKeys(): string {
    return this.#checks
      .map(({ tags, dsTags }, i) => `${this.#firstTags[i]}: DNSKEY ${tags}, DS ${dsTags}`)
      .join('; ')
  }

  async rollKeys(): Promise<void> {
    for (const { zone, rolls } of ZONES) {
      for (const roll of rolls) await this.#runKeys(['roll', zone, ...roll])
    }
  }

  edit(): void {
    for (const records of this.#records) {
      const [path, text] = records.edit()
      for (const { directory } of this.#servers) putFile(directory, path, text)
    }
  }

  drain(isDrained: boolean): void {
    const text = isDrained ? 'id:eu2 by=test\nid:w2 by=test\nid:a by=test\n' : ''
    for (const { directory } of this.#servers) putFile(directory, 'drains', text)
  }

  /** A server reloads, is taken over, or restarts. */
  async disturb(): Promise<void> {
    const kind = this.#disturbances++
    const index = Math.floor(kind / 3) % 2
    const server = this.#servers[index]!
    if (kind % 3 === 0) {
      const reloads = (): number => server.output().split('Reloading complete').length
      const before = reloads()
      server.process.kill('SIGUSR1')
      await until(() => reloads() > before, 'the reload', 120_000)
      return
    }
    const text = corefile(this.#keys)
    if (kind % 3 === 1) {
      const options = { corefile: text, beside: server, args: ['-takeover'] }
      this.#servers[index] = await startServer(this.#t, options)
      server.process.kill('SIGTERM')
      await server.exited()
      return
    }
    // With drains that began after it, a snapshot would not be used.
    this.drain(false)
    server.process.kill(index === 0 ? 'SIGTERM' : 'SIGKILL')
    await server.exited()
    this.#servers[index] = await startServer(this.#t, { corefile: text, beside: server })
  }

  /** Asks until `stop`. */
  async askAll(): Promise<void> {
    const clients = this.#clients
    const [{ port }] = this.#resolvers as [RunningResolver, RunningResolver]
    const delv = new Delv(port, temporaryDirectory(this.#t), this.#parent.key)
    clients.repeat(() => this.#runDelv(delv))
    for (const resolver of this.#resolvers) await clients.askResolver(resolver)
    for (const server of this.#servers) {
      await clients.askServer('in this process', server.port, (reply) => this.#check(reply))
    }
  }

  async stop(): Promise<void> {
    for (const check of this.#checks) check.stop()
    await this.#clients.stop()
  }

  /** `answers`: how many are the least. */
  report(answers: number): void {
    const t = this.#t
    const who = [...this.#resolvers.map(({ name }) => name), 'in this process', 'delv']
    for (const one of who) t.comment(`${one}: ${this.#clients.countOf(one)} answers`)
    const faults = [...this.#clients.faults, ...this.#checks.flatMap((check) => check.faults)]
    t.equal(faults.length, 0, faults.slice(0, 30).join('\n'))
    t.ok(this.count >= answers, `${this.count} answers`)
    for (const { name } of this.#resolvers) t.ok(this.#clients.countOf(name) > 100)
    for (const server of this.#servers) t.notMatch(server.output(), /\[ERROR\]/)
  }

  /** `refusal`: an error that is expected. Resolves to false if it happens. */
  async #runKeys(args: readonly string[], refusal?: RegExp): Promise<boolean> {
    const { directory } = this.#servers[0]!
    const { code, stdout, stderr } = await runSextant(directory, [
      ...['keys', ...args, '-keys', this.#keys],
    ])
    if (code === 0) return true
    if (refusal?.test(stderr)) return false
    throw new Error(`keys ${args.join(' ')}: ${stdout}${stderr}`)
  }

  /** The parent follows the CDS, and its operator says so as soon as that is allowed. */
  async #followCds(): Promise<void> {
    const ports = this.#servers.map(({ port }) => port)
    for (const { zone } of ZONES) {
      if (await this.#parent.follow(zone, ports)) this.#followed.add(zone)
      if (!this.#followed.has(zone)) continue
      if (await this.#runKeys(['ds', zone, '--published'], /confirm after that/)) {
        this.#followed.delete(zone)
      }
    }
    await delay(FOLLOW_MS)
  }

  #nextQuestion(): Question {
    const turn = this.#turn++
    const networks = Object.values(CLIENT_NETWORKS)
    const subnet = networks[Math.floor(turn / ZONES.length) % networks.length]!
    return { ...this.#records[turn % ZONES.length]!.question(), subnet }
  }

  /** Checks the reply of a server. */
  #check(reply: Buffer): void {
    const name = parseMessage(reply)?.question?.name
    const at = ZONES.findIndex(
      ({ zone }) => name !== undefined && isSubdomain(name, wire(`${zone}.`)),
    )
    this.#checks[Math.max(0, at)]!.check(reply)
  }

  async #runDelv(delv: Delv): Promise<void> {
    const { name, type } = this.#nextQuestion()
    await delv.expect(this.#t, `${name} ${type}`, 'NOERROR', true)
    this.#clients.note('delv')
  }
}

function recordsOfZones(): SteeredRecords[] {
  return ZONES.map(({ zone }, i) => new SteeredRecords(zone, i + 1))
}
