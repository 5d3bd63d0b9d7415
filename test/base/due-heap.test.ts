import fc from 'fast-check'
import t from 'tap'
import { DueHeap } from '../../src/base/due-heap.ts'

t.test('a heap returns what a sorted list would', async (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('put'), key: fc.nat(9), ms: fc.nat(20) }),
    fc.record({ kind: fc.constant('remove'), key: fc.nat(9), ms: fc.constant(0) }),
    fc.record({ kind: fc.constant('take'), key: fc.constant(0), ms: fc.nat(20) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const heap = new DueHeap<number>()
      const model = new Map<number, number>()
      for (const { kind, key, ms } of steps) {
        if (kind === 'put') {
          heap.put(key, ms)
          model.set(key, ms)
        } else if (kind === 'remove') {
          if (heap.remove(key) !== model.delete(key)) return false
        } else {
          const firstMs = Math.min(...model.values())
          const taken = heap.take(ms)
          if ((taken !== undefined) !== firstMs <= ms) return false
          if (taken !== undefined && model.get(taken) !== firstMs) return false
          if (taken !== undefined) model.delete(taken)
        }
        if (heap.size !== model.size || heap.firstMs !== Math.min(...model.values())) return false
        if ([...heap.keys()].some((held) => !model.has(held))) return false
      }
      return true
    }),
  )
  t.equal(new DueHeap().first(), undefined)
})
