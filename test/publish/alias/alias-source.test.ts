import t from 'tap'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { aliasRecord, aliasStage, type Says } from './stage.ts'

const LB: Says = { ttl: 20, addresses: ['192.0.2.7', '192.0.2.8', '2001:db8::7'] }

interface Case {
  readonly name: string
  readonly endpoints: readonly string[]
  readonly world?: Readonly<Record<string, Says>>
  readonly resolves?: boolean
  readonly allowed?: readonly string[]
  readonly expanded: readonly string[]
  readonly faults?: readonly string[]
}

const GEO = [
  'geo.k.test CNAME eu.k.test id=eu geo=GEO-EU',
  'geo.k.test CNAME us.k.test id=us geo=*',
  'eu.k.test A 192.0.2.1 id=a weight=10',
  'eu.k.test A 192.0.2.2 id=b weight=20',
  'us.k.test A 192.0.2.3 ttl=30',
]

const CASES: readonly Case[] = [
  {
    name: 'an outside target, at the apex',
    endpoints: ['k.test ALIAS lb.example ttl=300'],
    world: { 'lb.example': LB },
    expanded: ['k.test A 192.0.2.7,192.0.2.8 ttl=20', 'k.test AAAA 2001:db8::7 ttl=20'],
  },
  {
    name: 'a wildcard owner with steering; recordTTL is a bound',
    endpoints: ['*.k.test ALIAS lb.example id=x weight=7 geo=DE ttl=15'],
    world: { 'lb.example': { ttl: 600, cname: 'x.example', addresses: ['192.0.2.7'] } },
    expanded: ['*.k.test A 192.0.2.7 id=x weight=7 geo=DE ttl=15'],
  },
  {
    name: 'an inside target keeps its steering: places of CNAMEs, weights behind them',
    endpoints: ['k.test ALIAS geo.k.test', ...GEO],
    expanded: [
      'k.test A 192.0.2.3 id=us geo=* ttl=30',
      'k.test A 192.0.2.1 id=eu/a weight=10 geo=GEO-EU ttl=60',
      'k.test A 192.0.2.2 id=eu/b weight=20 geo=GEO-EU ttl=60',
    ],
  },
  {
    name: 'an ALIAS with a weight has all addresses of its target',
    endpoints: ['k.test ALIAS geo.k.test id=me weight=5', ...GEO],
    expanded: ['k.test A 192.0.2.1,192.0.2.2,192.0.2.3 id=me weight=5 ttl=30'],
  },
  {
    name: 'a name inside that leads outside, through an ALIAS and a wildcard',
    endpoints: [
      'k.test ALIAS www.k.test',
      'www.k.test ALIAS x.w.k.test',
      '*.w.k.test CNAME lb.example ttl=40',
    ],
    world: { 'lb.example': { ttl: 50, addresses: ['192.0.2.7'] } },
    expanded: ['k.test A 192.0.2.7 ttl=40', 'www.k.test A 192.0.2.7 ttl=40'],
  },
  {
    name: 'a name outside that leads inside',
    endpoints: ['k.test ALIAS cdn.example', ...GEO],
    world: { 'cdn.example': { cname: 'us.k.test', addresses: ['192.0.2.99'] } },
    expanded: ['k.test A 192.0.2.3 ttl=30'],
  },
  {
    name: 'loops: itself, over CNAMEs, over a name outside',
    endpoints: [
      'self.k.test ALIAS self.k.test',
      'a.k.test ALIAS b.k.test',
      'b.k.test CNAME a.k.test',
      'out.k.test ALIAS back.example',
      '*.w.k.test ALIAS x.w.k.test',
    ],
    world: { 'back.example': { cname: 'out.k.test', addresses: ['192.0.2.1'] } },
    expanded: [],
    faults: [
      'ALIAS of self.k.test.: it is a loop: self.k.test. leads back to self.k.test.',
      'ALIAS of a.k.test.: it is a loop: a.k.test. leads back to a.k.test.',
      'ALIAS of out.k.test.: it is a loop: out.k.test. leads back to out.k.test.',
      'ALIAS of *.w.k.test.: it is a loop: x.w.k.test. leads back to *.w.k.test.',
    ],
  },
  {
    name: 'a delegated name is outside',
    endpoints: ['k.test ALIAS x.sub.k.test', 'sub.k.test NS ns.example'],
    world: { 'x.sub.k.test': { ttl: 60, addresses: ['192.0.2.7'] } },
    expanded: ['k.test A 192.0.2.7 ttl=60'],
  },
  {
    name: 'an inside name without addresses',
    endpoints: ['k.test ALIAS txt.k.test', 'txt.k.test TXT x'],
    expanded: [],
    faults: ['ALIAS of k.test.: txt.k.test. has no addresses'],
  },
  {
    name: 'without a resolver',
    endpoints: ['k.test ALIAS lb.example', 'k.test A 192.0.2.1'],
    resolves: false,
    expanded: [],
    faults: [
      'ALIAS of k.test.: lb.example. is outside of the zones of this source, and the block has no `alias-resolver`',
    ],
  },
  {
    name: 'refused addresses',
    endpoints: ['k.test ALIAS lb.example'],
    world: {
      'lb.example': {
        addresses: ['10.0.0.1', '100.64.0.1', '127.0.0.1', 'fe80::1', 'fd00::1', '192.0.2.1'],
      },
    },
    allowed: ['127.0.0.0/8'],
    expanded: ['k.test A 127.0.0.1,192.0.2.1 ttl=60'],
    faults: [
      'ALIAS of k.test.: lb.example. has the address 10.0.0.1, which is refused (a private network); `alias-allow 10.0.0.0/8` allows it',
      'ALIAS of k.test.: lb.example. has the address 100.64.0.1, which is refused (a private network); `alias-allow 100.64.0.0/10` allows it',
      'ALIAS of k.test.: lb.example. has the address fd00::1, which is refused (a private network); `alias-allow fc00::/7` allows it',
      'ALIAS of k.test.: lb.example. has the address fe80::1, which is refused (link-local); `alias-allow fe80::/10` allows it',
    ],
  },
  {
    name: 'a target that does not answer, and one that does not exist',
    endpoints: ['k.test ALIAS silent.example', 'x.k.test ALIAS none.example'],
    world: { 'none.example': 'NXDOMAIN' },
    expanded: [],
    faults: [
      'ALIAS of k.test.: silent.example. cannot be resolved: timed out',
      'ALIAS of x.k.test.: none.example. has no addresses: NXDOMAIN',
    ],
  },
]

t.test('an ALIAS stands for the addresses of its target', async (t) => {
  for (const one of CASES) {
    const { name, endpoints, world = {}, resolves = true, allowed = [] } = one
    const networks = allowed.map((text) => scanCidr(text)!)
    const records = [aliasRecord('r', ...endpoints)]
    const names = new Map(Object.entries(world))
    const stage = aliasStage(t, records, names, { resolves, allowed: networks })
    await stage.pass(6000)
    t.same(stage.expanded('r'), one.expanded, name)
    t.same(stage.faults(), one.faults ?? [], name)
  }
})

t.test('of 500 addresses the lowest 64 are served', async (t) => {
  const addresses = Array.from({ length: 500 }, (_, i) => `203.0.${112 + (i >> 8)}.${i & 255}`)
  const world = new Map<string, Says>([['lb.example', { addresses: addresses.toReversed() }]])
  const { pass, expanded, faults } = aliasStage(
    t,
    [aliasRecord('r', 'k.test ALIAS lb.example')],
    world,
  )
  await pass(300)
  t.same(expanded('r'), [`k.test A ${addresses.slice(0, 64).join(',')} ttl=60`])
  t.same(faults(), [
    'ALIAS of k.test.: lb.example. has 500 A addresses; only the first 64 are served',
  ])
})

t.test('a change of one name is one change of the records that lead to it', async (t) => {
  const world = new Map<string, Says>([
    ['lb.example', LB],
    ['other.example', LB],
  ])
  const records = [
    aliasRecord('one', 'one.k.test ALIAS lb.example'),
    aliasRecord('two', 'two.k.test ALIAS www.k.test'),
    aliasRecord('www', 'www.k.test CNAME lb.example'),
    aliasRecord('other', 'other.k.test ALIAS other.example'),
    aliasRecord('plain', 'plain.k.test A 192.0.2.1'),
  ]
  const { pass, batches, aliases, source, expanded } = aliasStage(t, records, world)
  await Promise.all([aliases.ready(), pass(300)])
  batches.length = 0
  world.set('lb.example', { ttl: 20, addresses: ['192.0.2.9'] })
  await pass(50_000)
  const keys = batches.map((changes) => changes.map(({ after }) => after!.key))
  t.same(
    keys,
    [
      ['n/one', 'n/two'],
      ['n/one', 'n/two'],
    ],
    'A at once, AAAA when it is confirmed',
  )
  t.same(expanded('two'), ['two.k.test A 192.0.2.9 ttl=20'])
  for (const change of batches.flat()) t.equal(aliases.find(change.after!.key) !== undefined, true)
  t.equal(
    batches[1]![0]!.before,
    batches[0]![0]!.after,
    'the objects are those that were announced',
  )
  t.equal(batches[1]![0]!.after, aliases.find('n/one'))

  batches.length = 0
  source.put(aliasRecord('www', 'www.k.test A 192.0.2.50'))
  t.same(
    batches.map((changes) => changes.map(({ after }) => after!.key)),
    [['n/www', 'n/two']],
  )
  t.same(expanded('two'), ['two.k.test A 192.0.2.50 ttl=60'])
  t.same([...aliases.lendersOf('n/two')], ['n/www'])
  t.same([...aliases.borrowersOf('n/www')], ['n/two'])

  batches.length = 0
  source.put(aliasRecord('plain', 'plain.k.test A 192.0.2.2'))
  t.equal(batches.flat().length, 1, 'a record without ALIAS passes as it is')
  t.equal(batches[0]![0]!.after, source.find('n/plain'))
  source.remove('n/two')
  t.same([...aliases.borrowersOf('n/www')], [])
  source.put(aliasRecord('one', 'one.k.test A 192.0.2.2'))
  t.equal(aliases.find('n/one'), source.find('n/one'), 'it has no ALIAS any more')
})

t.test('many ALIAS endpoints of one record lead to many endpoints each', async (t) => {
  const heavy = Array.from({ length: 300 }, (_, i) => `h.k.test A 192.0.2.${i % 256} id=${i}`)
  const wide = Array.from({ length: 256 }, (_, i) => `192.0.2.${i}`).join(',')
  const wider = Array.from({ length: 300 }, (_, i) => `w.k.test A ${wide} id=${i}`)
  const owners = Array.from({ length: 300 }, (_, i) => `a${i}.k.test`)
  const { expanded, faults } = aliasStage(t, [
    aliasRecord('heavy', ...heavy),
    aliasRecord('wider', ...wider),
    aliasRecord('a', ...owners.map((owner) => `${owner} ALIAS h.k.test`)),
    aliasRecord('w', ...owners.map((owner) => `${owner} ALIAS w.k.test id=x weight=1`)),
    aliasRecord('plain', 'plain.k.test ALIAS one.k.test', 'one.k.test A 192.0.2.1'),
  ])
  t.equal(expanded('a').length, 7500, 'as many as a record may have, without any in part')
  t.equal(expanded('w').length, 1)
  t.equal(expanded('plain').length, 1)
  const texts = faults()
  t.ok(texts.includes('ALIAS of a299.k.test.: its record leads to too many addresses'))
  t.ok(texts.includes('ALIAS of a1.k.test.: its record leads to too many addresses'))
})

t.test('a record with many faults is one short line of the log', async (t) => {
  const loops = Array.from({ length: 1000 }, (_, i) => `a${i}.k.test ALIAS a${i}.k.test`)
  const { faults, lines } = aliasStage(t, [aliasRecord('a', ...loops)])
  t.equal(faults().length, 1000)
  t.equal(lines.length, 1)
  t.match(lines[0], /a4\.k\.test\.; and 995 more$/)
})
