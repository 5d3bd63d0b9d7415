import t from 'tap'
import { DROP, type Handler } from '../../src/plugin/handler.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { type QuerySpec, readMessage, wireQuery } from '../support/wire.ts'
import { ask, block, chain, open, out, says, start, text } from './server-fixture.ts'

t.test('a query goes to the block of the longest zone', async (t) => {
  const { server } = start(
    ['org.', 'example.org.', 'a.b.example.org.', 'com.'].map((z) => block(z)),
  )
  const table: { name: string; type?: number; want: string }[] = [
    { name: 'example.org', want: 'example.org.' },
    { name: 'WWW.EXAMPLE.ORG', want: 'example.org.' },
    { name: 'b.example.org', want: 'example.org.' },
    { name: 'a.b.example.org', want: 'a.b.example.org.' },
    { name: 'x.y.a.b.example.org', want: 'a.b.example.org.' },
    { name: 'org', want: 'org.' },
    { name: 'xexample.org', want: 'org.' },
    { name: 'example.net', want: 'rcode 5' },
    { name: '.', want: 'rcode 5' },
    { name: 'example.org', type: 43, want: 'org.' },
    { name: 'a.b.example.org', type: 43, want: 'example.org.' },
    { name: 'sub.example.org', type: 43, want: 'example.org.' },
    { name: 'com', type: 43, want: 'com.' },
  ]
  for (const { name, type = 1, want } of table) {
    t.equal(text(ask(server, { name, type })), want, `${name} type ${type}`)
  }
  const { server: root } = start([block('.'), block('org.')])
  t.equal(text(ask(root, { name: '.' })), '.')
  t.equal(text(ask(root, { name: 'example.com' })), '.')
  t.equal(text(ask(root, { name: 'org', type: 43 })), '.')
})

t.test('a server distinguishes thousands of zones', async (t) => {
  const { server } = start(Array.from({ length: 40_000 }, (_, i) => block(`z${i}.example.`)))
  for (const i of [0, 1, 12_345, 39_999]) {
    t.equal(text(ask(server, { name: `www.z${i}.example` })), `z${i}.example.`)
  }
  t.equal(text(ask(server, { name: 'www.z40000.example' })), 'rcode 5')
})

t.test('views of one zone are tried in order, then shorter zones', async (t) => {
  let wanted = ''
  const seen: string[] = []
  const view = (viewName: string, zone = 'example.org.'): RoutedBlock =>
    block(zone, {
      viewName,
      chain: says(viewName),
      filters: [
        (tx) => {
          seen.push(`${viewName} in ${tx.zone}`)
          return wanted.includes(viewName)
        },
      ],
    })
  const { server } = start([view('a'), view('b'), block('org.', { chain: says('org') })])
  for (const [want, answer] of [
    ['a', 'a'],
    ['b', 'b'],
    ['ab', 'a'],
    ['', 'org'],
  ] as const) {
    wanted = want
    t.equal(text(ask(server, { name: 'example.org' })), answer, `views that say yes: '${want}'`)
  }
  t.strictSame(seen.slice(0, 3), ['a in example.org.', 'a in example.org.', 'b in example.org.'])
  wanted = ''
  const { server: strict } = start([view('a')])
  t.equal(text(ask(strict, { name: 'example.org' })), 'rcode 5', 'no block accepts it')
  const both = block('example.org.', { filters: [() => true, () => false] })
  t.equal(text(ask(start([both]).server, { name: 'example.org' })), 'rcode 5', 'one filter says no')
})

t.test('classes', async (t) => {
  const { server } = start([block('example.org.'), block('bind.', { takesChaos: true })])
  const table = [
    { name: 'example.org', rrclass: 1, want: 'example.org.' },
    { name: 'example.org', rrclass: 3, want: 'rcode 5' },
    { name: 'example.org', rrclass: 255, want: 'rcode 5' },
    { name: 'version.bind', rrclass: 3, want: 'bind.' },
    { name: 'version.bind', rrclass: 4, want: 'rcode 5' },
    { name: 'version.bind', rrclass: 1, want: 'bind.' },
  ]
  for (const { name, rrclass, want } of table) {
    t.equal(text(ask(server, { name, rrclass })), want, `${name} class ${rrclass}`)
  }
})

t.test('invalid packets get their error reply, and are counted', async (t) => {
  const { server, counters } = start([block('.')])
  const q = (spec: Partial<QuerySpec>): Uint8Array => wireQuery({ name: 'a', ...spec })
  const table: {
    name: string
    given: Uint8Array
    rcode: number
    questions: number
    opt?: boolean
    counter: 'ignored' | 'notImp' | 'formErr' | 'badVers'
  }[] = [
    {
      name: 'a response',
      given: q({ flags: 0x8000 }),
      rcode: -1,
      questions: 0,
      counter: 'ignored',
    },
    {
      name: 'five octets',
      given: q({}).subarray(0, 5),
      rcode: -1,
      questions: 0,
      counter: 'ignored',
    },
    { name: 'NOTIFY', given: q({ flags: 0x2000 }), rcode: 4, questions: 1, counter: 'notImp' },
    { name: 'UPDATE', given: q({ flags: 0x2800 }), rcode: 4, questions: 0, counter: 'notImp' },
    {
      name: 'a cut question',
      given: q({}).subarray(0, 14),
      rcode: 1,
      questions: 0,
      counter: 'formErr',
    },
    {
      name: 'a bad ECS',
      given: q({ edns: { options: [[8, new Uint8Array(1)]] } }),
      rcode: 1,
      questions: 1,
      opt: true,
      counter: 'formErr',
    },
    {
      name: 'EDNS version 7',
      given: q({ edns: { version: 7 } }),
      rcode: 16,
      questions: 1,
      opt: true,
      counter: 'badVers',
    },
  ]
  for (const { name, given, rcode, questions, opt = false, counter } of table) {
    const count = (): number => {
      return counter === 'ignored' ? counters.ignored : counters.dropped.get('dns://:53')![counter]
    }
    const before = count()
    const message = ask(server, given)
    t.equal(message?.rcode ?? -1, rcode, name)
    t.equal(message?.questions.length ?? 0, questions, `${name}: question`)
    t.equal(message?.opt !== undefined, opt, `${name}: OPT`)
    t.equal(count(), before + 1, `${name}: counted as ${counter}`)
  }
  ask(start([block('a.')]).server, { name: 'b' })
  const dropped = counters.dropped.get('dns://:53')!
  t.equal(dropped.refused, 0)
  t.strictSame(
    dropped.queries.filter(({ count }) => count > 0),
    [{ proto: 'udp', family: 1, count: 5 }],
  )
  const other = start([block('a.')])
  ask(other.server, { name: 'b' })
  ask(other.server, { name: 'b' }, 1)
  const others = other.counters.dropped.get('dns://:53')!
  t.equal(others.refused, 2)
  t.strictSame(others.queries, [
    { proto: 'udp', family: 1, count: 1 },
    { proto: 'udp', family: 2, count: 0 },
    { proto: 'tcp', family: 1, count: 1 },
    { proto: 'tcp', family: 2, count: 0 },
  ])
})

t.test('the replies to results of handlers', async (t) => {
  const half = (rcode: number, inResponse: number): Handler =>
    chain((tx) => {
      says('half').serve(tx)
      tx.response.rcode = inResponse
      tx.response.edeCode = 3
      return rcode
    })
  const table: { name: string; given: Handler; rcode: number; answers: number; aa: boolean }[] = [
    { name: 'NOERROR', given: half(0, 0), rcode: 0, answers: 1, aa: true },
    { name: 'NXDOMAIN', given: half(3, 3), rcode: 3, answers: 1, aa: true },
    {
      name: 'SERVFAIL means nothing was written',
      given: half(2, 2),
      rcode: 2,
      answers: 0,
      aa: false,
    },
    { name: 'REFUSED too', given: half(5, 0), rcode: 5, answers: 0, aa: false },
    { name: 'FORMERR too', given: half(1, 0), rcode: 1, answers: 0, aa: false },
    { name: 'NOTIMP too', given: half(4, 0), rcode: 4, answers: 0, aa: false },
    {
      name: 'NOERROR with another rcode in the response keeps records',
      given: half(0, 2),
      rcode: 2,
      answers: 1,
      aa: true,
    },
  ]
  for (const { name, given, rcode, answers, aa } of table) {
    const message = ask(start([block('.', { chain: given })]).server, { name: 'a', edns: {} })
    t.equal(message?.rcode, rcode, name)
    t.equal(message?.answer.length, answers, `${name}: answers`)
    t.equal(((message?.flags ?? 0) & 0x0400) !== 0, aa, `${name}: AA`)
    t.equal(message?.options.get(15)?.[1], 3, `${name}: EDE stays`)
  }
  t.equal(
    ask(start([block('.', { chain: chain(() => DROP) })]).server, { name: 'a' }),
    undefined,
    'DROP',
  )
})

t.test('handlers may wait', async (t) => {
  const later = (rcode: number): Handler =>
    chain(async (tx) => {
      says('later').serve(tx)
      return rcode
    })
  for (const [rcode, answers] of [
    [0, 1],
    [2, 0],
  ] as const) {
    const { server } = start([block('.', { chain: later(rcode) })])
    const promise = server.serve(open(server, wireQuery({ name: 'a' })), out)
    t.type(promise, Promise)
    const message = readMessage(out.slice(0, await promise))
    t.equal(message.rcode, rcode)
    t.equal(message.answer.length, answers)
  }
  const { server } = start([block('.', { chain: chain(async () => DROP) })])
  t.equal(await server.serve(open(server, wireQuery({ name: 'a' })), out), 0)
})

t.test('a bug in a handler costs one query', async (t) => {
  const sync = chain(() => {
    throw new Error('boom\nforged line')
  })
  const async_ = chain(async () => {
    throw new Error('boom')
  })
  for (const broken of [sync, async_]) {
    const { server, counters, lines } = start([block('.', { chain: broken })])
    const octets = await server.serve(open(server, wireQuery({ name: 'a' })), out)
    t.equal(readMessage(out.slice(0, octets)).rcode, 2)
    t.equal(counters.panics, 1)
    t.equal(lines.length, 1)
    t.match(lines[0], /^\[ERROR\] Recovered from panic in server: "dns:\/\/:53" Error: boom/)
    t.notMatch(lines[0], /\n/)
  }
  const { server } = start([block('.', { chain: sync, debug: true })])
  t.throws(
    () => server.serve(open(server, wireQuery({ name: 'a' })), out),
    /boom/,
    'not with debug',
  )
  const { server: waits } = start([block('.', { chain: async_, debug: true })])
  await t.rejects(Promise.resolve(waits.serve(open(waits, wireQuery({ name: 'a' })), out)), /boom/)
})

t.test('handlers see the peer as the client until geoip says otherwise', async (t) => {
  let seen: unknown
  const { server } = start([
    block('.', {
      chain: chain(({ query }) => {
        seen = {
          address: [...query.clientAddress.subarray(0, 4)],
          family: query.clientFamily,
          bits: query.clientBits,
          isEcs: query.clientIsEcs,
        }
        query.clientIsEcs = true
        query.clientBits = 24
        return 0
      }),
    }),
  ])
  for (let i = 0; i < 2; i++) {
    ask(server, { name: 'a' })
    t.strictSame(seen, { address: [198, 51, 100, 100], family: 1, bits: 32, isEcs: false })
  }
})
