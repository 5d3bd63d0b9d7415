import fc from 'fast-check'
import t from 'tap'
import type { OwnerSet } from '../../src/publish/build/owner-set.ts'
import { packSet } from '../../src/publish/build/pack-set.ts'
import { plan } from '../../src/publish/build/plan.ts'
import type { RecordZone } from '../../src/publish/build/record-zone.ts'
import type { RecordChange, StoredRecord } from '../../src/records/record-source.ts'
import { APEX, added, record, zone } from './record-zone-stage.ts'

function texts(zone: RecordZone): string[] {
  return zone.conflicts
    .all()
    .map((conflict) => conflict.text)
    .sort()
}

const ENDPOINT = fc
  .tuple(
    fc.constantFrom('k.example.com ', 'a.k.example.com ', 'b.k.example.com ', '*.b.k.example.com '),
    fc.constantFrom(
      'A 192.0.2.1',
      'A 192.0.2.2',
      'A 192.0.2.1,192.0.2.3',
      'AAAA 2001:db8::1',
      'CNAME c.example.org',
      'CNAME d.example.org',
      'NS ns.example.org',
      'TXT t',
    ),
    fc.constantFrom('', ' id=x', ' id=y'),
    fc.constantFrom('', ' weight=0', ' weight=9', ' geo=IE', ' geo=IE+GEO-NA', ' geo=*'),
    fc.constantFrom('', ' ttl=300'),
  )
  .map((parts) => parts.join(''))

const RECORD = fc.record({
  endpoints: fc.array(ENDPOINT, { maxLength: 4 }),
  created: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
})

/** An edit of a record (undefined = it is removed; 'same' = it stays), and its health after that. */
const EDIT = fc.record({
  name: fc.constantFrom('r1', 'r2', 'r3', 'r4'),
  record: fc.oneof(
    { weight: 4, arbitrary: RECORD },
    { weight: 1, arbitrary: fc.constantFrom(undefined, 'same' as const) },
  ),
  down: fc.constantFrom([], [], ['192.0.2.1'], ['192.0.2.1', '192.0.2.2']),
  slowStart: fc.constantFrom([], [], [{ address: '192.0.2.2', units: 3 }]),
})

t.test('after any edits a zone is what it would be if built at once, and so is its digest', (t) => {
  const property = fc.property(
    fc.array(fc.array(EDIT, { maxLength: 3 }), { maxLength: 8 }),
    (batches) => {
      const edited = zone()
      const present = new Map<string, StoredRecord>()
      for (const batch of batches) {
        const changes = new Map<string, RecordChange>()
        for (const { name, record: to, down, slowStart } of batch) {
          if (changes.has(name)) continue
          const before = present.get(name)
          const after = to === 'same' ? before : to && record({ ...to, name })
          edited.health.put(`n/${name}`, down)
          edited.health.slowStarts.set(`n/${name}`, slowStart)
          changes.set(name, { before, after })
          if (after === undefined) present.delete(name)
          else present.set(name, after)
        }
        edited.records.apply([...changes.values()].filter((c) => c.before ?? c.after))
      }
      const fresh = zone({}, edited.health)
      fresh.records.apply([...present.values()].map((after) => ({ before: undefined, after })))
      t.strictSame(edited.sink.print(), fresh.sink.print())
      t.equal(edited.records.digest, fresh.records.digest)
      t.equal(edited.records.recordCount, fresh.records.recordCount)
      t.equal(edited.records.rrsetCount, edited.sink.sets.size)
      t.strictSame(texts(edited.records), texts(fresh.records))
      return t.passing()
    },
  )
  fc.assert(property, { seed: 7, numRuns: 200 })
  t.end()
})

t.test('applying a plan to what is there gives what is wanted', (t) => {
  const sets = (endpoints: readonly string[]): OwnerSet[] => {
    const { records, sink } = zone()
    records.apply(added({ endpoints: endpoints.map((e) => e.replace(/^\S+/, 'a.k.example.com')) }))
    return [...sink.sets].filter(([key]) => key.startsWith('a.')).map(([, set]) => set)
  }
  const list = fc.array(ENDPOINT, { maxLength: 4 })
  const property = fc.property(list, list, (from, to) => {
    const served = new Map(sets(from).map((set) => [set.type, packSet(set)]))
    for (const change of plan(APEX, sets(from), sets(to))) {
      if (change.kind === 'put') served.set(change.set.type, packSet(change.set))
      else served.delete(change.type)
    }
    const want = new Map(sets(to).map((set) => [set.type, packSet(set)]))
    return (
      JSON.stringify([...served].sort()) === JSON.stringify([...want].sort()) &&
      plan(APEX, sets(to), sets(to)).length === 0
    )
  })
  fc.assert(property, { seed: 3, numRuns: 200 })
  t.end()
})
