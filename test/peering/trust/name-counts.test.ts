import fc from 'fast-check'
import t from 'tap'
import { namesAbove } from '../../../src/peering/trust/host-index.ts'
import { NameCounts } from '../../../src/peering/trust/name-counts.ts'

const label = fc.constantFrom('a', 'b', '*')
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
const record = fc.uniqueArray(name, { maxLength: 4 })

t.test('names of records that are there, without those of some of them', async () => {
  fc.assert(
    fc.property(
      fc.array(record),
      fc.array(record),
      fc.array(record),
      name,
      (gone, some, rest, asked) => {
        const counts = new NameCounts()
        const without = new NameCounts()
        for (const names of [...gone, ...some, ...rest]) counts.add(names)
        for (const names of some) without.add(names)
        for (const names of gone) counts.remove(names)
        const others = counts.except(without)
        const isBelow = (one: string) => one === asked || [...namesAbove(one)].includes(asked)
        return (
          counts.has(asked) === [...some, ...rest].flat().includes(asked) &&
          counts.hasAtOrBelow(asked) === [...some, ...rest].flat().some(isBelow) &&
          others.has(asked) === rest.flat().includes(asked) &&
          others.hasAtOrBelow(asked) === rest.flat().some(isBelow)
        )
      },
    ),
  )
})
