import fc from 'fast-check'
import t from 'tap'
import { NO_FALLTHROUGH } from '../../src/arguments/fallthrough.ts'
import { FileZones, FileZoneTable } from '../../src/authority/file-zones.ts'
import { packetOctets } from '../../src/base/packet-memory.ts'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { simpleQuery, simpleSuffixHash } from '../../src/dns/message/simple-query.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import { AddressSet } from '../../src/dns/text/address-set.ts'
import { CHAIN_END } from '../../src/plugin/chain-end.ts'
import { CounterSlots } from '../../src/plugin/counter-slots.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import { LimitAction, type ReplyLimiter } from '../../src/plugin/reply-limiter.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { Acl, AclAction, type AclPolicy, QtypeSet } from '../../src/plugins/acl/acl.ts'
import { Errors } from '../../src/plugins/errors/errors.ts'
import { ClientFromSubnet } from '../../src/plugins/geoip/geoip.ts'
import { FLAGS, Header, keepAll, withFlag } from '../../src/plugins/header/header.ts'
import { KuadrantHandler } from '../../src/plugins/kuadrant/kuadrant.ts'
import { Loadbalance } from '../../src/plugins/loadbalance/loadbalance.ts'
import { Local } from '../../src/plugins/local/local.ts'
import { COMBINED_FORMAT, COMMON_FORMAT, LineFormat } from '../../src/plugins/log/format.ts'
import { Log } from '../../src/plugins/log/log.ts'
import { RecordPrinter } from '../../src/plugins/log/printer.ts'
import { Minimal } from '../../src/plugins/minimal/minimal.ts'
import { Nsid } from '../../src/plugins/nsid/nsid.ts'
import { Prometheus } from '../../src/plugins/prometheus/prometheus.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { Server } from '../../src/server/server.ts'
import { encodeSteering, NO_POLICY } from '../../src/steering/encode.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { type PacketSource, SILENT } from '../../src/transport/exchange.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import type { Steerer } from '../../src/zone/lookup/steerer.ts'
import { ZoneSet } from '../../src/zone/lookup/zone-set.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { wireName, wireQuery } from '../support/wire.ts'
import { imageOf } from '../support/zone-lines.ts'
import { wire } from '../support/zone-names.ts'

const ZONE = [
  'example.org. 3600 SOA 60',
  'example.org. 300 NS ns1.example.org.',
  'example.org. 300 A 192.0.2.80',
  'www.example.org. 300 A 192.0.2.1',
  'www.example.org. 300 AAAA 32 1',
  'www.example.org. 60 TXT 7',
  'mail.example.org. 300 MX 10 www.example.org.',
  'alias.example.org. 300 CNAME www.example.org.',
  '*.wild.example.org. 300 A 192.0.2.2',
  'two.example.org. 300 A 192.0.2.3',
  'two.example.org. 300 A 192.0.2.4',
  'geo.example.org. 300 A 192.0.2.5 | 1',
  'geo.example.org. 300 A 192.0.2.6',
  'geo.example.org. 300 A 192.0.2.7',
  'abc.example.org. 5 A 192.0.2.8',
  'abcd.example.org. 5 A 192.0.2.9',
  'a.b.c.d.example.org. 5 A 192.0.2.10',
  'localhost.example.org. 300 A 192.0.2.11',
  ...Array.from({ length: 40 }, (_, i) => `many.example.org. 9 A 192.0.2.${i}`),
  'localhost. 30 SOA 90',
  'www.localhost. 30 A 198.51.100.3',
  'example.com. 30 SOA 90',
  'www.example.com. 30 A 198.51.100.1',
]
const BELOW = ['deep.example.org. 30 SOA 90', 'www.deep.example.org. 30 A 198.51.100.2']
const CUT = [
  'child.example.org. 300 NS ns.child.example.org.',
  'x.child.example.org. 300 A 192.0.2.9',
]

/** Serves what the first octet of the client's address says. */
const steerer: Steerer = {
  choose(query, response, _words, _offset, choice) {
    choice.count = query.clientAddress[0]! % 4
    for (let i = 0; i < choice.count; i++) choice.index[i] = (i + query.clientAddress[1]!) % 3
    choice.ttlSeconds = query.clientAddress[2]! % 2 === 0 ? -1 : 77
    if (query.clientIsEcs) response.scopeBits = query.clientBits % 3
  },
  takeBack() {},
}

/** Truncates, drops and sends by what is asked, and truncates what gains more than 40 octets. */
const limiter: ReplyLimiter = {
  decide: ({ query, response }) =>
    response.rcode === 0 && response.count > 0 ? verdictOf(query.suffixHash[0]!, query.qtype) : 0,
  decideFast: () => verdictOf(simpleSuffixHash[0]!, simpleQuery.qtype),
  amplifies: (_tx, name, octets) => octets > 40 && (name.suffixHash[0]! & 8) !== 0,
}

function verdictOf(hash: number, qtype: number): LimitAction {
  const { Send, Truncate, Drop } = LimitAction
  return [Send, Truncate, Drop, Send][(hash ^ qtype) & 3]!
}

interface Setting {
  readonly lines: readonly string[]
  /** Makes the chain above what answers. */
  readonly above: (next: Handler, logged: string[], slots: CounterSlots) => Handler
  readonly blocks?: readonly Partial<RoutedBlock>[]
  readonly fromFile?: boolean
  /** Default: the one above. */
  readonly steerer?: Steerer
  /** How many answers there are to compare, at least. */
  readonly least?: number
}

const clock = { now: () => 1559731985_000, monotonic: () => 1 }

/** A server with those zones, what it logged, and what it counted. */
function start({ lines, above, blocks = [{}], fromFile, ...rest }: Setting) {
  const image = imageOf(lines)
  const answerer = new ZoneAnswerer(image.reader(), rest.steerer ?? steerer)
  const logged: string[] = []
  const slots = new CounterSlots()
  const bottom = fromFile ? fileZones(answerer) : kuadrant(answerer)
  const chain = above(bottom, logged, slots)
  const server = new Server({
    address: 'dns://:53',
    blocks: blocks.map((over) => ({
      zone: wireName(''),
      zoneText: '.',
      chain,
      filters: [],
      viewName: '',
      bufsizeOctets: 1232,
      debug: false,
      ...over,
    })),
    clock,
    random: new Random(1),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
    counters: new ServerCounts(),
  })
  return { image, server, logged, slots }
}

function kuadrant(answerer: ZoneAnswerer): Handler {
  return new KuadrantHandler(CHAIN_END, { answerer }, NO_FALLTHROUGH)
}

function fileZones(answerer: ZoneAnswerer): Handler {
  const table = new FileZoneTable()
  table.replace([{ zone: wire('example.org.'), answerer }])
  return new FileZones(CHAIN_END, { name: 'file', table, fallthrough: NO_FALLTHROUGH })
}

const PEER = Uint8Array.of(198, 51, 100, 100)
const source: PacketSource = {
  describe(_slot, query) {
    query.peerAddress.fill(0)
    query.peerAddress.set(PEER)
    query.peerFamily = 1
    query.peerPort = 5353
  },
}

const AT = 96
const ROOM = 512

/** The reply by the short way; undefined = it was left alone. */
function byLane({ server }: { server: Server }, packet: Uint8Array): Uint8Array | undefined {
  packetOctets.fill(0xa5, AT, AT + ROOM + 64)
  packetOctets.set(packet, AT)
  // As the query before may have left it.
  server.isHandingOver = true
  const tx = server.acquire()
  const octets = server.lane.answer(tx, AT, packet.length, ROOM, source, 0)
  server.release(tx)
  if (octets === SILENT) return new Uint8Array(0)
  if (octets > 0) return packetOctets.slice(AT, AT + octets)
  if (Buffer.compare(packetOctets.subarray(AT, AT + packet.length), packet) !== 0) {
    throw new Error('a packet that was left alone has changed')
  }
  return undefined
}

const out = new Uint8Array(65535)

function byChain({ server }: { server: Server }, packet: Uint8Array): Uint8Array {
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetOctets = packet.length
  tx.query.protocol = 0
  source.describe(0, tx.query)
  const octets = server.serve(tx, out)
  server.release(tx)
  if (typeof octets !== 'number') throw new Error('a chain waits')
  return out.slice(0, octets)
}

const names = [
  'www',
  'WwW',
  'mail',
  'alias',
  'x.wild',
  'two',
  'geo',
  'GEO',
  'many',
  'nowhere',
  'abc',
  'abcd',
  'aBcd',
  'a.b.c.d',
  'b.c.d',
  'LocalHost',
]
const arbitraryQname = fc.oneof(
  fc.constantFrom(...names.map((name) => `${name}.example.org`)),
  fc.constantFrom(
    'example.org',
    'www.example.com',
    'www.localhost',
    'www.deep.example.org',
    'x.child.example.org',
    'deep.example.org',
    'org',
    '',
  ),
)
const arbitraryEcs = fc.oneof(
  fc.record({
    family: fc.constant(1),
    bits: fc.integer({ min: 0, max: 33 }),
    address: fc.uint8Array({ minLength: 0, maxLength: 5 }),
  }),
  fc.record({
    family: fc.integer({ min: 0, max: 3 }),
    bits: fc.integer({ min: 0, max: 140 }),
    address: fc.uint8Array({ minLength: 0, maxLength: 17 }),
  }),
)
const arbitrarySubnet = fc
  .record({ ecs: arbitraryEcs, isFit: fc.integer({ min: 0, max: 9 }) })
  .map(({ ecs: { family, bits, address }, isFit }) => {
    const octets = isFit > 0 ? (bits + 7) >> 3 : address.length
    const fit = new Uint8Array(octets)
    fit.set(address.subarray(0, octets))
    if (isFit > 0 && octets > 0) fit[octets - 1]! &= 0xff << (-bits & 7)
    return [8, Uint8Array.of(0, family, bits, 0, ...fit)] as const
  })
const arbitraryOptions = fc.oneof(
  { weight: 4, arbitrary: fc.constant([]) },
  { weight: 8, arbitrary: arbitrarySubnet.map((option) => [option]) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      [[3, new Uint8Array(0)] as const],
      [[10, new Uint8Array(8)] as const],
      [[65001, new Uint8Array(3)] as const],
    ),
  },
)
const arbitraryPacket = fc
  .record({
    id: fc.nat(65535),
    flags: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom(0, 0x0100, 0x0010, 0x0110, 0x0020) },
      fc.nat(65535),
    ),
    name: arbitraryQname,
    type: fc.constantFrom(
      RRType.A,
      RRType.A,
      RRType.A,
      RRType.AAAA,
      RRType.TXT,
      RRType.MX,
      RRType.NS,
      RRType.SOA,
      RRType.ANY,
      RRType.DS,
    ),
    rrclass: fc.oneof({ weight: 20, arbitrary: fc.constant(1) }, fc.constantFrom(3, 255)),
    edns: fc.option(
      fc.record({
        payload: fc.constantFrom(0, 512, 600, 1232, 4096),
        version: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, fc.constant(1)),
        flags: fc.constantFrom(0, 0x8000),
        options: arbitraryOptions,
      }),
    ),
    tail: fc.oneof(
      { weight: 20, arbitrary: fc.constant(new Uint8Array(0)) },
      fc.uint8Array({ maxLength: 20 }),
    ),
    flipAt: fc.oneof({ weight: 9, arbitrary: fc.constant(-1) }, fc.nat(80)),
    flip: fc.integer({ min: 1, max: 255 }),
    cut: fc.oneof({ weight: 15, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 60 })),
  })
  .map(({ edns, tail, flipAt, flip, cut, ...spec }) => {
    const packet = Buffer.concat([wireQuery(edns === null ? spec : { ...spec, edns }), tail])
    if (flipAt !== -1 && flipAt < packet.length) packet[flipAt]! ^= flip
    return new Uint8Array(packet.subarray(0, packet.length - Math.min(cut, packet.length)))
  })

/** Who the client is, as `geoip` is asked for the log. */
const describeClient = ({ query }: Transaction): string => {
  const address = query.clientAddress.subarray(0, query.clientFamily === 1 ? 4 : 16)
  return `${address.join('.')}/${query.clientBits} ${query.clientIsEcs}`
}

const logOf = (next: Handler, logged: string[], ...formats: string[]): Log => {
  const rules = formats.map((text, i) => {
    const format = new LineFormat(text, () => describeClient)
    const names = i < formats.length - 1 ? ['two.example.org.', 'abc.example.org.'] : ['.']
    return { names: new ZoneSet(names.map(wire)), format, classes: undefined }
  })
  const formatsOf = rules.map(({ format }) => format)
  const printer = new RecordPrinter(formatsOf, lineBufferTo(logged))
  return new Log(next, rules, { clock, printer, records: undefined })
}

const observed = (next: Handler, logged: string[], slots: CounterSlots): Handler => {
  const log = logOf(next, logged, `${COMBINED_FORMAT} {/client} {local}`)
  return new Prometheus(log, clock, slots, ['log', 'kuadrant', 'file'])
}

/** `type`: of queries; `net`: where they come from; absent = any. */
const policy = (action: AclAction, { type, net }: { type?: number; net?: string }): AclPolicy => {
  const qtypes = type === undefined ? undefined : new QtypeSet()
  if (type !== undefined) qtypes?.add(type)
  const sources = net === undefined ? undefined : new AddressSet([scanCidr(net)!])
  return { action, qtypes, sources }
}

/** Rules for all names below each zone. */
const ruled = (
  rules: Readonly<Record<string, readonly AclPolicy[]>>,
): ((next: Handler, logged: string[], slots: CounterSlots) => Handler) => {
  const all = Object.entries(rules).map(([zone, policies]) => {
    return { zones: new ZoneSet([wire(zone)]), zoneTexts: [zone], policies }
  })
  return (next, _logged, slots) => new Acl(next, all, slots)
}

const [AA, RA, RD] = ['aa', 'ra', 'rd'].map((flag) => FLAGS.get(flag)!) as [number, number, number]

const settings: readonly (Setting & { readonly name: string })[] = [
  { name: 'a chain that answers', lines: ZONE, above: (next) => next },
  {
    name: 'client subnets are clients',
    lines: ZONE,
    above: (next) => new ClientFromSubnet(new Errors(next, () => {})),
  },
  {
    name: 'master files, minimal',
    lines: ZONE,
    above: (next) => new Minimal(next),
    fromFile: true,
  },
  { name: 'a zone below another', lines: [...ZONE, ...BELOW], above: (next) => next },
  { name: 'a zone with a cut', lines: [...ZONE, ...CUT], above: (next) => next, least: 30 },
  {
    name: 'logged and counted',
    lines: ZONE,
    above: (next, logged, slots) => observed(new ClientFromSubnet(next), logged, slots),
  },
  {
    name: 'logged by two rules, without metadata',
    lines: ZONE,
    above: (next, logged) =>
      logOf(new ClientFromSubnet(next), logged, '{local} {name}', COMBINED_FORMAT),
  },
  {
    name: 'logged and counted, without metadata',
    lines: ZONE,
    above: (next, logged, slots) => {
      const log = logOf(next, logged, COMMON_FORMAT)
      return new Prometheus(log, clock, slots, ['log', 'kuadrant', 'file'])
    },
  },
  {
    name: 'an identifier, and flags that answers have anyway',
    lines: ZONE,
    above: (next) => {
      const flags = withFlag(withFlag(keepAll, AA, true), RA, false)
      return new Nsid(new Header(next, keepAll, flags), Uint8Array.of(1, 2, 3))
    },
  },
  {
    name: 'names of this machine are answered above',
    lines: ZONE,
    above: (next, _logged, slots) => new Local(next, slots, true),
  },
  {
    name: 'some types, and some zones, for some',
    lines: ZONE,
    above: (next, logged, slots) => {
      const above = ruled({
        'abc.example.org.': [policy(AclAction.Filter, {})],
        'example.com.': [policy(AclAction.Drop, { net: '198.51.100.0/24' })],
        'example.org.': [
          policy(AclAction.Block, { type: RRType.TXT }),
          policy(AclAction.Block, { net: '10.0.0.0/8' }),
          policy(AclAction.Allow, { type: RRType.A, net: '198.51.100.100/32' }),
        ],
        '.': [policy(AclAction.Block, { type: RRType.AAAA })],
      })
      return new ClientFromSubnet(above(next, logged, slots))
    },
  },
  {
    name: 'logged, counted and limited',
    lines: ZONE,
    above: (next, logged, slots) => observed(new ClientFromSubnet(next), logged, slots),
    blocks: [{ limiter }],
  },
  {
    name: 'a block below another, with less room',
    lines: ZONE,
    above: (next) => next,
    blocks: [
      {},
      { zone: wire('b.c.d.example.org.'), zoneText: 'b.c.d.example.org.', bufsizeOctets: 512 },
    ],
  },
]

for (const { name, least = 200, ...setting } of settings) {
  t.test(`${name}: the short way comes to the same octets as the chain`, async (t) => {
    const short = start(setting)
    const long = start(setting)
    const answered = { count: 0 }
    const check = (packet: Uint8Array): void => {
      const reply = byLane(short, packet)
      if (reply === undefined) return
      answered.count++
      const want = byChain(long, packet)
      if (Buffer.compare(reply, want) !== 0) {
        throw new Error(
          `${Buffer.from(reply).toString('hex')} is not ${Buffer.from(want).toString('hex')}`,
        )
      }
    }
    fc.assert(fc.property(arbitraryPacket, check), { seed: 5, numRuns: 4000 })
    t.ok(answered.count > least, `${answered.count} of 4000 were answered`)
    t.same(short.logged, long.logged)
    t.equal(short.logged.length, name.startsWith('logged') ? answered.count : 0)
    const counted = (slots: CounterSlots): unknown[] => {
      const all: unknown[] = []
      slots.forEach((counts, labels) => {
        all.push(labels, ...Array.from({ length: slots.length }, (_, i) => counts.take(i)))
      })
      return all
    }
    t.same(counted(short.slots), counted(long.slots))
  })
}

t.test(
  'the short way sees every change of the zones, where they are and which there are',
  async (t) => {
    const { image, ...fixture } = start({ lines: ZONE, above: (next) => next })
    const packet = (name: string): Uint8Array => wireQuery({ name })
    const address = (name: string): string | undefined => {
      const reply = byLane(fixture, packet(name))
      return reply === undefined ? undefined : reply.slice(-4).join('.')
    }
    const put = (zone: number, name: string, last: number): void => {
      image.putRRset(zone, wire(name), {
        type: RRType.A,
        ttlSeconds: 9,
        rdata: [Uint8Array.of(10, 0, 0, last)],
      })
    }
    const org = image.findZone(wire('example.org.'))!
    t.equal(address('www.example.org'), '192.0.2.1')

    put(org, 'www.example.org.', 1)
    t.equal(address('www.example.org'), '192.0.2.1', 'what is not published is not seen')
    image.publish()
    t.equal(address('www.example.org'), '10.0.0.1')

    // The same version, with the zone somewhere else.
    image.compact()
    t.equal(address('www.example.org'), '10.0.0.1')
    put(org, 'abc.example.org.', 2)
    image.publish()
    t.equal(address('abc.example.org'), '10.0.0.2')

    const below = image.addZone(wire('sub.example.org.'))
    put(below, 'www.sub.example.org.', 3)
    put(org, 'x.example.org.', 4)
    image.publish()
    t.equal(address('x.example.org'), '10.0.0.4')
    t.equal(address('www.sub.example.org'), '10.0.0.3')
    t.equal(
      address('abc.sub.example.org'),
      undefined,
      'names of the zone above are not in the one below',
    )

    image.removeRRset(org, wire('x.example.org.'), RRType.A)
    image.publish()
    t.equal(address('x.example.org'), undefined)
    image.removeZone(org)
    image.publish()
    t.equal(address('www.example.org'), undefined)
    t.equal(address('www.sub.example.org'), '10.0.0.3')
  },
)

t.test(
  'what the short way chose and can not serve, the chain serves: by its weight, not by another draw',
  async (t) => {
    const outcome = (weight: number, ...rdataIndexes: number[]) => {
      return { weight, ttlSeconds: 60, rdataIndexes }
    }
    const tier = [outcome(1, 0), outcome(1, ...Array.from({ length: 39 }, (_, i) => i + 1))]
    const words = encodeSteering(NO_POLICY, [tier])
    const address = (i: number): string => `www.example.org. 60 A 192.0.2.${i}`
    const lines = [
      'example.org. 30 SOA 90',
      `${address(0)} | ${words.join(' ')}`,
      ...Array.from({ length: 39 }, (_, i) => address(i + 1)),
    ]
    const setting = (above: Setting['above']): Setting => {
      const table = new SteeringTable({
        locator: undefined,
        random: new Random(7),
        onError: () => {},
      })
      return { lines, above, steerer: table.steerer() }
    }
    const balanced = (next: Handler): Handler => {
      return new Loadbalance(next, { weights: undefined, preferred: [] })
    }
    const packet = wireQuery({ name: 'www.example.org', edns: { payload: 1232 } })
    const count = (reply: Uint8Array): number => (reply[6]! << 8) | reply[7]!
    for (const [name, above] of [
      ['several where only one would do', balanced],
      ['more than the packet has room for', (next: Handler) => next],
    ] as const) {
      const both = start(setting(above))
      const long = start(setting(above))
      let single = 0
      for (let i = 0; i < 400; i++) {
        const short = byLane(both, packet)
        const got = count(short ?? byChain(both, packet))
        const want = count(byChain(long, packet))
        if (got !== want) return t.equal(got, want, `${name}: draw ${i}`)
        if (short !== undefined) single++
      }
      t.ok(single > 150 && single < 250, `${name}: ${single} of 400 by the short way`)
    }
  },
)

t.test('a query that a gate does not let pass is not plain, others of its chain are', async (t) => {
  const local: Setting['above'] = (next, _logged, slots) => new Local(next, slots, true)
  const acl = ruled({
    'abc.example.org.': [policy(AclAction.Block, { net: '198.51.100.100/32' })],
    'abcd.example.org.': [policy(AclAction.Drop, { net: '198.51.100.101/32' })],
    'www.example.org.': [policy(AclAction.Allow, { type: RRType.A }), policy(AclAction.Filter, {})],
  })
  const table = [
    { above: local, name: 'www.example.org', want: true },
    { above: local, name: 'localhost.example.org', want: false },
    { above: local, name: 'www.localhost', want: false },
    { above: acl, name: 'www.example.org', want: true },
    { above: acl, name: 'www.example.org', type: RRType.AAAA, want: false },
    { above: acl, name: 'abc.example.org', want: false },
    { above: acl, name: 'abcd.example.org', want: true },
  ]
  const fixtures = new Map([local, acl].map((above) => [above, start({ lines: ZONE, above })]))
  for (const { above, want, ...query } of table) {
    const reply = byLane(fixtures.get(above)!, wireQuery(query))
    t.equal(reply !== undefined, want, `${query.name} ${query.type ?? RRType.A}`)
  }
})

t.test('a chain with a link that has to see every query has no short way', async (t) => {
  const opaque = (next: Handler): Handler => ({ name: 'toy', serve: (tx) => next.serve(tx) })
  const table: { name: string; given: Setting; want: boolean }[] = [
    {
      name: 'links that say what they do',
      given: { lines: ZONE, above: (next) => new Minimal(next) },
      want: true,
    },
    { name: 'a link that does not', given: { lines: ZONE, above: opaque }, want: false },
    {
      name: 'flags of replies that are overruled',
      given: {
        lines: ZONE,
        above: (next) => new Header(next, keepAll, withFlag(keepAll, RA, true)),
      },
      want: false,
    },
    {
      name: 'flags of replies that are taken away',
      given: {
        lines: ZONE,
        above: (next) => new Header(next, keepAll, withFlag(keepAll, AA, false)),
      },
      want: false,
    },
    {
      name: 'flags of queries that are overruled',
      given: {
        lines: ZONE,
        above: (next) => new Header(next, withFlag(keepAll, RD, false), keepAll),
      },
      want: false,
    },
    {
      name: 'a block with debug',
      given: { lines: ZONE, above: (next) => next, blocks: [{ debug: true }] },
      want: false,
    },
    {
      name: 'a view',
      given: { lines: ZONE, above: (next) => next, blocks: [{ filters: [() => true] }] },
      want: false,
    },
    {
      name: 'a chain that may wait',
      given: { lines: ZONE, above: (next) => next, blocks: [{ waits: true }] },
      want: false,
    },
  ]
  for (const { name, given, want } of table) {
    const reply = byLane(start(given), wireQuery({ name: 'www.example.org' }))
    t.equal(reply !== undefined, want, name)
  }
})
