import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { StoredRecord } from '../../src/dnsrecord/record-source.ts'
import { distribution } from './distribution.ts'
import { added, type Given, record, zone } from './record-zone-stage.ts'

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

interface Alias {
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

/** The endpoints of a record, or of all together. A record with a CNAME has an address of the name it leads to. */
function endpointsOf(
  { aliases, addresses }: Chains,
  isIn: (records: readonly number[]) => boolean,
) {
  const texts = new Set<string>()
  const addressText = (i: number): string => `${NAMES[addresses[i]!.of]} A ${addressOf(i)}`
  for (const [i, { to, options, records }] of aliases.entries()) {
    if (!isIn(records)) continue
    texts.add(`${X} CNAME ${NAMES[to]} id=c${i} ${options}`.trim())
    texts.add(addressText(addresses.findIndex(({ of }) => of === to)))
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
      const want = distribution(one.records, name)
      const got = distribution(many.records, name)
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
  fc.assert(property, { numRuns: 500, seed: 5 })
  t.ok(impaired > 100, `${impaired}`)
})
