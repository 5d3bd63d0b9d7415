import fc from 'fast-check'
import t from 'tap'
import type { IgnoredPart } from '../../src/records/validate/ignored.ts'
import { IgnoredIndex } from '../../src/sources/ignored-index.ts'

const KINDS = ['ignored-record', 'ignored-part'] as const
const kind = fc.constantFrom(...KINDS)
const change = fc.record({ holder: fc.nat(4), kinds: fc.array(kind, { maxLength: 4 }) })

t.test('the groups have what the holders have, whatever was there before', async (t) => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const index = new IgnoredIndex<number>()
      const model = new Map<number, readonly IgnoredPart['kind'][]>()
      for (const { holder, kinds } of changes) {
        const parts = kinds.map((one) => {
          return { path: [], message: one, kind: one, isUnknown: false, lineOffset: 2 }
        })
        const objects = parts.length === 0 ? [] : [{ key: `ns/${holder}`, parts }]
        index.set(holder, objects, (offset) => `${holder}.yaml:${1 + offset}`)
        model.set(holder, kinds)
      }
      for (const { kind, of, count, problems } of index.groups('src')) {
        const want = [...model].flatMap(([holder, kinds]) => {
          const text = `${holder}.yaml:3 ns/${holder} ns/${holder}: ${kind}`
          return kinds.filter((one) => one === kind).map(() => text)
        })
        const got = [...problems].map((one) => `${one.place} ${one.object} ${one.reason}`)
        t.strictSame([of, count, got.sort()], ['src', want.length, want.sort()])
      }
    }),
    { numRuns: 200 },
  )
})
