import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import { AddressSet } from '../../src/dns/text/address-set.ts'
import type { CounterSlots } from '../../src/plugin/counter-slots.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import { LimitAction, type ReplyLimiter } from '../../src/plugin/reply-limiter.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { Acl, AclAction, type AclPolicy, QtypeSet } from '../../src/plugins/acl/acl.ts'
import { Errors } from '../../src/plugins/errors/errors.ts'
import { ClientFromSubnet } from '../../src/plugins/geoip/geoip.ts'
import { FLAGS, Header, keepAll, withFlag } from '../../src/plugins/header/header.ts'
import { Local } from '../../src/plugins/local/local.ts'
import { EntryPrinter } from '../../src/plugins/log/entry-printer.ts'
import { COMBINED_FORMAT, COMMON_FORMAT, LineFormat } from '../../src/plugins/log/format.ts'
import { Log } from '../../src/plugins/log/log.ts'
import { Minimal } from '../../src/plugins/minimal/minimal.ts'
import { Nsid } from '../../src/plugins/nsid/nsid.ts'
import { Prometheus } from '../../src/plugins/prometheus/prometheus.ts'
import { ZoneSet } from '../../src/zone/lookup/zone-set.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { runs } from '../support/runs.ts'
import { wireQuery } from '../support/wire.ts'
import { wire } from '../support/zone-names.ts'
import { clock, elsewhere, inMemory, type Setting, start, ZONE } from './chain-plan-stage.ts'

const BELOW = [
  'deep.example.org. 30 SOA 90',
  'www.deep.example.org. 30 A 198.51.100.2',
  '*.example.org. 30 A 198.51.100.5',
]

const BESIDE = [
  'much.longer.example.net. 30 SOA 90',
  'www.much.longer.example.net. 30 A 198.51.100.4',
]

const CUT = [
  'child.example.org. 300 NS ns.child.example.org.',
  'x.child.example.org. 300 A 192.0.2.9',
]

/** Truncates, drops and sends by what is asked, and truncates what gains more than 40 octets. */
const limiter: ReplyLimiter = {
  decide: ({ query, response }) => {
    const isAnswer = response.rcode === 0 && response.count + response.direct.count > 0
    return isAnswer ? actionOf(query.suffixHash[0]!, query.qtype) : LimitAction.Send
  },
  amplifies: (_tx, name, octets) => octets > 40 && (name.suffixHash[0]! & 8) !== 0,
}

function actionOf(hash: number, qtype: number): LimitAction {
  const { Send, Truncate, Drop } = LimitAction
  return [Send, Truncate, Drop, Send][(hash ^ qtype) & 3]!
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
  'below',
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
    'www.much.longer.example.net',
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
  const printer = new EntryPrinter(formatsOf, lineBufferTo(logged))
  return new Log(next, rules, { clock, printer, sender: undefined })
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
  { name: 'a zone with a longer name beside', lines: [...ZONE, ...BESIDE], above: (next) => next },
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
    fc.assert(fc.property(arbitraryPacket, check), { seed: 5, numRuns: runs(4000) })
    t.ok(counts.answers > runs(200), `${counts.answers} of ${runs(4000)} had an answer`)
    t.same(planned.logged, whole.logged)
    t.equal(planned.logged.length > runs(1000), name.startsWith('logged'))
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
