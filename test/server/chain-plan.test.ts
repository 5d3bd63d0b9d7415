import fc from 'fast-check'
import t from 'tap'
import { Fallthrough, NO_FALLTHROUGH } from '../../src/arguments/fallthrough.ts'
import { FileZones, FileZoneTable } from '../../src/authority/file-zones.ts'
import { giveRegion, packetOctets, takeRegion } from '../../src/base/packet-memory.ts'
import { Random } from '../../src/base/random.ts'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import type { Query } from '../../src/dns/message/query.ts'
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
import { planChain } from '../../src/server/chain-plan.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { Server } from '../../src/server/server.ts'
import { encodeSteering, NO_POLICY } from '../../src/steering/encode.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { createLogger } from '../../src/telemetry/log.ts'
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
  'chain.example.org. 300 CNAME geoalias.example.org.',
  'geoalias.example.org. 60 CNAME www.example.org. | 1',
  'geoalias.example.org. 60 CNAME alias.example.org.',
  'geoalias.example.org. 60 CNAME x.wild.example.org.',
  'loop.example.org. 60 CNAME loop.example.org.',
  'dangling.example.org. 60 CNAME nowhere.example.org.',
  'outside.example.org. 60 CNAME www.example.com.',
  'shop.example.org. 300 CNAME KLB.shop.example.org.',
  'klb.shop.example.org. 60 CNAME Eu.klb.Shop.example.org. | 1',
  'klb.shop.example.org. 60 CNAME www.example.com.',
  'klb.shop.example.org. 60 CNAME dangling.example.org.',
  'eu.klb.shop.example.org. 60 CNAME g0-eu.klb.shop.example.org. | 1',
  'eu.klb.shop.example.org. 60 CNAME shop.example.org.',
  'eu.klb.shop.example.org. 60 CNAME many.example.org.',
  'g0-eu.klb.shop.example.org. 60 A 192.0.2.12',
  'up.klb.shop.example.org. 60 CNAME shop.example.org.',
  ...Array.from({ length: 10 }, (_, i) => `c${i}.example.org. 60 CNAME c${i + 1}.example.org.`),
  'c10.example.org. 60 A 192.0.2.13',
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
}

/** Truncates, drops and sends by what is asked, and truncates what gains more than 40 octets. */
const limiter: ReplyLimiter = {
  decide: ({ query, response }) => {
    const isAnswer = response.rcode === 0 && response.count + response.direct.count > 0
    return isAnswer ? verdictOf(query.suffixHash[0]!, query.qtype) : LimitAction.Send
  },
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
  /** Gives names that do not exist to the next handler. */
  readonly fallsThrough?: boolean
  /** Default: the one above. */
  readonly steerer?: Steerer
  /** Hides the links of the chain from the server, so that it runs the chain without a plan. */
  readonly isOpaque?: boolean
}

const clock = { now: () => 1559731985_000, monotonic: () => 1 }

/** A server with those zones, what it logged, and what it counted. */
function start({ lines, above, blocks = [{}], isOpaque, ...rest }: Setting) {
  const image = imageOf(lines)
  const answerer = new ZoneAnswerer(image.reader(), rest.steerer ?? steerer)
  const logged: string[] = []
  const slots = new CounterSlots()
  const fallthrough = rest.fallsThrough ? new Fallthrough([wire('.')]) : NO_FALLTHROUGH
  const bottom = rest.fromFile ? fileZones(answerer) : kuadrant(answerer, fallthrough)
  const planned = above(bottom, logged, slots)
  const chain = isOpaque === true ? opaque(planned) : planned
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
    cookies: new CookieJar(new Uint8Array(16)),
  })
  return { image, server, logged, slots }
}

/** A handler that declares nothing. */
function opaque(chain: Handler): Handler {
  return { name: 'opaque', serve: (tx) => chain.serve(tx) }
}

function kuadrant(answerer: ZoneAnswerer, fallthrough = NO_FALLTHROUGH): Handler {
  return new KuadrantHandler(CHAIN_END, { answerer }, fallthrough)
}

function fileZones(answerer: ZoneAnswerer): Handler {
  const table = new FileZoneTable()
  table.replace([{ zone: wire('example.org.'), answerer }])
  return new FileZones(CHAIN_END, { name: 'file', table, fallthrough: NO_FALLTHROUGH })
}

const PEER = Uint8Array.of(198, 51, 100, 100)
function describePeer(query: Query): void {
  query.peerAddress.fill(0)
  query.peerAddress.set(PEER)
  query.peerFamily = 1
  query.peerPort = 5353
}

const out = new Uint8Array(65535)
const region = takeRegion()
t.teardown(() => giveRegion(region))
const AT = region + 96
const OUT_AT = region + 8192

/** The reply to a packet in the packet memory, made there too. */
function inMemory({ server }: { server: Server }, packet: Uint8Array): Uint8Array {
  // Octets behind the packet and of the reply before must not matter.
  packetOctets.fill(0xa5, AT, OUT_AT + 4096)
  packetOctets.set(packet, AT)
  const tx = server.acquire()
  tx.query.packet = packetOctets.subarray(AT, AT + packet.length)
  tx.query.packetAt = AT
  const octets = serve(server, tx, packet, packetOctets.subarray(OUT_AT, OUT_AT + 4096), OUT_AT)
  return packetOctets.slice(OUT_AT, OUT_AT + octets)
}

/** The reply to a packet that is elsewhere. */
function elsewhere({ server }: { server: Server }, packet: Uint8Array): Uint8Array {
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetAt = -1
  return out.slice(0, serve(server, tx, packet, out, -1))
}

function serve(
  server: Server,
  tx: Transaction,
  packet: Uint8Array,
  room: Uint8Array,
  roomAt: number,
): number {
  tx.query.packetOctets = packet.length
  tx.query.protocol = 0
  describePeer(tx.query)
  const octets = server.serve(tx, room, roomAt)
  server.release(tx)
  if (typeof octets !== 'number') throw new Error('a chain waits')
  return octets
}

const names = [
  'www',
  'WwW',
  'mail',
  'alias',
  'chain',
  'shop',
  'klb.shop',
  'up.klb.shop',
  'c0',
  'c1',
  'c2',
  'c3',
  'geoalias',
  'loop',
  'dangling',
  'outside',
  'x.wild',
  'wild',
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
    weight: 4,
    arbitrary: fc.constantFrom(
      [[3, new Uint8Array(0)] as const],
      [[10, new Uint8Array(8)] as const],
      [[10, new Uint8Array(24).fill(1)] as const],
      [[10, new Uint8Array(9)] as const],
      [[10, new Uint8Array(8)] as const, [8, Uint8Array.of(0, 1, 8, 0, 10)] as const],
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
      RRType.CNAME,
      RRType.HTTPS,
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

const [AA, RA] = ['aa', 'ra'].map((flag) => FLAGS.get(flag)!) as [number, number]

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
  { name: 'fallthrough', lines: ZONE, above: (next) => next, fallsThrough: true },
  { name: 'a zone below another', lines: [...ZONE, ...BELOW], above: (next) => next },
  { name: 'a zone with a cut', lines: [...ZONE, ...CUT], above: (next) => next },
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

for (const { name, ...setting } of settings) {
  t.test(`${name}: a plan answers with the same octets as the chain`, async (t) => {
    const planned = start(setting)
    const whole = start({ ...setting, isOpaque: true })
    const counts = { answers: 0 }
    const check = (packet: Uint8Array): void => {
      const reply = inMemory(planned, packet)
      const want = elsewhere(whole, packet)
      if (reply[7] !== 0) counts.answers++
      if (Buffer.compare(reply, want) !== 0) {
        throw new Error(
          `${Buffer.from(reply).toString('hex')} is not ${Buffer.from(want).toString('hex')}`,
        )
      }
    }
    fc.assert(fc.property(arbitraryPacket, check), { seed: 5, numRuns: 4000 })
    t.ok(counts.answers > 200, `${counts.answers} of 4000 had an answer`)
    t.same(planned.logged, whole.logged)
    t.equal(planned.logged.length > 1000, name.startsWith('logged'))
    const counted = (slots: CounterSlots): unknown[] => {
      const all: unknown[] = []
      slots.forEach((counts, labels) => {
        all.push(labels, ...Array.from({ length: slots.length }, (_, i) => counts.take(i)))
      })
      return all
    }
    t.same(counted(planned.slots), counted(whole.slots))
  })
}

t.test('every change of the zones is seen, where they are and which there are', async (t) => {
  const { image, ...fixture } = start({ lines: ZONE, above: (next) => next })
  const packet = (name: string): Uint8Array => wireQuery({ name })
  const address = (name: string): string | undefined => {
    const reply = inMemory(fixture, packet(name))
    return reply[7] === 0 ? undefined : reply.slice(-4).join('.')
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
})

t.test('each query has one draw, whatever form its answer has', async (t) => {
  const outcome = (weight: number, ...rdataIndexes: number[]) => {
    return { weight, ttlSeconds: 60, rdataIndexes }
  }
  const tier = [outcome(1, 0), outcome(1, ...Array.from({ length: 39 }, (_, i) => i + 1))]
  const words = encodeSteering(NO_POLICY, [tier])
  const address = (i: number): string => `www.example.org. 60 A 192.0.2.${i}`
  const aliasWords = encodeSteering(NO_POLICY, [[outcome(1, 0), outcome(1, 1)]])
  const lines = [
    'example.org. 30 SOA 90',
    `${address(0)} | ${words.join(' ')}`,
    ...Array.from({ length: 39 }, (_, i) => address(i + 1)),
    'host.example.org. 60 CNAME alias.example.org.',
    `alias.example.org. 60 CNAME one.example.org. | ${aliasWords.join(' ')}`,
    'alias.example.org. 60 CNAME outside.example.com.',
    'one.example.org. 60 A 192.0.2.99',
  ]
  const setting = (above: Setting['above']): Setting => {
    const random = new Random(7)
    const table = new SteeringTable({ locator: undefined, random, onError: () => {} })
    return { lines, above, steerer: table.steerer() }
  }
  const balanced = (next: Handler): Handler => {
    return new Loadbalance(next, { weights: undefined, preferred: [] })
  }
  const alone = (next: Handler): Handler => next
  for (const { name, above, payload, qname = 'www', few = 1 } of [
    { name: 'records are reordered', above: balanced, payload: 1232 },
    { name: 'the reply has no room for all', above: alone, payload: 512 },
    { name: 'one of two CNAMEs leads out', above: alone, payload: 1232, qname: 'host', few: 2 },
  ]) {
    const packet = wireQuery({ name: `${qname}.example.org`, edns: { payload } })
    const planned = start(setting(above))
    const whole = start({ ...setting(above), isOpaque: true })
    let single = 0
    for (let i = 0; i < 400; i++) {
      const reply = inMemory(planned, packet)
      const want = elsewhere(whole, packet)
      if (Buffer.compare(reply, want) !== 0) return t.same(reply, want, `${name}: draw ${i}`)
      if (reply[7] === few) single++
    }
    t.ok(single > 150 && single < 250, `${name}: ${single} of 400 have ${few} records`)
  }
})

t.test('a plan ends at the first handler that serves as a whole', async (t) => {
  const answerer = new ZoneAnswerer(imageOf(ZONE).reader())
  const bottom = kuadrant(answerer)
  const namesOf = (chain: Handler): string[] => {
    const { links, bottom } = planChain(chain)
    return [...links.map(({ handler }) => handler.name), bottom.name]
  }
  const toy = opaque(bottom)
  t.strictSame(namesOf(new Minimal(new Errors(bottom, () => {}))), [
    'minimal',
    'errors',
    'kuadrant',
  ])
  t.strictSame(namesOf(new Minimal(toy)), ['minimal', 'opaque'])
  t.equal(planChain(new Minimal(bottom)).source, bottom)
  t.equal(planChain(new Minimal(toy)).source, undefined)
})
