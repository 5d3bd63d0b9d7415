import fc from 'fast-check'
import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { AppliedRights } from '../../src/publish/offline/applied-rights.ts'
import type { StoredRecord } from '../../src/records/record-source.ts'
import { ZoneOwnership } from '../../src/sources/zone-ownership.ts'
import { record } from '../sources/records-with-rights.ts'

const ownership = new ZoneOwnership()
ownership.claim(['k.example.com.', 'kdrnt.'].map((zone) => scanName(zone)!))

const arbitraryRecord = fc
  .record({
    namespace: fc.constantFrom('n1', 'n2', 'n3'),
    name: fc.constantFrom('r', 's'),
    created: fc.constantFrom(undefined, 1, 2, 3),
    host: fc.constantFrom('@', 'a', 'b.a', '*.a', 'd', '*'),
  })
  .map(record)
const arbitraryRecords = fc.uniqueArray(arbitraryRecord, { selector: ({ key }) => key })
const arbitraryNamespaces = fc.constantFrom(undefined, new Set(['n1', 'n2']), new Set(['n3']))

const contents = (records: Iterable<StoredRecord>): ReadonlyMap<string, string> => {
  return new Map([...records].map(({ key, packed }) => [key, JSON.stringify(packed)]))
}

t.test('replaced records are served as if they were the first ones', async (t) => {
  fc.assert(
    fc.property(
      arbitraryRecords,
      fc.array(arbitraryRecords, { minLength: 1, maxLength: 3 }),
      arbitraryNamespaces,
      (first, later, allowedNamespaces) => {
        const rules = { ownership, shares: [], allowedNamespaces }
        const rights = new AppliedRights(first, rules)
        const served = new Map(rights.records.map((one) => [one.key, one]))
        for (const all of later) {
          const changes = rights.replace(all)
          const keys = new Set(changes.map(({ before, after }) => (after ?? before)!.key))
          t.equal(keys.size, changes.length)
          for (const { before, after } of changes) {
            const { key } = (after ?? before)!
            t.equal(served.get(key), before)
            if (after === undefined) served.delete(key)
            else served.set(key, after)
          }
          const whole = new AppliedRights(all, rules)
          t.same(contents(served.values()), contents(whole.records))
          t.same(contents(rights.records), contents(whole.records))
          t.same(new Set(rights.refused), new Set(whole.refused))
        }
      },
    ),
    { numRuns: 300 },
  )
})
