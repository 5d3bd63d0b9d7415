import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { DROP, type Handler } from '../../src/plugin/handler.ts'

import { sentOctets } from '../../src/plugin/status.ts'
import { CHAIN_DEPTH_MAX, type Transaction } from '../../src/plugin/transaction.ts'
import { ServerCounts, ServerTotals } from '../../src/server/counters.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { Server } from '../../src/server/server.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import {
  type QuerySpec,
  readMessage,
  type WireMessage,
  wireName,
  wireQuery,
} from '../support/wire.ts'

/** A chain that answers every query with TXT `text`. */
function says(text: string): Handler {
  const rdata = Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
  return {
    name: 'toy',
    serve({ query, response }) {
      response.authoritative = true
      response.add(0, query.qname, 0, 16, 1, 60, rdata, 0, rdata.length)
      return 0
    },
  }
}

function chain(serve: Handler['serve']): Handler {
  return { name: 'toy', serve }
}

function block(zone: string, over: Partial<RoutedBlock> = {}): RoutedBlock {
  return {
    zone: wireName(zone),
    zoneText: zone,
    chain: says(zone),
    filters: [],
    viewName: '',
    bufsizeOctets: 1232,
    debug: false,
    ...over,
  }
}

interface Fixture {
  readonly server: Server
  readonly counters: ServerTotals
  readonly lines: string[]
}

function start(blocks: readonly RoutedBlock[], cookies?: CookieJar): Fixture {
  const lines: string[] = []
  const counters = new ServerCounts()
  const server = new Server({
    address: 'dns://:53',
    blocks,
    clock: { now: () => 1559731985_000, monotonic: () => 0 },
    random: new Random(1),
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
    counters,
    cookies,
    tcpIdleMs: 10_000,
  })
  return { server, counters: new ServerTotals(counters), lines }
}

const out = new Uint8Array(65535)

function open(server: Server, packet: Uint8Array, protocol: 0 | 1 = 0): Transaction {
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetOctets = packet.length
  tx.query.protocol = protocol
  tx.query.peerAddress.set([198, 51, 100, 100])
  tx.query.peerFamily = 1
  tx.query.peerPort = 5353
  return tx
}

/** Serves a query of a chain that doesn't wait; undefined = silence. */
function ask(
  server: Server,
  spec: QuerySpec | Uint8Array,
  protocol: 0 | 1 = 0,
): WireMessage | undefined {
  const tx = open(server, spec instanceof Uint8Array ? spec : wireQuery(spec), protocol)
  const octets = server.serve(tx, out)
  server.release(tx)
  if (typeof octets !== 'number') throw new Error('the chain waits')
  return octets === 0 ? undefined : readMessage(out.slice(0, octets))
}

function text(message: WireMessage | undefined): string {
  if (message === undefined) return 'silence'
  if (message.rcode !== 0) return `rcode ${message.rcode}`
  return Buffer.from(message.answer[0]?.rdata.subarray(1) ?? []).toString()
}

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

t.test('thousands of zones are told apart', async (t) => {
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
  t.equal(text(ask(strict, { name: 'example.org' })), 'rcode 5', 'nobody wants it')
  const both = block('example.org.', { filters: [() => true, () => false] })
  t.equal(text(ask(start([both]).server, { name: 'example.org' })), 'rcode 5', 'one filter says no')
})

t.test('classes', async (t) => {
  const { server } = start([block('example.org.'), block('bind.', { acceptsChaos: true })])
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

t.test('what is no query gets what it deserves, and is counted', async (t) => {
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
  t.strictSame([...dropped.queries], [5, 0, 0, 0], 'over UDP and IPv4')
  const other = start([block('a.')])
  ask(other.server, { name: 'b' })
  ask(other.server, { name: 'b' }, 1)
  const others = other.counters.dropped.get('dns://:53')!
  t.equal(others.refused, 2)
  t.strictSame([...others.queries], [1, 0, 1, 0], 'and over TCP')
})

t.test('what handlers return', async (t) => {
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

t.test(
  'RD and CD are copied from queries, whatever is wrong with them, and from nothing else',
  async (t) => {
    const RD_CD = 0x0110
    const table: { name: string; given: QuerySpec; flags: number }[] = [
      { name: 'REFUSED', given: { name: 'a.test', flags: RD_CD }, flags: 0x8115 },
      { name: 'BADVERS', given: { name: 'a', flags: RD_CD, edns: { version: 1 } }, flags: 0x8110 },
      { name: 'NOTIMP to STATUS', given: { name: 'a', flags: 0x1000 | RD_CD }, flags: 0x9004 },
      { name: 'NOTIMP to UPDATE', given: { name: 'a', flags: 0x2800 | RD_CD }, flags: 0xa804 },
      { name: 'NOTIMP to opcode 15', given: { name: 'a', flags: 0x7800 | RD_CD }, flags: 0xf804 },
      { name: 'NOTIMP, all bits set', given: { name: 'a', flags: 0x7ff0 }, flags: 0xf804 },
      { name: 'NOTIMP to NOTIFY', given: { name: 'a', flags: 0x2000 | RD_CD }, flags: 0xa004 },
    ]
    for (const { name, given, flags } of table) {
      const { server } = start([block('a', { chain: says('x') })])
      t.equal(ask(server, given)?.flags.toString(16), flags.toString(16), name)
    }
  },
)

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

t.test('size limits', async (t) => {
  const big = chain(({ query, response }) => {
    for (let i = 0; i < 60; i++)
      response.add(0, query.qname, 0, 16, 1, 60, new Uint8Array(100), 0, 100)
    return 0
  })
  const size = (records: number): Handler =>
    chain(({ query, response }) => {
      for (let i = 0; i < records; i++)
        response.add(0, query.qname, 0, 16 + i, 1, 60, new Uint8Array(100), 0, 100)
      return 0
    })
  const table: { name: string; payload?: number; bufsize?: number; tcp?: boolean; want: number }[] =
    [
      { name: 'no EDNS: 512', want: 4 },
      { name: 'a payload below 512 counts as 512', payload: 100, want: 4 },
      { name: 'a payload of 0 too', payload: 0, want: 4 },
      { name: 'the payload of the client', payload: 800, want: 6 },
      { name: 'no more than bufsize', payload: 65535, bufsize: 1232, want: 10 },
      { name: 'bufsize 4096', payload: 65535, bufsize: 4096, want: 36 },
      { name: 'TCP', payload: 512, tcp: true, want: 60 },
      { name: 'TCP without EDNS', tcp: true, want: 60 },
    ]
  for (const { name, payload, bufsize = 1232, tcp, want } of table) {
    const { server } = start([block('.', { chain: size(60), bufsizeOctets: bufsize })])
    const spec = payload === undefined ? { name: 'a' } : { name: 'a', edns: { payload } }
    const message = ask(server, spec, tcp ? 1 : 0)
    t.equal(message?.answer.length, want, name)
    t.equal(((message?.flags ?? 0) & 0x0200) !== 0, want < 60, `${name}: TC`)
    if (payload !== undefined)
      t.equal(message?.opt?.rrclass, bufsize, `${name}: we advertise bufsize`)
  }
  const { server } = start([block('.', { chain: big })])
  t.equal(ask(server, { name: 'a' })?.answer.length, 0)
})

t.test('server cookies', async (t) => {
  const jar = new CookieJar(Buffer.from('e5e973e5a6b2a43f48e7dc849e37bfcf', 'hex'))
  const cookie = Buffer.from('2464c4abcf10c957', 'hex')
  const spec: QuerySpec = { name: 'example.com', edns: { options: [[10, cookie]] } }
  const hex = (message: WireMessage | undefined): string | undefined => {
    const data = message?.options.get(10)
    return data === undefined ? undefined : Buffer.from(data).toString('hex')
  }
  t.equal(
    hex(ask(start([block('.')], jar).server, spec)),
    '2464c4abcf10c957010000005cf79f111f8130c3eee29480',
  )
  t.equal(
    hex(ask(start([], jar).server, spec)),
    '2464c4abcf10c957010000005cf79f111f8130c3eee29480',
    'with REFUSED',
  )
  t.equal(hex(ask(start([block('.')]).server, spec)), undefined, 'without a secret')
})

t.test(
  'what logs and metrics report of a reply has its cookie and its keepalive timeout',
  async (t) => {
    const jar = new CookieJar(new Uint8Array(16))
    const options: [number, Uint8Array][] = [
      [10, new Uint8Array(8)],
      [11, new Uint8Array(0)],
    ]
    for (const protocol of [0, 1] as const) {
      let counted = 0
      const counting = chain((tx) => {
        counted = sentOctets(tx, 5)
        return 5
      })
      const { server } = start([block('.', { chain: counting })], jar)
      const tx = open(server, wireQuery({ name: 'example.com', edns: { options } }), protocol)
      t.equal(server.serve(tx, out), counted, `protocol ${protocol}`)
      server.release(tx)
    }
  },
)

t.test('the keepalive timeout is the idle timeout', async (t) => {
  const message = ask(
    start([block('.')]).server,
    { name: 'a', edns: { options: [[11, new Uint8Array(0)]] } },
    1,
  )
  t.strictSame([...(message?.options.get(11) ?? [])], [0, 100])
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

t.test('requery', async (t) => {
  const target = Buffer.concat([wireName('target.example.net'), Buffer.from('rest of a buffer')])
  /** Passes on what the requery of `qname` gave. */
  const chase = (qname: Uint8Array, wait = false): Handler =>
    chain((tx) => {
      const finish = (got: Transaction | undefined): number => {
        if (got === undefined) return (tx.response.rcode = 3)
        const { response } = got
        for (let i = 0; i < response.count; i++) {
          tx.response.add(
            0,
            tx.query.qname,
            0,
            16,
            1,
            60,
            response.rdataBytes[i]!,
            response.rdataOffset[i]!,
            response.rdataOctets[i]!,
          )
        }
        tx.response.rcode = response.rcode
        tx.server.release(got)
        return 0
      }
      const got = tx.server.lookupInternally(tx, qname, 16)
      if (wait !== got instanceof Promise) throw new Error('waits or not')
      return got instanceof Promise ? got.then(finish) : finish(got)
    })
  const seen: unknown[] = []
  const net = block('net.', {
    chain: chain((tx) => {
      const { query } = tx
      seen.push({
        qname: Buffer.from(query.qname.subarray(0, query.qnameOctets)).toString('latin1'),
        labels: query.labelCount,
        qtype: query.qtype,
        depth: tx.chainDepth,
        zone: tx.zone,
        ecs: query.ecsFamily,
        client: [...query.clientAddress.subarray(0, 2)],
        isEcs: query.clientIsEcs,
        port: query.peerPort,
      })
      return says('net').serve(tx)
    }),
  })
  const { server } = start([block('org.', { chain: chase(target) }), net])
  t.equal(
    text(
      ask(server, { name: 'a.org', edns: { options: [[8, Uint8Array.from([0, 1, 8, 0, 10])]] } }),
    ),
    'net',
  )
  t.strictSame(seen, [
    {
      qname: Buffer.from(wireName('target.example.net')).toString('latin1'),
      labels: 3,
      qtype: 16,
      depth: 1,
      zone: 'net.',
      ecs: 1,
      client: [198, 51],
      isEcs: false,
      port: 5353,
    },
  ])

  const rcode = (given: readonly RoutedBlock[]): string =>
    text(ask(start(given).server, { name: 'a.org' }))
  const org = block('org.', { chain: chase(target) })
  t.equal(rcode([org]), 'rcode 3', 'nobody serves the target')
  t.equal(
    rcode([org, block('net.', { chain: chain(() => DROP) })]),
    'rcode 3',
    'the target is dropped',
  )
  t.equal(
    rcode([
      org,
      block('net.', {
        chain: chain((tx) => {
          says('x').serve(tx)
          return 2
        }),
      }),
    ]),
    'rcode 2',
    'the target fails: no records',
  )
  const broken = start([
    org,
    block('net.', {
      chain: chain(() => {
        throw new Error('boom')
      }),
    }),
  ])
  t.equal(text(ask(broken.server, { name: 'a.org' })), 'rcode 2', 'the target panics')
  t.equal(broken.counters.panics, 1)

  const waiting = start([
    block('org.', { chain: chase(target, true) }),
    block('net.', { chain: chain(async (tx) => says('net').serve(tx)) }),
  ])
  const octets = await waiting.server.serve(open(waiting.server, wireQuery({ name: 'a.org' })), out)
  t.equal(text(readMessage(out.slice(0, octets))), 'net', 'a chain that waits')
})

t.test('a requery is of the same client, and its scope is ours', async (t) => {
  const target = wireName('target.example.net')
  const clients: string[] = []
  const asks = chain((tx) => {
    // As `geoip` with `edns-subnet` does.
    tx.query.clientAddress = Uint8Array.of(10, 0, 0, 0, ...new Array(12).fill(0))
    tx.query.clientIsEcs = true
    const got = tx.server.lookupInternally(tx, target, 1)
    if (got !== undefined && !(got instanceof Promise)) tx.server.release(got)
    return says('org').serve(tx)
  })
  for (const isServed of [true, false]) {
    const filter = ({ query, response }: Transaction): boolean => {
      clients.push(`${query.clientAddress.subarray(0, 4).join('.')} ${query.clientIsEcs}`)
      response.scopeBits = 20
      return isServed
    }
    const { server } = start([
      block('org.', { chain: asks }),
      block('net.', { filters: [filter], chain: says('net') }),
    ])
    const options = [[8, Uint8Array.from([0, 1, 24, 0, 10, 0, 0])]] as const
    const reply = ask(server, { name: 'a.org', edns: { options } })
    t.strictSame([...reply!.options.get(8)!.subarray(0, 4)], [0, 1, 24, 20], `served: ${isServed}`)
  }
  t.strictSame(clients, ['198.51.100.100 false', '198.51.100.100 false'])
})

t.test('requeries end', async (t) => {
  let deepest = 0
  const loop = chain((tx) => {
    deepest = Math.max(deepest, tx.chainDepth)
    const got = tx.server.lookupInternally(tx, tx.query.qname, 1)
    if (got === undefined || got instanceof Promise) return 2
    tx.server.release(got)
    return 2
  })
  t.equal(text(ask(start([block('.', { chain: loop })]).server, { name: 'a' })), 'rcode 2')
  t.equal(deepest, CHAIN_DEPTH_MAX)
})

const CORPUS: readonly Uint8Array[] = [
  wireQuery({ name: 'www.example.org' }),
  wireQuery({ name: '.', type: 2 }),
  wireQuery({ name: 'a.b.c.d.e.f.g.h', type: 255, rrclass: 255 }),
  wireQuery({
    name: 'www.example.org',
    type: 28,
    edns: {
      flags: 0x8000,
      options: [
        [3, new Uint8Array(0)],
        [8, Uint8Array.from([0, 2, 56, 0, 32, 1, 13, 184, 0, 1, 2])],
        [10, new Uint8Array(24).fill(1)],
        [11, new Uint8Array(0)],
        [12, new Uint8Array(30)],
      ],
    },
  }),
]

t.test('no packet breaks the server', async (t) => {
  const { server, counters } = start(
    [
      block('.', {
        chain: chain((tx) => {
          tx.response.nsid = Buffer.from('n')
          return says('ok').serve(tx)
        }),
      }),
    ],
    new CookieJar(new Uint8Array(16)),
  )
  /** Serves and checks what every reply must fulfil; returns a fault or ''. */
  const fault = (packet: Uint8Array): string => {
    const message = ask(server, packet)
    if (message === undefined) return packet.length < 12 || packet[2]! & 0x80 ? '' : 'silence'
    if (message.id !== ((packet[0]! << 8) | packet[1]!)) return 'another id'
    if (message.trailing !== 0) return 'trailing octets'
    if ((message.flags & 0x8000) === 0) return 'not a response'
    if (message.questions.length > 1) return 'questions'
    const [question] = message.questions
    if (question === undefined)
      return message.rcode === 1 || message.rcode === 4 ? '' : 'no question'
    const echoed = out.subarray(12, 12 + wireNameOctets(out) + 4)
    return Buffer.compare(echoed, packet.subarray(12, 12 + echoed.length)) === 0
      ? ''
      : 'another question'
  }
  let packets = 0
  for (const whole of CORPUS) {
    t.equal(fault(whole), '')
    for (let octets = 0; octets < whole.length; octets++) {
      const wrong = fault(whole.slice(0, octets))
      if (wrong !== '') t.fail(`cut at ${octets}: ${wrong}`)
      packets++
    }
    for (let i = 0; i < whole.length; i++) {
      for (let flip = 1; flip < 256; flip++) {
        const packet = whole.slice()
        packet[i]! ^= flip
        const wrong = fault(packet)
        if (wrong !== '') t.fail(`octet ${i} xor ${flip}: ${wrong}`)
        packets++
      }
    }
  }
  fc.assert(
    fc.property(
      fc.constantFrom(...CORPUS),
      fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 12 }),
      (whole, edits) => {
        const packet = whole.slice()
        for (const [at, value] of edits) packet[at % packet.length] = value
        return fault(packet) === ''
      },
    ),
    { seed: 3, numRuns: 3000 },
  )
  t.ok(packets > 30_000)
  t.equal(counters.panics, 0)
  const { formErr, notImp, badVers } = counters.dropped.get('dns://:53')!
  t.ok(formErr > 0 && notImp > 0 && badVers > 0 && counters.ignored > 0)
})

function wireNameOctets(message: Uint8Array): number {
  let at = 12
  while (message[at] !== 0) at += message[at]! + 1
  return at + 1 - 12
}
