import fc from 'fast-check'
import t from 'tap'
import { NameTree } from '../../../src/operator/cluster/name-tree.ts'

const name = fc
  .array(fc.constantFrom('a', 'b', '*'), { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join('.'))

t.test('the names below a name are those that were added and not removed', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.boolean())), fc.array(name), (steps, asked) => {
      const tree = new NameTree()
      const all = new Set<string>()
      for (const [one, isAdded] of steps) {
        if (isAdded) all.add(one)
        else all.delete(one)
        if (isAdded) tree.add(one)
        else tree.remove(one)
      }
      for (const one of asked) {
        const below = [...all].filter((other) => other.endsWith(`.${one}`)).sort()
        t.strictSame([...tree.below(one)].sort(), below)
        t.equal(tree.hasBelow(one), below.length > 0)
      }
    }),
  )
})

t.test('names that are not below a name are not read', async (t) => {
  const tree = new NameTree()
  for (let i = 0; i < 1000; i++) tree.add(`h${i}.example`)
  tree.add('x.shop.example')
  const { has } = Set.prototype
  let reads = 0
  Set.prototype.has = function (value) {
    reads++
    return has.call(this, value)
  }
  t.teardown(() => {
    Set.prototype.has = has
  })
  const below = [...tree.below('shop.example')]
  Set.prototype.has = has
  t.same(below, ['x.shop.example'])
  t.ok(reads < 5, `${reads} reads`)
})
