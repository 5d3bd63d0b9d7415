import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createRateTable, rateOf } from '../../../src/base/rate-table.ts'
import { TABULATION_WORDS } from '../../../src/base/tabulation-hash.ts'
import { Opcode, Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { AddressSet } from '../../../src/dns/text/address-set.ts'
import { CounterSlots } from '../../../src/plugin/counter-slots.ts'
import { LimitAction } from '../../../src/plugin/reply-limiter.ts'
import { CATEGORY_NAMES, Category, type RrlOptions } from '../../../src/plugins/rrl/options.ts'
import { LimitReports } from '../../../src/plugins/rrl/reports.ts'
import { Rrl, type RrlMemory } from '../../../src/plugins/rrl/rrl.ts'
import { ZoneSet } from '../../../src/zone/lookup/zone-set.ts'
import { wire } from '../../support/zone-names.ts'
import { type Reply, transactionOf } from './transactions.ts'

const random = new Random(5)
const secret = Int32Array.from({ length: TABULATION_WORDS }, () => random.next32())

const memoryOf = (accounts = 10_000): RrlMemory => ({
  accounts: createRateTable(accounts),
  secret,
  amplification: new Float64Array(new SharedArrayBuffer(8)),
})

/** A limiter of 5 replies of each category per second, requests not counted. */
function limiter(over: Partial<RrlOptions> = {}, memory = memoryOf()): Rrl {
  const options: RrlOptions = {
    zones: undefined,
    ipv4Bits: 24,
    ipv6Bits: 56,
    rates: CATEGORY_NAMES.map((name) => (name === 'request' ? undefined : rateOf(5, 15))),
    slip: 0,
    amplifiedOctets: 0,
    tableSize: 10_000,
    reportOnly: false,
    exempt: undefined,
    ...over,
  }
  const made = new Rrl(options, new CounterSlots(), new LimitReports(options, () => {}))
  made.use(memory)
  return made
}

const MAX = 5

/** Whether two replies share an account: after five of the first, the second is not sent. */
function share(rrl: Rrl, first: Reply, second: Reply): boolean {
  for (let i = 0; i < MAX; i++) rrl.decide(transactionOf(first))
  return rrl.decide(transactionOf(second)) !== LimitAction.Send
}

const { NXDOMAIN, REFUSED, SERVFAIL, FORMERR } = Rcode
const name = (label: string) => `${label}.w.example.org.`

t.test('replies that share an account', async (t) => {
  const cases: readonly (readonly [string, boolean, Reply, Reply, Partial<RrlOptions>?])[] = [
    ['the same question', true, {}, {}],
    ['in other case', true, {}, { name: 'WWW.Example.org.' }],
    ['another name', false, {}, { name: name('a') }],
    ['another type', false, {}, { type: RRType.TXT }],
    [
      'any type at a CNAME',
      true,
      { type: 1000, answers: [RRType.CNAME] },
      { type: 1001, answers: [RRType.CNAME] },
    ],
    [
      'a DNAME and its CNAME, of any type',
      true,
      { type: 1000, answers: [RRType.DNAME, RRType.CNAME] },
      { type: RRType.ANY, answers: [RRType.DNAME, RRType.CNAME] },
    ],
    [
      'types that a chain leads to',
      false,
      { type: RRType.A, answers: [RRType.CNAME, RRType.A] },
      { type: RRType.AAAA, answers: [RRType.CNAME, RRType.AAAA] },
    ],
    ['a neighbour', true, {}, { from: '192.0.2.254' }],
    ['the next network', false, {}, { from: '192.0.3.1' }],
    ['a single address', false, {}, { from: '192.0.2.2' }, { ipv4Bits: 32 }],
    ['a prefix within an octet', true, {}, { from: '192.0.2.62' }, { ipv4Bits: 26 }],
    ['another one', false, {}, { from: '192.0.2.64' }, { ipv4Bits: 26 }],
    ['IPv6: a /56', true, { from: '2001:db8::1' }, { from: '2001:db8:0:ff::1' }],
    ['IPv6: the next', false, { from: '2001:db8::1' }, { from: '2001:db8:0:100::1' }],
    ['IPv6: a /128', false, { from: '2001:db8::1' }, { from: '2001:db8::2' }, { ipv6Bits: 128 }],
    [
      'IPv4 and IPv6',
      false,
      { from: '32.1.13.184' },
      { from: '2001:db8::1' },
      { ipv4Bits: 8, ipv6Bits: 8 },
    ],
    ['NODATA of other types', true, { kind: 'nodata' }, { kind: 'nodata', type: RRType.MX }],
    ['NODATA of other names', false, { kind: 'nodata' }, { kind: 'nodata', name: name('a') }],
    ['NODATA without SOA', true, { kind: 'nodata' }, { kind: 'empty' }],
    [
      'NXDOMAIN of one zone',
      true,
      { rcode: NXDOMAIN, name: name('a'), label: 2 },
      { rcode: NXDOMAIN, name: 'b.c.w.example.org.', label: 3, type: RRType.MX },
    ],
    [
      'NXDOMAIN of other zones',
      false,
      { rcode: NXDOMAIN, name: name('a'), label: 2 },
      { rcode: NXDOMAIN, name: name('a'), label: 1 },
    ],
    [
      'NXDOMAIN without a zone',
      true,
      { rcode: NXDOMAIN, name: name('a') },
      { rcode: NXDOMAIN, name: 'b.test.' },
    ],
    ['names of a wildcard', true, { name: name('a'), label: 1 }, { name: name('b'), label: 1 }],
    ['wildcards and their parent', true, { name: name('a'), label: 1 }, { name: 'w.example.org.' }],
    [
      'referrals of one delegation',
      true,
      { kind: 'referral', name: name('a'), label: 1 },
      { kind: 'referral', name: name('b'), label: 1, type: RRType.TXT },
    ],
    ['all errors', true, { rcode: REFUSED }, { rcode: SERVFAIL, name: name('a'), type: RRType.MX }],
    ['errors and answers', false, { rcode: FORMERR }, {}],
    ['NODATA and answers', false, { kind: 'nodata' }, {}],
    ['referrals and NODATA', false, { kind: 'referral' }, { kind: 'nodata' }],
    [
      'NOTIFYs of two zones',
      false,
      { opcode: Opcode.NOTIFY, kind: 'empty' },
      { opcode: Opcode.NOTIFY, kind: 'empty', name: name('a') },
    ],
    [
      'all replies, where requests are counted',
      true,
      {},
      { rcode: NXDOMAIN, name: name('a') },
      {
        rates: CATEGORY_NAMES.map((_, i) => (i === Category.Request ? rateOf(MAX, 15) : undefined)),
      },
    ],
  ]
  for (const [what, want, first, second, over] of cases) {
    t.equal(share(limiter(over), first, second), want, what)
  }
})

t.test('the part of the replies above the limit that is sent', async (t) => {
  const actions = (rrl: Rrl, reply: Reply = {}, nowMs = 1) =>
    Array.from({ length: MAX + 4 }, () => rrl.decide(transactionOf(reply, nowMs))).slice(MAX)
  const { Truncate, Drop, Send } = LimitAction
  t.strictSame(actions(limiter()), [Drop, Drop, Drop, Drop])
  t.strictSame(actions(limiter({ slip: 1 })), [Truncate, Truncate, Truncate, Truncate])
  t.strictSame(actions(limiter({ slip: 2 })), [Drop, Truncate, Drop, Truncate])
  const error = { rcode: REFUSED }
  t.strictSame(actions(limiter({ slip: 1 }), error), [Drop, Drop, Drop, Drop], 'errors')
  const sent = [Send, Send, Send, Send]
  t.strictSame(actions(limiter({ reportOnly: true })), sent)
  t.strictSame(actions(limiter({ rates: [] })), sent)
  const exempt = new AddressSet([scanCidr('192.0.2.0/28')!])
  t.strictSame(actions(limiter({ exempt })), sent)
  t.strictSame(actions(limiter({ exempt }), { from: '192.0.2.16' }), [Drop, Drop, Drop, Drop])
  const zones = new ZoneSet([wire('w.example.org.')])
  const inZone = { zone: 'example.org.' }
  t.strictSame(actions(limiter({ zones }), inZone), sent)
  t.strictSame(actions(limiter({ zones }), { ...inZone, name: name('a') }), [
    Drop,
    Drop,
    Drop,
    Drop,
  ])
  t.strictSame(actions(limiter({ zones }), error), [Drop, Drop, Drop, Drop], 'of no block')
})

t.test('exempt networks spend nothing of their neighbours', async (t) => {
  const rrl = limiter({ exempt: new AddressSet([scanCidr('192.0.2.7/32')!]) })
  t.equal(share(rrl, { from: '192.0.2.7' }, { from: '192.0.2.8' }), false)
})

t.test('a reload begins with full credit, threads share it', async (t) => {
  const memory = memoryOf()
  const [one, other] = [limiter({}, memory), limiter({}, memory)]
  for (let i = 0; i < MAX; i++) t.equal(one.decide(transactionOf()), LimitAction.Send)
  t.equal(other.decide(transactionOf()), LimitAction.Drop)
  other.use(memoryOf())
  t.equal(other.decide(transactionOf()), LimitAction.Send)
})

t.test('octets that replies are longer than their queries', async (t) => {
  const OCTETS = 100_000
  const rates: RrlOptions['rates'] = []
  const rrl = limiter({ amplifiedOctets: OCTETS, rates })
  const tx = transactionOf()
  /** Octets that go out of `count` replies that gain 100 each, in the millisecond. */
  const gain = (nowMs: number, count: number, one = rrl): number => {
    let octets = 0
    tx.startedMs = nowMs
    for (let i = 0; i < count; i++) if (!one.amplifies(tx, tx.query, 100)) octets += 100
    return octets
  }
  const nearly = (octets: number, want: number, what: string) =>
    t.ok(Math.abs(octets - want) <= 200, `${what}: ${octets}`)
  nearly(gain(1000, 5000), OCTETS, 'one second of credit')
  t.equal(gain(1000, 100), 0)
  t.equal(rrl.amplifies(tx, tx.query, 0), false, 'no gain, no loss')
  t.equal(rrl.amplifies(tx, tx.query, -9), false)
  let octets = 0
  for (let ms = 1000; ms < 11_000; ms++) octets += gain(ms, 20)
  t.equal(octets, 0, 'nothing while twenty times as much is asked for')
  t.equal(gain(11_500, 1), 0)
  nearly(gain(12_500, 900), OCTETS / 2, 'the debt is that of a second')
  octets = 0
  for (let ms = 20_000; ms < 30_000; ms++) octets += gain(ms, ms % 2)
  t.equal(octets, 500_000, 'below the limit all goes out')
  const exempt = new AddressSet([scanCidr('192.0.2.0/24')!])
  t.equal(gain(1000, 5000, limiter({ amplifiedOctets: OCTETS, rates, exempt })), 500_000)
  t.equal(gain(1000, 5000, limiter({ amplifiedOctets: OCTETS, rates, reportOnly: true })), 500_000)
  const zones = new ZoneSet([wire('example.com.')])
  t.equal(gain(1000, 5000, limiter({ amplifiedOctets: OCTETS, rates, zones })), 500_000)
})

t.test('threads share that limit', async (t) => {
  const memory = memoryOf()
  const options = { amplifiedOctets: 100_000, rates: [] }
  const threads = [limiter(options, memory), limiter(options, memory)]
  const tx = transactionOf({}, 1000)
  let octets = 0
  for (let i = 0; i < 10_000; i++) {
    if (!threads[i % 2]!.amplifies(tx, tx.query, 100)) octets += 100
  }
  t.ok(Math.abs(octets - 100_000) <= 400, `${octets}`)
})
