import fc from 'fast-check'
import t from 'tap'
import { OwnerHolders } from '../../../src/publish/build/owner-holders.ts'
import { StoredRecord } from '../../../src/records/record-source.ts'
import { record } from '../record-zone-stage.ts'

const OWNER = 'x.k.example.com'
const OWN = 'osaka'

interface Given {
  readonly name: string
  /** Our own site has records without an origin. */
  readonly site: string
  /** The later, the younger. */
  readonly day: number
}

/** A record of another site is undated while the clocks of sites differ. */
function stored({ name, site, day }: Given, isUndated: boolean): StoredRecord {
  const created = `2026-01-${String(day).padStart(2, '0')}T00:00:00Z`
  const { key, packed } = record({ name, created, endpoints: [`${OWNER} A 192.0.2.1`] })
  if (site === OWN) return new StoredRecord(key, packed)
  return new StoredRecord(key, packed, { site, id: name, ...(isUndated && { isUndated }) })
}

function keysOf(holders: OwnerHolders): string {
  return holders
    .of('o')
    .map(({ key }) => key)
    .join()
}

function filled(records: readonly StoredRecord[]): OwnerHolders {
  const holders = new OwnerHolders(OWN)
  for (const one of records) holders.add('o', one)
  return holders
}

const site = fc.constantFrom('berlin', 'lima', OWN, 'paris', 'rome')
const given = fc.record({ name: fc.constant(''), site, day: fc.integer({ min: 1, max: 28 }) })
const world = fc
  .array(given, { minLength: 2, maxLength: 8 })
  .map((all) => all.map((one, i) => ({ ...one, name: `r${i}` })))
/** Whether the records are undated: one state after the other. Each host has its own clocks. */
const states = fc.array(fc.tuple(fc.boolean(), fc.boolean()), { minLength: 1, maxLength: 4 })

t.test('the order of records does not depend on what they were before', async (t) => {
  const property = fc.property(world, states, fc.boolean(), (all, later, isFirst) => {
    let records = all.map((one) => stored(one, isFirst))
    const holders = filled(records)
    for (const isUndated of later) {
      for (const [i, one] of all.entries()) {
        const after = stored(one, isUndated[i % 2]!)
        holders.drop('o', records[i]!)
        holders.add('o', after)
        records = records.with(i, after)
      }
    }
    return (
      keysOf(holders) === keysOf(filled(records)) &&
      keysOf(holders) === keysOf(filled(records.toReversed()))
    )
  })
  fc.assert(property, { numRuns: 1000 })
  t.pass()
})
