import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { printOut } from '../../src/publish/build/all-down.ts'
import { decodeSteering } from '../../src/steering/decode.ts'
import { isEncodedSteering } from '../../src/steering/verify-encoded.ts'
import { CLIENTS, choose, createTable } from '../steering/stage.ts'
import { runs } from '../support/runs.ts'
import { added, type Given, zone } from './record-zone-stage.ts'

const X = 'x.k.example.com. A'
const CODES = ['GEO-NA', 'US', 'US-CA', 'AS64500', 'NET-OFFICE', '*'] as const

interface Site {
  /** Undefined = none. */
  readonly code: string | undefined
  readonly weight: number | undefined
  readonly isOut: boolean
}

interface Line {
  readonly code: string
  readonly entries: readonly string[]
}

const address = (i: number): string => `192.0.2.${i + 1}`

function recordOf(sites: readonly Site[], lines: readonly Line[], policy: string): Given {
  const endpoints = sites.map(({ code, weight }, i) => {
    const geo = code === undefined ? '' : ` geo=${code}`
    return `x.k.example.com A ${address(i)} id=e${i}${weight === undefined ? '' : ` weight=${weight}`}${geo}`
  })
  const text = lines.map(({ code, entries }) => `${code}: ${entries.join(', ')}`).join('\n')
  const failover: Record<string, string> = text === '' ? {} : { 'sextant.io/failover': text }
  return { endpoints, annotations: { 'sextant.io/all-down': policy, ...failover } }
}

/** A site with its number. */
type Numbered = Site & { readonly i: number }

/** Rule 4 literally: the outcomes of one draw, `numbers@weight`. */
function outcomes(members: readonly Numbered[]): string[] {
  if (members.length === 0) return ['']
  if (members.every(({ weight }) => weight === undefined)) return [members.map(({ i }) => i).join()]
  const active = members.filter(({ weight }) => weight !== 0)
  const drawn = active.length > 0 ? active : members
  if (drawn.length === 1) return [`${drawn[0]!.i}`]
  return drawn.map(({ i, weight }) => `${i}@${active.length > 0 ? (weight ?? 120) : 1}`)
}

/** The rules of docs/explanation/choice.md literally, for one client. `ladder`: codes that it matches. */
function expected(
  all: readonly Site[],
  lines: readonly Line[],
  policy: string,
  ladder: readonly string[],
): string[] {
  const isAllOut = all.every(({ isOut }) => isOut)
  const sites = all.map((site, i) => ({ ...site, i, isOut: site.isOut && !isAllOut }))
  const up = (some: readonly Numbered[]) => some.filter(({ isOut }) => !isOut)
  const ofCode = (code: string) => {
    const some = sites.filter((site) => site.code === code)
    return code === '*' && some.length === 0 ? sites.filter((s) => s.code === undefined) : some
  }
  const named = (entry: string) => {
    const coded = ofCode(entry)
    const isIdentifier = coded.length === 0
    return { isIdentifier, some: isIdentifier ? sites.filter(({ i }) => entry === `e${i}`) : coded }
  }
  const hasEffect = ({ code, entries }: Line) =>
    (code !== '*' && ofCode(code).length > 0) || entries.some((e) => named(e).some.length > 0)
  const lineOf = (code: string) => lines.find((line) => line.code === code && hasEffect(line))
  const isUsable = (some: readonly Numbered[]) => {
    const isActive = ({ weight }: Site) => weight !== 0
    return some.some(isActive) || (some.length > 0 && !up(sites).some(isActive))
  }
  const follow = (home: string, { entries }: Line) => {
    const groups = [home, ...entries].map((name) => named(name))
    for (const { isIdentifier, some } of groups) {
      const left = up(some)
      if (isIdentifier ? left.length > 0 : left.some(({ weight }) => weight !== 0))
        return outcomes(left)
    }
    for (const { some } of groups) if (up(some).length > 0) return outcomes(up(some))
    if (policy === 'closed') return ['']
    const fallback = sites.find(({ i }) => policy === `e${i}`)
    return outcomes(fallback === undefined ? up(sites) : [fallback])
  }
  const general = lineOf('*')
  for (const code of ladder) {
    const some = ofCode(code)
    const line = lineOf(code) ?? (some.length > 0 ? general : undefined)
    if (line !== undefined) return follow(code, line)
    if (isUsable(up(some))) return outcomes(up(some))
  }
  if (general !== undefined) return follow('*', general)
  const defaults = up(sites.filter((site) => site.code === '*'))
  return outcomes(isUsable(defaults) ? defaults : up(sites))
}

const site = fc.record<Site>({
  code: fc.constantFrom(undefined, ...CODES),
  weight: fc.constantFrom(undefined, 0, 1, 2),
  isOut: fc.boolean(),
})
const line = fc.record<Line>({
  code: fc.constantFrom(...CODES),
  entries: fc.uniqueArray(fc.constantFrom(...CODES, 'e0', 'e1', 'e2', 'nobody'), {
    minLength: 1,
    maxLength: 3,
  }),
})
const lists = fc.uniqueArray(line, { maxLength: 3, selector: ({ code }) => code })

t.test('every client gets what the rules say', async (t) => {
  const { table } = createTable()
  let emptied = 0
  const property = fc.asyncProperty(
    fc.array(site, { minLength: 1, maxLength: 5 }),
    lists,
    fc.constantFrom('open', 'closed', 'e0'),
    fc.boolean(),
    async (given, lines, policy, drainsFirst) => {
      const sites = given.map((one, i) => (i === 0 && drainsFirst ? { ...one, isOut: true } : one))
      if (policy !== 'open' && sites.every(({ isOut }) => isOut)) return
      const { records, sink, health } = zone()
      health.put(
        'n/app',
        given.flatMap(({ isOut }, i) => (isOut ? [address(i)] : [])),
      )
      if (drainsFirst) health.drains = ['id:e0']
      // A fallback endpoint that is drained does not serve.
      const rule = drainsFirst && policy === 'e0' ? 'closed' : policy
      records.apply(added(recordOf(sites, lines, policy)))
      const set = sink.sets.get(X)!
      const targets = sink.targets(X)!
      const words = table.compose(set.candidates, set.type, set)
      await table.built()
      if (words === undefined) {
        const whole = targets.map((text) => Number(text.split('.')[3]) - 1).sort()
        return t.same([whole.join()], expected(sites, lines, rule, []), 'not steered')
      }
      const counts = table.policies.map(({ length }) => length)
      const isGood = isEncodedSteering(words, 0, words.length, targets.length, counts)
      if (!isGood) throw new Error('not valid for a snapshot')
      const { policy: row, tiers } = decodeSteering(words, 0)
      const codes = (row === undefined ? [] : table.policies[row]!).map(({ text }) => text)
      for (const client of Object.values(CLIENTS)) {
        const bytes = new Uint8Array(16)
        bytes.set(scanAddress(client)!.bytes)
        const ladder = table.trie.codesOf[table.trie.lookup(bytes, 1, 32)]!.map(({ text }) => text)
        const code = ladder.find((text) => codes.includes(text))
        const tier = tiers[code === undefined ? codes.length : codes.indexOf(code)]!
        const got = tier.map(({ weight, rdataIndexes }) => {
          const sorted = rdataIndexes.map((i) => Number(targets[i]!.split('.')[3]) - 1).sort()
          return tier.length === 1 ? sorted.join() : `${sorted.join()}@${weight}`
        })
        const want = expected(sites, lines, rule, ladder)
        if (got.join(' ') !== want.join(' ')) throw new Error(`${client}: ${got}, wanted ${want}`)
        const chosen = choose(table, words, client).join()
        if (!tier.some(({ rdataIndexes }) => rdataIndexes.join() === chosen))
          throw new Error(`${client}: chose ${chosen}`)
        if (want.join() === '') emptied++
      }
    },
  )
  await fc.assert(property, { numRuns: runs(1500), seed: 7 })
  t.ok(emptied > 20, `${emptied} answers are empty`)
})

t.test('what a list names in vain is a conflict', async (t) => {
  const { records, conflicts } = zone()
  const failover = 'GEO-EU: GEO-NA, spare, GEO-EU\n*: GEO-EU, other'
  const annotations = { 'sextant.io/failover': failover }
  const endpoints = [
    'x.k.example.com CNAME eu.k.example.com geo=GEO-EU id=eu',
    'eu.k.example.com CNAME c1.k.example.com weight=1 id=c1',
    'c1.k.example.com A 192.0.2.1',
  ]
  records.apply(added({ endpoints, annotations }))
  t.strictSame(conflicts, [
    'x.k.example.com.: failover names "GEO-NA", "spare", "other", which no endpoint has; correct the annotation (n/app)',
  ])
})

t.test('an entry that is misspelt is reported with the one that is meant', async (t) => {
  const { records, conflicts } = zone()
  const annotations = { 'sextant.io/failover': 'GEO-EU: berlni, GEOEU' }
  const endpoints = ['x.k.example.com A 192.0.2.1 geo=GEO-EU id=berlin']
  records.apply(added({ endpoints, annotations }))
  t.match(conflicts, [
    /failover names "berlni" \(did you mean berlin\?\), "GEOEU" \(did you mean GEO-EU\?\), which/,
  ])
})

t.test(
  'a list without an effect is a conflict, unless another record of the name has an entry',
  async (t) => {
    const listed = (text: string, ...endpoints: string[]): Given => ({
      endpoints,
      annotations: { 'sextant.io/failover': text },
    })
    const other = (endpoint: string): Given => ({
      name: 'other',
      site: 'paris',
      endpoints: [endpoint],
    })
    const plain = 'x.k.example.com A 192.0.2.1 id=one'
    const spare = 'x.k.example.com A 192.0.2.9 id=spare'
    const says = (names: string): RegExp =>
      new RegExp(`^x\\.k\\.example\\.com\\.: failover names ${names}, which`)
    const table: readonly (readonly [
      name: string,
      given: readonly Given[],
      want: readonly RegExp[],
    ])[] = [
      ['no geo codes', [listed('GEO-EU: GEO-NA', plain)], [says('"GEO-NA"')]],
      ['an entry of another site', [listed('*: spare', plain), other(spare)], []],
      ['a code of another site', [listed('GEO-EU: one', plain), other(`${spare} geo=GEO-EU`)], []],
      ['only one of two entries', [listed('*: spare, no', plain), other(spare)], [says('"no"')]],
      [
        'another name of the record has the codes',
        [listed('GEO-EU: GEO-NA', plain, 'y.k.example.com A 192.0.2.2 geo=GEO-EU+GEO-NA')],
        [],
      ],
    ]
    for (const [name, given, want] of table) {
      for (const order of [given, [...given].reverse()]) {
        const { records } = zone({ site: 'berlin' })
        records.apply(added(...order))
        t.match(
          records.conflicts.all().map(({ text }) => text),
          want,
          name,
        )
        t.equal(records.conflicts.all().length, want.length, name)
      }
    }
  },
)

t.test('an edit of another name of the record decides whether a list is idle', async (t) => {
  const version = (geo: string): Given => ({
    endpoints: ['x.k.example.com A 192.0.2.1', `y.k.example.com A 192.0.2.2${geo}`],
    annotations: { 'sextant.io/failover': 'GEO-EU: GEO-NA' },
  })
  const { records } = zone()
  const [located] = added(version(' geo=GEO-EU+GEO-NA'))
  const [plain] = added(version(''))
  const names = () => records.conflicts.all().map(({ text }) => text.split(' ')[0])
  records.apply([located!])
  t.strictSame(names(), [])
  records.apply([{ before: located!.after, after: plain!.after }])
  t.strictSame(names(), ['y.k.example.com.:', 'x.k.example.com.:'].sort())
  records.apply([{ before: plain!.after, after: located!.after }])
  t.strictSame(names(), [])
})

t.test('an edit of the list alone reaches the answers', async (t) => {
  const endpoints = [
    'x.k.example.com A 192.0.2.1 geo=GEO-EU id=eu',
    'x.k.example.com A 192.0.2.2 geo=GEO-NA id=na',
    'x.k.example.com A 192.0.2.3 geo=GEO-AS id=as',
  ]
  const { records, sink, health } = zone()
  health.put('n/app', ['192.0.2.1'])
  const given = (text: string): Given => ({
    endpoints,
    annotations: { 'sextant.io/failover': text },
  })
  const [first] = added(given('GEO-EU: GEO-NA'))
  const [second] = added(given('GEO-EU: GEO-AS'))
  const [third] = added(given('GEO-EU: as'))
  records.apply([first!])
  const before = records.digest
  records.apply([{ before: first!.after, after: second!.after }])
  t.equal(sink.changes, 3, 'NS, and the set twice')
  t.not(records.digest, before)
  const { changes } = sink
  records.apply([{ before: second!.after, after: third!.after }])
  t.equal(sink.changes, changes, 'another list with the same answers changes nothing')
  t.equal(sink.sets.get(X)!.type, RRType.A)
})

t.test('lists that are exhausted are reported once per change', async (t) => {
  const sites = ['eu', 'na', 'as'].map((name, i) => {
    return `x.k.example.com A ${address(i)} id=${name} geo=GEO-${name.toUpperCase()}`
  })
  const failover = 'GEO-EU: na\nGEO-NA: eu'
  const table: readonly (readonly [policy: string, drains: readonly string[], says: string])[] = [
    ['open', [], 'any endpoint in service serves'],
    ['closed', [], 'the answer is empty'],
    ['eu', [], 'endpoint "eu" serves'],
    ['eu', ['id:eu'], 'the answer is empty, because endpoint "eu" is drained'],
    ['as', [], 'endpoint "as" serves'],
    [
      'gone',
      [],
      'any endpoint in service serves, because no endpoint has the set identifier "gone"',
    ],
  ]
  for (const [policy, drains, says] of table) {
    const annotations = { 'sextant.io/failover': failover, 'sextant.io/all-down': policy }
    const { records, health, ignored } = zone()
    const [change] = added({ endpoints: sites, annotations })
    const apply = (...down: string[]) => {
      health.put('n/app', down)
      health.drains = down.length === 0 ? [] : drains
      records.apply([{ before: change!.after, after: change!.after }])
      return records.out.exhausted.map((one) => `${one.set}: ${printOut(one)}`)
    }
    records.apply([change!])
    t.strictSame(apply(address(0)), [], 'North America serves Europe')
    const both = [`${X}: failover lists GEO-EU, GEO-NA are exhausted; ${says}`]
    t.strictSame(apply(address(0), address(1)), both)
    t.strictSame(apply(address(0), address(1)), both)
    t.strictSame(ignored, [`${X} true`], 'once')
    t.strictSame(records.out.allDown, [])
    t.strictSame(apply(), [])
    t.strictSame(ignored, [`${X} true`, `${X} false`])
    apply(address(0), address(1))
    t.strictSame(apply(address(0), address(1), address(2)), [], 'all endpoints are down')
    t.equal(records.out.allDown.length, 1)
    t.equal(ignored.length, 4)
  }
})

t.test('lists behind a CNAME are reported, and one list by its code', async (t) => {
  const { records, health } = zone()
  const [change] = added({
    endpoints: [
      'x.k.example.com CNAME g.k.example.com',
      'g.k.example.com CNAME eu.k.example.com geo=GEO-EU id=eu',
      'g.k.example.com CNAME na.k.example.com geo=GEO-NA id=na',
      'g.k.example.com CNAME as.k.example.com geo=GEO-AS id=as',
      ...['eu', 'na', 'as'].map((name, i) => `${name}.k.example.com A ${address(i)}`),
    ],
    annotations: { 'sextant.io/failover': 'GEO-EU: GEO-NA' },
  })
  health.put('n/app', [address(0), address(1)])
  records.apply([change!])
  t.strictSame(
    records.out.exhausted.map((one) => `${one.set}: ${printOut(one)}`),
    ['g.k.example.com. CNAME: failover list GEO-EU is exhausted; any endpoint in service serves'],
  )
})
