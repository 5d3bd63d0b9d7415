import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import type { Answered, Asked } from '../../../src/client/ask.ts'
import { FLAGS_KSK, FLAGS_ZSK } from '../../../src/dns/dnssec/dnskey.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../../src/dns/tsig/key.ts'
import { KeyDirectory } from '../../../src/signing/keys/key-directory.ts'
import type { StoredKey } from '../../../src/signing/keys/key-store.ts'
import { KeyFollower, type KeyFollowerParts } from '../../../src/signing/shared/key-follower.ts'
import { scanKeyQuestion } from '../../../src/signing/shared/key-question.ts'
import { KeyShare } from '../../../src/signing/shared/key-share.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-names.ts'

const P256 = 13
const ZONE = wire('example.org.')
const OTHER = wire('example.net.')
const KEY = createTsigKey(wire('k.'), scanAlgorithm('hmac-sha256')!, Buffer.alloc(32, 1))
const LEADER = { host: '192.0.2.1', port: 53 }
const SECOND = { host: '192.0.2.2', port: 53 }
const DELAY_SECONDS = 300

/** A state of rolls that has these keys; `note` makes it another one. */
function stateOf(keys: readonly StoredKey[], note = ''): string {
  const at = '2026-01-01T00:00:00Z'
  const ids = keys.map(({ id }) => id).sort()
  const lists = ['dnskey', 'signers', 'ds'].map(
    (name) => `${name} ${at} known 60 ${ids.join(' ') || '-'}`,
  )
  const roles = ids.map((id) => `key ${id} csk ECDSAP256SHA256 in ${at}`)
  const layout = 'csk ECDSAP256SHA256'
  const lines = [`# ${note}`, `configured ${layout}`, `wanted ${layout}`, 'delegation signed']
  return ['sextant key rolls 1', ...lines, ...roles, `cds ${at}`, ...lists, ''].join('\n')
}

/** A server that makes keys, one that follows it, and the network between them. */
class World {
  readonly folder: string
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly metrics = new MetricsRegistry()
  readonly #log = recordLog()
  readonly lines = this.#log.lines
  readonly leader: KeyDirectory
  readonly share: KeyShare
  /** Questions so far: the server and the zone. */
  readonly asked: string[] = []
  /** Answers instead of the servers. */
  answer: (asked: Asked) => Promise<Answered> | Answered = (asked) => this.pass(asked)
  changes = 0
  readonly #t: Test

  constructor(t: Test) {
    this.#t = t
    this.folder = temporaryDirectory(t)
    this.leader = this.#directory('leader')
    this.share = new KeyShare(this.#directory('leader'))
    t.teardown(() => this.share.stop())
  }

  #directory(name: string, follows?: string): KeyDirectory {
    const { clock, timers } = this
    return new KeyDirectory({ path: join(this.folder, name), clock, timers, follows })
  }

  follower(parts: Partial<KeyFollowerParts> = {}): { follower: KeyFollower; store: KeyDirectory } {
    const { clock, timers, metrics } = this
    const store = this.#directory('follower', '192.0.2.1:53')
    const follower = new KeyFollower({
      servers: [LEADER],
      sourceFor: () => '',
      key: KEY,
      zones: () => [ZONE],
      store,
      ...{ clock, timers, metrics, random: () => 0 },
      log: this.#log.log,
      delaySeconds: DELAY_SECONDS,
      ask: async (asked) => {
        const { zone } = scanKeyQuestion(asked.query.question!.name)!
        this.asked.push(`${asked.server.host} ${printName(zone)}`)
        return this.answer(asked)
      },
      ...parts,
    })
    follower.subscribe(() => this.changes++)
    this.#t.teardown(() => follower.stop())
    return { follower, store }
  }

  /** Answers as the leader. */
  async pass({ query }: Asked): Promise<Answered> {
    try {
      const { rdata } = await this.share.answer(scanKeyQuestion(query.question!.name)!, KEY.secret)
      return replyWith(query, rdata)
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return reply(query, Rcode.SERVFAIL)
    }
  }

  /** The leader has these keys, with a state that is `note`. Resolves once it shares them. */
  async put(keys: readonly StoredKey[], note = ''): Promise<void> {
    await this.leader.editState(ZONE, () => stateOf(keys, note))
    // The watch of the share reports it.
    await this.timers.advance(10_000)
  }

  filesOf(name: string): string[] {
    const folder = join(this.folder, name)
    return fs
      .readdirSync(folder)
      .filter((file) => /^[Kr].*\.(key|private|state)$/.test(file))
      .sort()
  }

  /** Files with their content. */
  contentOf(name: string): [string, string][] {
    return this.filesOf(name).map((file) => [
      file,
      fs.readFileSync(join(this.folder, name, file), 'utf8'),
    ])
  }
}

function reply(query: Asked['query'], rcode: number): Answered {
  const message = { ...query, id: 1, flags: 0x8000, rcode }
  return { kind: 'reply', message, octets: Buffer.alloc(0), overTcp: true }
}

function replyWith(query: Asked['query'], rdata: Uint8Array): Answered {
  const answered = reply(query, Rcode.NOERROR)
  if (answered.kind !== 'reply') return answered
  const record = { owner: query.question!.name, type: RRType.TXT, rrclass: RRClass.IN }
  const answer = [{ ...record, ttlSeconds: 0, rdata }]
  return { ...answered, message: { ...answered.message, answer } }
}

const failure = (reason: string, isSilent = true): Answered => {
  const unverified = isSilent ? undefined : { ...EMPTY, rcode: Rcode.NOTAUTH }
  return { kind: 'failed', reason, overTcp: true, unverified }
}
const EMPTY = {
  ...{ id: 1, opcode: 0, flags: 0, rcode: 0, question: undefined },
  ...{ answer: [], authority: [], additional: [], edns: undefined },
}

t.test('the directory of the follower becomes that of the leader', async (t) => {
  const world = new World(t)
  const first = await world.leader.create(ZONE, P256, FLAGS_KSK)
  await world.leader.create(OTHER, P256, FLAGS_KSK)
  await world.put([first])
  const { follower, store } = world.follower()
  t.equal(await follower.followOnce(), '')
  t.strictSame(
    world.contentOf('follower'),
    world.contentOf('leader').filter(([file]) => !file.startsWith('Kexample.net')),
    'only keys of the zone',
  )
  t.equal(fs.statSync(join(world.folder, 'follower', `${first.id}.private`)).mode & 0o777, 0o600)
  t.strictSame(await store.readState(ZONE), await world.leader.readState(ZONE))
  t.equal(world.changes, 1)
  t.equal(await follower.followOnce(), '')
  t.equal(world.changes, 1, 'nothing new')

  const second = await world.leader.create(ZONE, P256, FLAGS_ZSK)
  const foreign = await world.leader.add(
    { ...first, dnskey: await publicOnly(world) },
    undefined,
    {},
  )
  await world.put([first, second])
  t.equal(await follower.followOnce(), '')
  t.equal(world.changes, 2)
  t.ok(world.filesOf('follower').includes(`${foreign.id}.key`), 'the key of another provider')
  await world.leader.retire(first.id)
  await world.put([second])
  t.equal(await follower.followOnce(), '')
  const removed = fs.readdirSync(join(world.folder, 'follower', 'removed')).sort()
  t.strictSame(removed, [`${first.id}.key`, `${first.id}.private`], 'kept, out of use')
  const copied = world.lines.filter((line) =>
    line.endsWith('example.org.: copied from 192.0.2.1:53'),
  )
  t.equal(copied.length, 3)
  const secret = /PrivateKey: (.*)/.exec(world.contentOf('leader').join('\n'))![1]!
  t.notMatch(world.lines.join('\n'), secret.slice(0, 10))

  const again = world.follower()
  t.equal(await again.follower.followOnce(), '', 'after a restart')
  t.strictSame(
    world.filesOf('follower'),
    world.filesOf('leader').filter((f) => !/net/.test(f)),
  )
})

/** The DNSKEY of a key that is in no directory. */
async function publicOnly(world: World): Promise<Uint8Array> {
  const path = join(world.folder, 'provider')
  const store = new KeyDirectory({ path, clock: world.clock, timers: world.timers })
  return (await store.create(ZONE, P256, FLAGS_ZSK)).dnskey
}

t.test('only the follower changes its directory', async (t) => {
  const world = new World(t)
  const key = await world.leader.create(ZONE, P256, FLAGS_KSK)
  await world.put([key])
  const { follower } = world.follower()
  t.equal(await follower.followOnce(), '')
  const path = join(world.folder, 'follower')
  const store = new KeyDirectory({ path, clock: world.clock, timers: world.timers })
  const message = `${path} follows the keys of 192.0.2.1:53; change the keys on that server; to change them here instead, remove ${path}/follows`
  await t.rejects(store.create(ZONE, P256, FLAGS_KSK), { message })
  await t.rejects(
    store.editState(ZONE, () => 'x'),
    { message },
  )
  await t.rejects(store.retire(key.id), { message })
  t.equal((await store.load()).keys.length, 1)
  fs.rmSync(join(path, 'follows'))
  t.ok(await store.create(ZONE, P256, FLAGS_KSK), 'this server takes over')
})

t.test('a key that the leader lacks is never removed or replaced', async (t) => {
  type Case = readonly [string, (world: World, path: string) => Promise<void>, RegExp]
  const cases: readonly Case[] = [
    [
      'a key of its own',
      async (_world, path) => void (await makeKey(path)),
      /follower has K\S+, but not 192\.0\.2\.1:53, or not the same key; import it there/,
    ],
    [
      'a public key without its private one',
      async (world, path) => {
        const id = world.filesOf('leader')[0]!.replace(/\.key$/, '')
        const text = fs.readFileSync(join(world.folder, 'leader', `${id}.key`), 'utf8')
        fs.writeFileSync(join(path, `${id}.key`), text)
      },
      /has only the public key of K\S+; remove K\S+\.key, so that both are fetched again/,
    ],
    [
      'a private key without its public one',
      async (_world, path) => {
        fs.rmSync(join(path, `${await makeKey(path)}.key`))
      },
      /has no public file K/,
    ],
    [
      'a key that is retired here',
      async (world, path) => {
        const id = world.filesOf('leader')[0]!.replace(/\.key$/, '')
        fs.mkdirSync(join(path, 'removed'))
        for (const ending of ['key', 'private'])
          fs.copyFileSync(
            join(world.folder, 'leader', `${id}.${ending}`),
            join(path, 'removed', `${id}.${ending}`),
          )
      },
      /follower\/removed has K\S+, which is in use at 192\.0\.2\.1:53; move its files back/,
    ],
  ]
  for (const [what, prepare, want] of cases) {
    const world = new World(t)
    await world.put([await world.leader.create(ZONE, P256, FLAGS_KSK)])
    const path = join(world.folder, 'follower')
    fs.mkdirSync(path, { mode: 0o700 })
    await prepare(world, path)
    const before = world.contentOf('follower')
    const { follower } = world.follower()
    t.match(await follower.followOnce(), want, what)
    t.strictSame(world.contentOf('follower'), before, `${what}: unchanged`)
    t.notOk(fs.existsSync(join(path, 'follows')), what)
    t.equal(world.changes, 0, what)
  }
})

async function makeKey(path: string): Promise<string> {
  const store = new KeyDirectory({ path, clock: new FakeClock(), timers: new FakeTimers() })
  return (await store.create(ZONE, P256, FLAGS_KSK)).id
}

t.test('faults of the server and of the way to it', async (t) => {
  const share = 'add share k. to its directive dnssec of example.org.'
  const cases: readonly [
    string,
    (asked: Asked, world: World) => Promise<Answered> | Answered,
    string,
  ][] = [
    ['silence', () => failure('timed out'), 'timed out'],
    [
      'an unknown key',
      () => failure('the peer replied BADKEY, rcode NOTAUTH', false),
      'the peer replied BADKEY, rcode NOTAUTH; add the key k. to its directive tsig, in the block of the zone',
    ],
    [
      'a wrong secret',
      () => failure('the peer replied BADSIG, rcode NOTAUTH', false),
      'the peer replied BADSIG, rcode NOTAUTH; use the same secret for the key k. on both servers',
    ],
    [
      'a wrong clock',
      () => failure('the peer replied BADTIME, rcode NOTAUTH', false),
      'the peer replied BADTIME, rcode NOTAUTH; set the clocks of both servers',
    ],
    [
      'no tsig',
      () => failure('the reply is not signed, rcode REFUSED', false),
      'the reply is not signed, rcode REFUSED; add tsig with the key k. to its block of the zone',
    ],
    [
      'another key',
      ({ query }) => reply(query, Rcode.REFUSED),
      `it does not share the keys of example.org. with the key k., REFUSED; ${share}`,
    ],
    [
      'no share',
      ({ query }) => reply(query, Rcode.NXDOMAIN),
      `it does not share the keys of example.org. with the key k., NXDOMAIN; ${share}`,
    ],
    [
      'no keys',
      ({ query }) => reply(query, Rcode.SERVFAIL),
      'it has no usable keys of example.org.: see its log',
    ],
    [
      'another version',
      ({ query }) => replyWith(query, Uint8Array.of(1, 2)),
      'it sends keys in format 2, which is unknown here; update the server that is older',
    ],
    [
      'octets of chance',
      ({ query }) => replyWith(query, Uint8Array.of(3, 1, 0, 0)),
      'the reply cannot be decrypted',
    ],
  ]
  for (const [what, answer, want] of cases) {
    const world = new World(t)
    world.answer = (asked) => answer(asked, world)
    const { follower } = world.follower()
    const fault = `keys of example.org.: 192.0.2.1:53: ${want}`
    t.equal(await follower.followOnce(), fault, what)
    await follower.followOnce()
    t.equal(world.lines.filter((line) => line.includes(fault)).length, 1, `${what}: logged once`)
    t.notOk(fs.existsSync(join(world.folder, 'follower')), what)
  }
})

t.test('an older reply, or one of another zone, is not accepted', async (t) => {
  const world = new World(t)
  const first = await world.leader.create(ZONE, P256, FLAGS_KSK)
  await world.put([first])
  const replies: Answered[] = []
  world.answer = async (asked) => {
    const answered = await world.pass(asked)
    replies.push(answered)
    return answered
  }
  const { follower } = world.follower()
  t.equal(await follower.followOnce(), '')
  const [old] = replies
  await world.put([first], 'newer')
  t.equal(await follower.followOnce(), '')
  const before = world.contentOf('follower')
  world.answer = () => old!
  t.match(await follower.followOnce(), /cannot be decrypted/)
  const other = world.follower({ zones: () => [OTHER] })
  t.match(await other.follower.followOnce(), /keys of example\.net\.: .* cannot be decrypted/)
  t.strictSame(world.contentOf('follower'), before)
})

t.test('a leader without keys, and one whose keys have a fault', async (t) => {
  const world = new World(t)
  const { follower } = world.follower()
  t.match(await follower.followOnce(), /it has no usable keys/)
  const key = await world.leader.create(ZONE, P256, FLAGS_KSK)
  await world.put([key])
  t.equal(await follower.followOnce(), '')
  const file = join(world.folder, 'leader', `${key.id}.private`)
  fs.chmodSync(file, 0o644)
  await world.put([key], 'newer')
  t.match(await follower.followOnce(), /it has no usable keys/, 'it could seem to be retired')
  fs.chmodSync(file, 0o600)
  await world.put([key], 'newest')
  t.equal(await follower.followOnce(), '')
})

t.test('the other server is asked if the first one is silent', async (t) => {
  const world = new World(t)
  await world.put([await world.leader.create(ZONE, P256, FLAGS_KSK)])
  world.answer = (asked) => (asked.server === LEADER ? failure('timed out') : world.pass(asked))
  const { follower } = world.follower({ servers: [LEADER, SECOND], zones: () => [ZONE, OTHER] })
  t.match(await follower.followOnce(), /^keys of example\.net\.: 192\.0\.2\.2:53: it has no usable/)
  t.strictSame(world.asked, [
    '192.0.2.1 example.org.',
    '192.0.2.2 example.org.',
    '192.0.2.2 example.net.',
  ])
  world.asked.length = 0
  world.answer = () => failure('timed out')
  t.equal(
    await follower.followOnce(),
    'keys of example.org., example.net.: 192.0.2.2:53: timed out; 192.0.2.1:53: timed out',
  )
  t.equal(world.asked.length, 2, 'each silent server once')
})

t.test('rounds of questions, and a leader that is away for long', async (t) => {
  const world = new World(t)
  const key = await world.leader.create(ZONE, P256, FLAGS_KSK)
  await world.put([key])
  const { follower } = world.follower()
  follower.start()
  await until(() => world.changes === 1, 'the keys')
  const metric = async (): Promise<number> => {
    const text = await world.metrics.print()
    const name = 'sextant_key_follow_confirmed_timestamp_seconds'
    return Number(new RegExp(`${name}\\{zone="example.org."\\} (\\S+)`).exec(text)?.[1])
  }
  const confirmed = await metric()
  t.equal(confirmed, world.clock.now() / 1000)
  await world.put([key], 'newer')
  const pass = async (ms: number, isSo: () => boolean, what: string): Promise<void> => {
    await until(async () => {
      world.clock.pass(ms)
      await world.timers.advance(ms)
      return isSo()
    }, what)
  }
  await pass(1000, () => world.changes === 2, 'the change')
  world.answer = () => failure('connection refused')
  await pass(1000, () => follower.fault !== '', 'the fault')
  t.equal(follower.fault, 'keys of example.org.: 192.0.2.1:53: connection refused')
  const since = await metric()
  t.ok(since >= confirmed)
  world.asked.length = 0
  await pass(10_000, () => /not confirmed/.test(follower.fault), 'the delay')
  t.match(
    follower.fault,
    /refused; not confirmed since \S+Z, which is longer than zone-propagation-delay: after a roll/,
  )
  t.equal(await metric(), since)
  t.ok(world.asked.length <= DELAY_SECONDS / 9, `${world.asked.length} questions`)
  t.equal(world.lines.filter((line) => /refused/.test(line)).length, 2)
  world.answer = (asked) => world.pass(asked)
  await pass(10_000, () => follower.fault === '', 'the end of the fault')
  for (const ending of ['key', 'private'])
    fs.rmSync(join(world.folder, 'follower', `${key.id}.${ending}`))
  await pass(
    10_000,
    () => world.filesOf('follower').includes(`${key.id}.private`),
    'the lost files',
  )
})
