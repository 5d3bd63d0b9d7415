import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { findOutTargets } from '../../src/health/drain/drained-targets.ts'
import type { Contribution, Drop } from '../../src/publish/build/owner-set.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import type { StoredRecord } from '../../src/records/record-source.ts'
import { runs } from '../support/runs.ts'
import { distribution } from './distribution.ts'
import { added, type Given, impairedOf, record, zone } from './record-zone-stage.ts'

const X = 'x.k.example.com'
const NAMES = [0, 1, 2].map((i) => `t${i}.k.example.com`)

t.test('a CNAME works while a target of another record does', async (t) => {
  const { records, sink, health } = zone({ settings: { allDown: 'closed', sticky: undefined } })
  const [ours, theirs] = added(
    { name: 'a', endpoints: [`${X} CNAME ${NAMES[0]}`, `${NAMES[0]} A 192.0.2.1`] },
    { name: 'b', site: 'paris', endpoints: [`${NAMES[0]} A 192.0.2.2`] },
  )
  const key = `${X}. CNAME`
  const again = ({ after }: { after: StoredRecord | undefined }) => ({ before: after, after })
  health.put('n/a', ['192.0.2.1'])
  records.apply([ours!])
  t.notOk(sink.sets.has(key), 'alone, it leads nowhere')
  records.apply([theirs!])
  t.ok(sink.sets.has(key), 'another record has a target')
  t.strictSame(sink.targets(`${NAMES[0]}. A`), ['192.0.2.2'])
  health.put('peers/b@paris', ['192.0.2.2'])
  records.apply([again(theirs!)])
  t.notOk(sink.sets.has(key), 'which goes down')
  health.put('peers/b@paris')
  records.apply([again(theirs!)])
  t.ok(sink.sets.has(key), 'and up')
  health.drains = ['address:192.0.2.2']
  records.apply([again(theirs!)])
  t.notOk(sink.sets.has(key), 'and is drained')
  health.drains = []
  records.apply([again(theirs!)])
  records.apply([{ before: theirs!.after, after: undefined }])
  t.notOk(sink.sets.has(key), 'and is gone')
  health.put('n/a')
  records.apply([again(ours!)])
  t.ok(sink.sets.has(key))
})

for (const together of [true, false]) {
  t.test(`a TXT beside dead addresses does not keep a CNAME: one record ${together}`, async (t) => {
    const { records, sink, health } = zone({ settings: { allDown: 'closed', sticky: undefined } })
    const alias = `${X} CNAME ${NAMES[0]}`
    const target = [`${NAMES[0]} A 192.0.2.1`, `${NAMES[0]} TXT "owner"`]
    const given = together
      ? [{ name: 'b', endpoints: [alias, ...target] }]
      : [
          { name: 'a', endpoints: [alias] },
          { name: 'b', endpoints: target },
        ]
    health.put('n/b', ['192.0.2.1'])
    records.apply(added(...given))
    t.notOk(sink.sets.has(`${X}. CNAME`))
    t.ok(sink.sets.has(`${NAMES[0]}. TXT`))
  })
}

interface Alias {
  readonly isInside: boolean
  readonly to: number
  readonly options: string
  readonly records: readonly number[]
}

interface Address {
  readonly of: number
  readonly state: 'up' | 'down' | 'drained'
  readonly records: readonly number[]
}

interface Chains {
  readonly aliases: readonly Alias[]
  readonly addresses: readonly Address[]
  readonly policy: string
  /** Numbers of records whose health is built again. */
  readonly changes: readonly number[]
}

const RECORDS = 4
const numbers = fc.uniqueArray(fc.nat(RECORDS - 1), { minLength: 1, maxLength: 3 })
const addressOf = (i: number): string => `192.0.2.${i}`
const state = fc.constantFrom('up', 'down', 'drained')
const chains = fc.record<Chains>({
  aliases: fc.array(
    fc.record<Alias>({
      isInside: fc.boolean(),
      to: fc.nat(2),
      options: fc.constantFrom('', 'weight=1', 'weight=3', 'geo=US', 'geo=US default=true'),
      records: numbers,
    }),
    { minLength: 1, maxLength: 5 },
  ),
  // At least one for each name.
  addresses: fc
    .tuple(
      fc.tuple(state, state, state),
      fc.array(fc.record<Address>({ of: fc.nat(2), state, records: numbers }), { maxLength: 5 }),
    )
    .map(([states, more]) => {
      const firsts = states.map((one, of): Address => ({ of, state: one, records: [of] }))
      return [...firsts, ...more]
    }),
  policy: fc.constantFrom('open', 'closed'),
  changes: fc.array(fc.nat(RECORDS - 1), { maxLength: 6 }),
})

/** The endpoints of a record, or of all together. */
function endpointsOf(
  { aliases, addresses }: Chains,
  isIn: (records: readonly number[]) => boolean,
) {
  const texts = new Set<string>()
  const addressText = (i: number): string => `${NAMES[addresses[i]!.of]} A ${addressOf(i)}`
  for (const [i, { to, options, records, isInside }] of aliases.entries()) {
    if (!isIn(records)) continue
    texts.add(`${X} CNAME ${NAMES[to]} id=c${i} ${options}`.trim())
    // The record of a CNAME may have an address of the name it leads to, or only others have.
    if (isInside) texts.add(addressText(addresses.findIndex(({ of }) => of === to)))
  }
  for (const [i, { records }] of addresses.entries()) if (isIn(records)) texts.add(addressText(i))
  return [...texts]
}

t.test('chains over several records give the answers of one record', async (t) => {
  let impaired = 0
  const property = fc.property(chains, (given) => {
    const of = (wanted: Address['state']): string[] => {
      return given.addresses.flatMap((one, i) => (one.state === wanted ? [addressOf(i)] : []))
    }
    const settings = { allDown: given.policy, sticky: undefined }
    const drains = of('drained').map((one) => `address:${one}`)
    const one = zone({ settings })
    one.health.put('n/app', of('down'))
    one.health.drains = drains
    one.records.apply(added({ endpoints: endpointsOf(given, () => true) }))
    const many = zone({ settings })
    const records = Array.from({ length: RECORDS }, (_, r): Given => {
      const site = r % 2 === 0 ? {} : { site: 'paris' }
      return { ...site, name: `r${r}`, endpoints: endpointsOf(given, (some) => some.includes(r)) }
    })
    const stored = records.filter(({ endpoints }) => endpoints.length > 0).map(record)
    many.records.apply(stored.map((after) => ({ before: undefined, after })))
    many.health.drains = drains
    // The health of each record becomes known at another time.
    const order = [...given.changes.flatMap((r) => stored[r] ?? []), ...stored]
    for (const after of order) {
      many.health.put(after.key, of('down'))
      many.records.apply([{ before: after, after }])
    }
    for (const name of [X, ...NAMES]) {
      // A name that a CNAME of its own record leads to is not reported.
      const of = ({ records }: typeof one) => {
        const { out, ...rest } = distribution(records, name)
        return { ...rest, out: out.filter((text) => text.startsWith(X)) }
      }
      const [want, got] = [of(one), of(many)]
      assert.deepEqual(got, want, name)
      // What is served was built from the same state.
      for (const [type] of got.sets) {
        const key = `${name}. ${type}`
        assert.equal(many.sink.sets.has(key), one.sink.sets.has(key), key)
        assert.equal(many.sink.sets.get(key)?.rdata.length, one.sink.sets.get(key)?.rdata.length)
      }
    }
    if (drains.length + of('down').length > 1) impaired++
  })
  fc.assert(property, { numRuns: runs(500), seed: 5 })
  t.ok(impaired > runs(100), `${impaired}`)
})

t.test('a CNAME works while the name does that only other records have', async (t) => {
  const Y = 'y.k.example.com'
  const { records, sink, health } = zone({ settings: { allDown: 'closed', sticky: undefined } })
  const [first, second, third] = added(
    { name: 'a', endpoints: [`${X} CNAME ${Y}`, `other.k.example.com A 192.0.2.7`] },
    { name: 'b', site: 'paris', endpoints: [`${Y} CNAME ${NAMES[0]}`] },
    { name: 'c', endpoints: [`${NAMES[0]} A 192.0.2.1`] },
  )
  const again = ({ after }: { after: StoredRecord | undefined }) => ({ before: after, after })
  const served = () => [X, Y].filter((name) => sink.sets.has(`${name}. CNAME`))
  records.apply([first!])
  t.strictSame(served(), [X], 'nothing is known of its target')
  health.put('n/c', ['192.0.2.1'])
  records.apply([second!])
  records.apply([third!])
  t.strictSame(served(), [], 'the address at the end of the chain is down')
  health.put('n/c')
  records.apply([again(third!)])
  t.strictSame(served(), [X, Y], 'up')
  health.drains = ['address:192.0.2.1']
  records.apply([again(third!)])
  t.strictSame(served(), [], 'drained')
  t.equal(records.out.drainedCount, 3)
  t.strictSame([...records.impairedKeys()].sort(), ['n/a', 'n/c', 'peers/b@paris'])
  t.match(impairedOf(records, first!.after!), [{ endpoint: { type: RRType.CNAME } }])
  const dropped: string[] = []
  const report = { dropped: (_: Contribution, { kind }: Drop) => dropped.push(kind), kept() {} }
  records.explain(scanName(`${X}.`)!, report)
  t.strictSame(dropped, ['drained'])
  const edited = record({ name: 'a', endpoints: [`${X} CNAME ${Y}`] })
  records.apply([{ before: first!.after, after: edited }])
  t.strictSame(served(), [], 'an edit changes nothing')
  records.apply([{ before: second!.after, after: undefined }])
  t.strictSame(served(), [X], 'the chain is cut')
  records.apply([second!])
  t.strictSame(served(), [], 'and whole again')
  records.apply([{ before: third!.after, after: undefined }])
  t.strictSame(served(), [X, Y], 'its end is gone')
  t.strictSame([...records.impairedKeys()], [])
})

const POOL_NAMES = ['w', 'x', 'y', 'z'].map((one) => `${one}.k.example.com`)
/** Chains, also with loops. */
const POOL = [
  'x.k.example.com CNAME y.k.example.com id=1 weight=1',
  'x.k.example.com CNAME z.k.example.com id=2 weight=1',
  'y.k.example.com CNAME z.k.example.com',
  'z.k.example.com CNAME x.k.example.com id=1 weight=1',
  'z.k.example.com CNAME q.k.example.com id=2 weight=2',
  'w.k.example.com CNAME x.k.example.com',
  ...POOL_NAMES.map((name, i) => `${name} A 192.0.2.${i}`),
  ...POOL_NAMES.slice(1).map((name, i) => `${name} A 192.0.2.${i + 4} id=b`),
  'q.k.example.com A 192.0.2.9',
]
const POOL_ADDRESSES = [0, 1, 2, 3, 4, 5, 9].map(addressOf)

t.test('what is served depends on the records and their health, not on their history', async () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    endpoints: fc.subarray(POOL, { maxLength: 4 }),
    down: fc.subarray(POOL_ADDRESSES),
    drains: fc.subarray([0, 1].map((i) => `address:${addressOf(i)}`)),
  })
  const property = fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
    const { records, sink, health } = zone()
    const stored = new Map<string, StoredRecord>()
    for (const { name, endpoints, down, drains } of steps) {
      const before = stored.get(name)
      const after = endpoints.length === 0 ? undefined : record({ name, endpoints })
      if (after === undefined) stored.delete(name)
      else stored.set(name, after)
      health.put(`n/${name}`, down)
      health.drains = drains
      if (before !== undefined || after !== undefined) records.apply([{ before, after }])
      records.apply([...stored.values()].map((one) => ({ before: one, after: one })))
    }
    const fresh = zone({}, health)
    fresh.records.apply([...stored.values()].map((after) => ({ before: undefined, after })))
    assert.deepEqual(sink.print(), fresh.sink.print())
    assert.equal(records.digest, fresh.records.digest)
    assert.deepEqual(
      records.out.allDown.map(({ set }) => set).sort(),
      fresh.records.out.allDown.map(({ set }) => set).sort(),
    )
    assert.equal(records.out.drainedCount, fresh.records.out.drainedCount)
  })
  fc.assert(property, { numRuns: runs(2000), seed: 7 })
})

t.test('long chains and loops over several records give the answers of one record', async (t) => {
  let dead = 0
  const property = fc.property(
    fc.array(fc.subarray(POOL, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 5 }),
    fc.subarray(POOL_ADDRESSES),
    fc.subarray([1, 3, 9].map((i) => `address:${addressOf(i)}`)),
    fc.constantFrom('open', 'closed'),
    (lists, down, drains, allDown) => {
      const settings = { allDown, sticky: undefined }
      const fill = (givens: readonly Given[]) => {
        const filled = zone({ settings })
        filled.health.drains = drains
        const changes = added(...givens)
        for (const { after } of changes) filled.health.put(after!.key, down)
        for (const change of changes) filled.records.apply([change])
        return { ...filled, stored: changes.map(({ after }) => after!) }
      }
      const one = fill([{ endpoints: [...new Set(lists.flat())] }])
      const many = fill(lists.map((endpoints, i) => ({ name: `r${i}`, endpoints })))
      const print = ({ sink }: typeof one) => {
        const keys = [...sink.sets.keys()].sort()
        return keys.map((key) => [key, sink.targets(key)!.sort()])
      }
      assert.deepEqual(print(many), print(one))
      // The code for a record without a zone finds the same.
      const alone = one.stored[0]!
      const { endpoints } = unpackRecord(alone.packed)
      const out = findOutTargets(endpoints, down, one.health.drainsOf(alone))
      const want = endpoints.flatMap(({ owner, type }, i) => {
        return out.out[i]!.size === 0
          ? []
          : [[printName(owner), type, out.down[i]!.size, out.drained?.[i]?.size ?? 0]]
      })
      const found = impairedOf(one.records, alone).map((each) => {
        const { owner, type } = each.endpoint
        return [printName(owner), type, each.down.size, each.drained?.size ?? 0]
      })
      assert.deepEqual(found.sort(), want.sort())
      if (want.some(([, type]) => type === RRType.CNAME)) dead++
    },
  )
  fc.assert(property, { numRuns: runs(1000), seed: 9 })
  t.ok(dead > runs(100), `${dead}`)
})

t.test('a chain over several records counts up to its sixteenth name', async (t) => {
  const { records, sink, health } = zone({ settings: { allDown: 'closed', sticky: undefined } })
  const name = (i: number): string => `c${i}.k.example.com`
  const links = Array.from({ length: 20 }, (_, i): Given => {
    return { name: `r${i}`, endpoints: [`${name(i + 1)} CNAME ${name(i)}`] }
  })
  const [end] = added({ name: 'end', endpoints: [`${name(0)} A 192.0.2.1`] })
  records.apply(added(...links))
  records.apply([end!])
  const again = { before: end!.after, after: end!.after }
  for (const _ of [1, 2]) {
    t.equal(sink.sets.size, 20 + 2, 'with the NS')
    health.put('n/end', ['192.0.2.1'])
    records.apply([again])
    const left = [...sink.sets.keys()].filter((key) => key.endsWith(' CNAME'))
    t.strictSame(
      left,
      [17, 18, 19, 20].map((i) => `${name(i)}. CNAME`),
    )
    health.put('n/end')
    records.apply([again])
  }
})

interface Names {
  readonly name: string
  readonly records: readonly Given[]
  /** Number of the first records whose address goes down. */
  readonly down: number
}

const COUNT = 200
const range = (of: (i: number) => string): string[] =>
  Array.from({ length: COUNT }, (_, i) => of(i))
const COSTLY: readonly Names[] = [
  {
    name: 'one record with many names',
    records: [{ name: 'r0', endpoints: range((i) => `h${i}.k.example.com A 192.0.2.1`) }],
    down: 1,
  },
  {
    name: 'many names that several records have',
    records: [0, 1, 2].map((r) => {
      return { name: `r${r}`, endpoints: range((i) => `h${i}.k.example.com A 192.0.2.1 id=${r}`) }
    }),
    down: 3,
  },
  {
    name: 'many CNAMEs of a record to names of another',
    records: [
      { name: 'r0', endpoints: range((i) => `h${i}.k.example.com A 192.0.2.1`) },
      { name: 'r1', endpoints: range((i) => `c${i}.k.example.com CNAME h${i}.k.example.com`) },
    ],
    down: 1,
  },
  {
    name: 'many CNAMEs to names of the record',
    records: [
      {
        name: 'r0',
        endpoints: range((i) => {
          return i % 2 === 0
            ? `h${i}.k.example.com A 192.0.2.1`
            : `h${i}.k.example.com CNAME h${i - 1}.k.example.com`
        }),
      },
    ],
    down: 1,
  },
]

for (const { name, records: givens, down } of COSTLY) {
  t.test(`names that die or recover cost few reads of their records: ${name}`, async (t) => {
    const { records, sink, health } = zone({ settings: { allDown: 'closed', sticky: undefined } })
    const stored = givens.map(record)
    let reads = 0
    for (const one of stored) {
      const { packed } = one
      const get = () => {
        reads++
        return packed
      }
      Object.defineProperty(one, 'packed', { get })
    }
    records.apply(stored.map((after) => ({ before: undefined, after })))
    const { size } = sink.sets
    const changed = stored.slice(0, down)
    for (const [round, addresses] of [['192.0.2.1'], [], ['192.0.2.1'], []].entries()) {
      for (const { key } of changed) health.put(key, addresses)
      reads = 0
      records.apply(changed.map((one) => ({ before: one, after: one })))
      t.equal(sink.sets.size, addresses.length === 0 ? size : 1, 'the NS is left')
      // The first dead name builds the index of CNAMEs.
      if (round > 0) t.ok(reads <= 12 * stored.length, `${reads} reads of ${stored.length} records`)
    }
  })
}
