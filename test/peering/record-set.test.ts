import fc from 'fast-check'
import t from 'tap'
import { RecordSet } from '../../src/peering/record-set.ts'
import { packRecord } from '../../src/records/pack.ts'
import { StoredRecord } from '../../src/records/record-source.ts'
import { scanHost } from '../../src/records/validate/names.ts'

const packed = packRecord({
  namespace: 'a',
  name: 'a',
  zoneLabel: '',
  rootHost: scanHost('k.example.com')!,
  isWildcardHost: false,
  isAggregate: false,
  createdSeconds: 0,
  endpoints: [],
})

t.test('a set has what a map by key would have, whatever its size', async () => {
  const step = fc.record({
    key: fc.nat(40),
    kind: fc.constantFrom('add', 'add', 'delete', 'stale'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const set = new RecordSet()
      const model = new Map<string, StoredRecord>()
      for (const { key, kind } of steps) {
        const record = new StoredRecord(`a/${key}`, packed)
        const known = model.get(record.key)
        if (kind === 'add') {
          set.add(record)
          model.set(record.key, record)
        } else if (kind === 'stale') set.delete(record)
        else if (known !== undefined) {
          set.delete(known)
          model.delete(record.key)
        }
        if (set.size !== model.size || set.get(record.key) !== model.get(record.key)) return false
      }
      const copy = RecordSet.of(set)
      for (const record of model.values()) set.delete(record)
      return set.size === 0 && new Set(copy).size === model.size && copy.size === model.size
    }),
  )
})
