import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import type { Answered } from '../../../src/client/ask.ts'
import { type AddressQuery, askAddresses } from '../../../src/client/resolver/ask-addresses.ts'
import type { Observation } from '../../../src/client/resolver/observation.ts'
import { Resolver, type ResolverParts } from '../../../src/client/resolver/resolver.ts'
import { RESOLVER_RULES_DEFAULT } from '../../../src/client/resolver/waits.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { ResourceRecord } from '../../../src/dns/message/message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import type { AddressFamily } from '../../../src/dns/text/address.ts'
import { LearnedTable, ttlRule } from '../../../src/egress/learned/learned-table.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const wireOf = (name: string): Uint8Array => scanName(name)!
const server = { host: '192.0.2.53', port: 53 }

/** The answer of a server: a TTL, an rcode as negative number, or silence. */
type Reply = { readonly ttl: number } | { readonly rcode: number } | 'nodata' | 'silence'

interface Asked extends AddressQuery {
  readonly atMs: number
  readonly text: string
}

interface Bench {
  readonly resolver: Resolver
  readonly store: LearnedTable
  readonly clock: FakeClock
  readonly asked: Asked[]
  readonly observations: Observation[]
  readonly lines: string[]
  /** Most queries that were open at once. */
  readonly most: () => number
  readonly pass: (ms: number, stepMs?: number) => Promise<void>
}

/** A resolver whose servers reply after 20 ms, and stay silent for 4 s. */
function bench(
  t: Test,
  reply: (name: string, family: AddressFamily, host: string) => Reply,
  more: Partial<ResolverParts> = {},
): Bench {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const store = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 0 })
  const asked: Asked[] = []
  const observations: Observation[] = []
  const lines: string[] = []
  let open = 0
  let most = 0
  const ask = (query: AddressQuery): Promise<Answered> => {
    const text = printName(query.name)
    asked.push({ ...query, text, atMs: clock.monotonic() })
    most = Math.max(most, ++open)
    const what = reply(text, query.family, query.server.host)
    return new Promise((resolve) => {
      timers.after(what === 'silence' ? (query.isHurried === true ? 1000 : 4000) : 20, () => {
        open--
        resolve(answerOf(query, what))
      })
    })
  }
  const resolver = new Resolver({
    rules: RESOLVER_RULES_DEFAULT,
    familiesOf: () => [1, 2],
    servers: () => [server],
    ask,
    onObservation: (observation) => {
      observations.push(observation)
      if (observation.kind !== 'answer') return
      const base = { name: printName(observation.name), lookupMs: observation.atMs }
      for (const { address, ttlSeconds } of observation.facts) {
        store.add({ ...base, addresses: [address], ttlSeconds })
      }
    },
    clock,
    timers,
    random: new Random(7),
    log: createLogger(
      'egress',
      (line) => lines.push(line),
      () => false,
    ),
    ...more,
  })
  t.teardown(() => resolver.close())
  const pass = async (ms: number, stepMs = 10): Promise<void> => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.pass(stepMs)
      await timers.advance(stepMs)
    }
  }
  return { resolver, store, clock, asked, observations, lines, most: () => most, pass }
}

function answerOf({ name, family }: AddressQuery, reply: Reply): Answered {
  if (reply === 'silence') return { kind: 'failed', reason: 'timed out', overTcp: false }
  const type = family === 1 ? RRType.A : RRType.AAAA
  const rdata = new Uint8Array(family === 1 ? 4 : 16)
  rdata.set(family === 1 ? [192, 0, 2, 7] : [0x20, 1])
  const ttlSeconds = typeof reply === 'object' && 'ttl' in reply ? reply.ttl : -1
  const record: ResourceRecord = { owner: name, type, rrclass: RRClass.IN, ttlSeconds, rdata }
  const message = {
    id: 1,
    opcode: 0,
    flags: HeaderFlag.QR,
    rcode: typeof reply === 'object' && 'rcode' in reply ? reply.rcode : Rcode.NOERROR,
    question: { name, type, rrclass: RRClass.IN },
    answer: ttlSeconds < 0 ? [] : [record],
    authority: [],
    additional: [],
    edns: undefined,
  }
  return { kind: 'reply', message, octets: new Uint8Array(), overTcp: false }
}

t.test('a name is asked at once, A before AAAA, and again when its TTL ends', async (t) => {
  const { resolver, asked, pass, store } = bench(t, (_, family) => ({
    ttl: family === 1 ? 30 : 60,
  }))
  resolver.want(wireOf('A.example.'))
  resolver.want(wireOf('a.example.'))
  await pass(100)
  t.strictSame(
    asked.map(({ text, family }) => [text, family]),
    [
      ['a.example.', 1],
      ['a.example.', 2],
    ],
  )
  t.ok(asked[1]!.atMs > asked[0]!.atMs)
  t.equal([...store.endsOf('a.example.')].length, 2)
  await pass(29_000, 100)
  t.equal(asked.length, 2)
  await pass(4000)
  t.equal(asked.length, 4)
  resolver.forget(wireOf('a.example.'))
  await pass(60_000, 1000)
  t.equal(asked.length, 4)
  t.equal(resolver.size, 0)
})

t.test('a name that fails is asked again by its own backoff', async (t) => {
  const { resolver, asked, pass } = bench(t, (name) => {
    return name.startsWith('ok') ? { ttl: 300 } : { rcode: Rcode.NXDOMAIN }
  })
  resolver.want(wireOf('gone.example.'))
  resolver.want(wireOf('ok.example.'))
  await pass(60_000, 50)
  const times = asked.filter(({ text, family }) => text === 'gone.example.' && family === 1)
  t.ok(times.length >= 9 && times.length <= 12, `${times.length} times in a minute`)
  t.equal(asked.filter(({ text }) => text === 'ok.example.').length, 2)
  await pass(600_000, 500)
  const later = asked.filter(({ text, family }) => text === 'gone.example.' && family === 1)
  t.ok(later.length <= times.length + 10, 'then every two minutes')
})

t.test(
  'an empty name is asked by the backoff too, a wildcard without answer after 30 min',
  async (t) => {
    const { resolver, asked, pass } = bench(t, () => 'nodata')
    resolver.want(wireOf('empty.example.'))
    resolver.want(wireOf('*.example.'))
    await pass(12_000, 50)
    const count = (name: string): number => asked.filter(({ text }) => text === name).length
    t.equal(count('empty.example.'), 6)
    t.equal(count('*.example.'), 2)
    await pass(1_810_000, 500)
    t.equal(count('*.example.'), 4)
  },
)

t.test('one family that fails does not make the other one wait for the TTL', async (t) => {
  const { resolver, asked, pass } = bench(t, (_, family) => {
    return family === 1 ? { ttl: 300 } : { rcode: Rcode.SERVFAIL }
  })
  resolver.want(wireOf('a.example.'))
  await pass(12_000, 50)
  t.equal(asked.filter(({ family }) => family === 2).length, 3)
})

t.test('1 000 names with one TTL, due at once: no burst, and no address is lost', async (t) => {
  const { resolver, asked, store, clock, pass, most } = bench(t, () => ({ ttl: 30 }))
  const names = Array.from({ length: 1000 }, (_, i) => wireOf(`n${i}.example.`))
  for (const name of names) resolver.want(name)
  await pass(6000)
  t.equal(store.nameCount, 1000)
  let lost = 0
  for (let second = 0; second < 120; second++) {
    await pass(1000, 20)
    for (let i = 0; i < 1000; i++) {
      for (const [, endMs] of store.endsOf(`n${i}.example.`))
        if (endMs + 5000 < clock.monotonic()) lost++
    }
  }
  t.equal(lost, 0)
  t.ok(most() <= RESOLVER_RULES_DEFAULT.workers, `${most()} queries at once`)
  const perSecond = new Map<number, number>()
  for (const { atMs, family } of asked) {
    const second = Math.floor(atMs / 1000)
    if (family === 1) perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
  }
  t.ok(
    Math.max(...perSecond.values()) <= 520,
    `${Math.max(...perSecond.values())} names per second`,
  )
})

t.test('with a lead no address passes the end of its TTL', async (t) => {
  const rules = { ...RESOLVER_RULES_DEFAULT, leadMs: 6000 }
  const { resolver, store, clock, pass } = bench(t, () => ({ ttl: 30 }), { rules })
  for (let i = 0; i < 500; i++) resolver.want(wireOf(`n${i}.example.`))
  await pass(3000)
  let late = 0
  for (let second = 0; second < 90; second++) {
    await pass(1000, 20)
    for (let i = 0; i < 500; i++) {
      for (const [, endMs] of store.endsOf(`n${i}.example.`)) if (endMs < clock.monotonic()) late++
    }
  }
  t.equal(late, 0)
})

t.test('dead names do not hold up others', async (t) => {
  const { resolver, asked, pass } = bench(t, (name) => {
    return name.startsWith('dead') ? 'silence' : { ttl: 10 }
  })
  for (let i = 0; i < 50; i++) resolver.want(wireOf(`ok${i}.example.`))
  await pass(3000)
  for (let i = 0; i < 300; i++) resolver.want(wireOf(`dead${i}.example.`))
  await pass(60_000, 20)
  const last = new Map<string, number>()
  let gapMs = 0
  for (const { text, family, atMs } of asked) {
    if (family !== 1 || !text.startsWith('ok')) continue
    gapMs = Math.max(gapMs, atMs - (last.get(text) ?? atMs))
    last.set(text, atMs)
  }
  t.equal(last.size, 50)
  t.ok(gapMs < 13_000, `each is asked at least every ${gapMs} ms`)
})

t.test('dead names do not hold up new ones', async (t) => {
  const cases = [
    // All names are new.
    { deadMs: 0, rules: { hurriesFirst: true, workers: 64 }, newMs: 1100, lastMs: 25_000 },
    // The dead names were asked for before.
    { deadMs: 60_000, rules: { hurriesFirst: true, workers: 64 }, newMs: 100, lastMs: 100 },
    { deadMs: 900_000, rules: { hurriesFirst: false }, newMs: 100, lastMs: 100 },
  ]
  for (const { deadMs, rules, newMs, lastMs } of cases) {
    const all = { ...RESOLVER_RULES_DEFAULT, ...rules }
    const { resolver, asked, pass, clock, most } = bench(
      t,
      (name) => (name.startsWith('dead') ? 'silence' : { ttl: 3600 }),
      { rules: all },
    )
    const isAnswered = (name: string): boolean => {
      return asked.filter(({ text }) => text === name).length === 2
    }
    resolver.want(wireOf('first.example.'))
    for (let i = 0; i < 1000; i++) resolver.want(wireOf(`dead${i}.example.`))
    if (deadMs > 0) await pass(deadMs, 200)
    else await pass(100)
    const about = JSON.stringify({ deadMs, ...rules })
    const startMs = clock.monotonic()
    resolver.want(wireOf('new.example.'))
    for (let i = 0; i < 400 && !isAnswered('new.example.'); i++) await pass(50)
    t.ok(clock.monotonic() - startMs <= newMs, `${about}: a new name after ${clock.monotonic()}`)
    while (!isAnswered('first.example.') && clock.monotonic() - startMs < lastMs) await pass(50)
    t.ok(isAnswered('first.example.'), `${about}: the name before the dead ones`)
    t.ok(most() <= all.workers, 'as many queries at once as before')
    resolver.close()
  }
})

t.test('a lost first query is repeated at once', async (t) => {
  let count = 0
  const rules = { ...RESOLVER_RULES_DEFAULT, hurriesFirst: true }
  const resolved: number[] = []
  const { resolver, asked, pass } = bench(t, () => (count++ === 0 ? 'silence' : { ttl: 60 }), {
    rules,
    onResolved: (_, __, found) => resolved.push(found.length),
  })
  resolver.want(wireOf('a.example.'))
  await pass(1500)
  t.strictSame(
    asked.map(({ family, isHurried }) => [family, isHurried]),
    [
      [1, true],
      [1, false],
      [2, false],
    ],
  )
  t.strictSame(resolved, [2], 'nothing is known of it before')
})

t.test('a dead server does not hold up names', async (t) => {
  const servers = [1, 2, 3].map((n) => ({ host: `192.0.2.${n}`, port: 53 }))
  const { resolver, asked, pass, store, observations } = bench(
    t,
    (_, __, host) => (host === '192.0.2.2' ? 'silence' : { ttl: 60 }),
    { servers: () => servers },
  )
  for (let i = 0; i < 200; i++) resolver.want(wireOf(`n${i}.example.`))
  await pass(20_000, 20)
  t.equal(store.nameCount, 200)
  const silent = asked.filter((query) => query.server.host === '192.0.2.2').length
  t.ok(silent >= 3 && silent < 60, `${silent} queries to the dead server`)
  const last = observations.findLast(({ name, kind }) => {
    return kind === 'answer' && printName(name) === 'n199.example.'
  })
  t.equal(last?.server, '192.0.2.3:53')
})

t.test('after a restart names are due by their stored state', async (t) => {
  const { resolver, asked, clock, pass } = bench(t, () => ({ ttl: 60 }))
  const nowMs = clock.monotonic()
  for (let i = 0; i < 100; i++) resolver.schedule(wireOf(`past${i}.example.`), nowMs - 1000 * i)
  resolver.schedule(wireOf('later.example.'), nowMs + 30_000)
  await pass(2000)
  const first = asked.filter(({ family }) => family === 1)
  t.equal(first.length, 100)
  t.equal(first[0]?.text, 'past99.example.', 'the longest overdue first')
  t.equal(resolver.lagMs, 0)
  await pass(29_000, 100)
  t.equal(asked.filter(({ text }) => text === 'later.example.').length, 2)
  resolver.schedule(wireOf('later.example.'), clock.monotonic() + 100_000)
  await pass(90_000, 100)
  t.equal(asked.filter(({ text }) => text === 'later.example.').length, 2, 'a client refreshed it')
})

t.test('a real server is asked with recursion, and over TCP', async (t) => {
  const seen: string[] = []
  const real = await ScriptedServer.open(t, (query) => {
    const { name, type } = query.question!
    seen.push(`${printName(name)} ${type} ${(query.flags & HeaderFlag.RD) !== 0}`)
    const rdata = new Uint8Array([192, 0, 2, 9])
    return type === RRType.A
      ? [{ owner: name, type, rrclass: RRClass.IN, ttlSeconds: 60, rdata }]
      : Rcode.REFUSED
  })
  const { resolver, store, observations, pass } = bench(t, () => 'silence', {
    servers: () => [{ host: '127.0.0.1', port: real.port }],
    ask: askAddresses,
  })
  resolver.want(wireOf('a.example.'))
  await pass(10)
  await until(() => observations.length === 2, 'both replies')
  t.strictSame(seen, ['a.example. 1 true', 'a.example. 28 true'])
  t.match(observations[1], { family: 2, kind: 'failed', reason: 'REFUSED' })
  t.ok(store.endOf('a.example.', '192.0.2.9'))
})

t.test('a fault of a reader of observations costs only that round', async (t) => {
  let rounds = 0
  const onObservation = (): void => {
    if (++rounds <= 40) throw new Error('reader')
  }
  const { resolver, pass, lines } = bench(t, () => ({ ttl: 60 }), { onObservation })
  for (let i = 0; i < 40; i++) resolver.want(wireOf(`n${i}.example.`))
  await pass(12_000, 20)
  t.equal(resolver.active, 0)
  t.ok(rounds >= 120, 'each name was asked again')
  t.match(lines.join(), 'Resolving names again failed')
})

t.test('after close nothing is asked', async (t) => {
  const { resolver, asked, pass } = bench(t, () => ({ ttl: 5 }))
  resolver.want(wireOf('a.example.'))
  await pass(10)
  resolver.close()
  await pass(60_000, 1000)
  t.ok(asked.length <= 2)
})

t.test('a known name can be asked at once, and its next time is reported', async (t) => {
  const due: number[] = []
  const { resolver, asked, pass, clock } = bench(t, () => ({ ttl: 300 }), {
    rules: { ...RESOLVER_RULES_DEFAULT, spreadMs: 0 },
    onResolved: (_, dueMs) => due.push(dueMs),
  })
  resolver.hasten(wireOf('unknown.example.'))
  resolver.want(wireOf('a.example.'))
  await pass(100)
  t.equal(asked.length, 2)
  t.equal(due.length, 1)
  t.ok(Math.abs(due[0]! - clock.monotonic() - 300_000) < 100)
  resolver.hasten(wireOf('a.example.'))
  await pass(100)
  t.equal(asked.length, 4)
  t.equal(due.length, 2)
})

t.test('a name that is hastened while it is resolved is resolved again after that', async (t) => {
  const servers = [server]
  const late = { host: '192.0.2.54', port: 53 }
  const { resolver, asked, pass, clock } = bench(t, () => ({ ttl: 300 }), {
    servers: () => servers,
    // As a controller that plans lookups by its own state.
    onResolved: (name) => resolver.schedule(name, clock.monotonic() + 300_000),
  })
  const name = wireOf('a.example.')
  resolver.want(name)
  await pass(30)
  t.equal(asked.length, 2, 'the second family is being resolved')
  servers.splice(0, 1, late)
  resolver.hasten(name)
  resolver.hasten(name)
  await pass(200)
  const hosts = asked.map(({ server }) => server.host)
  t.strictSame(hosts, [server.host, server.host, late.host, late.host])
  await pass(60_000, 1000)
  t.equal(asked.length, 4, 'once')
  resolver.hasten(name)
  resolver.schedule(name, clock.monotonic() + 300_000)
  await pass(200)
  t.equal(asked.length, 6, 'a time that is set meanwhile does not delay it')
})

t.test('each name has its own families', async (t) => {
  const { resolver, asked, pass } = bench(t, () => ({ ttl: 30 }), {
    familiesOf: (name) => (printName(name).startsWith('v4') ? [1] : [1, 2]),
  })
  resolver.want(wireOf('v4.example.'))
  resolver.want(wireOf('both.example.'))
  await pass(100)
  const families = (text: string) => asked.filter((one) => one.text === text).length
  t.strictSame([families('v4.example.'), families('both.example.')], [1, 2])
})

t.test('Node.js does not take the open queries for a leak', async (t) => {
  const warnings: string[] = []
  const note = ({ name }: Error): void => void warnings.push(name)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  let open = 0
  const ask = ({ signal }: AddressQuery): Promise<Answered> => {
    open++
    signal.addEventListener('abort', () => {})
    return new Promise(() => {})
  }
  const { resolver, pass } = bench(t, () => ({ ttl: 60 }), { ask })
  for (let i = 0; i < 16; i++) resolver.schedule(wireOf(`n${i}.example.com.`), 0)
  await pass(10)
  t.equal(open, 16)
  t.strictSame(warnings, [])
})
