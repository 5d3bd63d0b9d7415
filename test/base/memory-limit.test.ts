import { totalmem } from 'node:os'
import t from 'tap'
import { describeMemory, memoryLimit } from '../../src/base/memory-limit.ts'

const MIB = 2 ** 20

t.test('the memory of the container counts, where there is a limit', (t) => {
  const real = process.constrainedMemory
  t.teardown(() => {
    process.constrainedMemory = real
  })
  const machine = totalmem()
  // Beyond all memory: what cgroup version 1 says without a limit.
  const table = [
    { given: 0, want: machine, place: 'machine' },
    { given: 2 ** 63, want: machine, place: 'machine' },
    { given: 300 * MIB, want: 300 * MIB, place: 'container' },
  ]
  for (const { given, want, place } of table) {
    process.constrainedMemory = () => given
    t.equal(memoryLimit(), want, `${given}`)
    const text = `at most ${Math.round(want / MIB)} MiB of this ${place}, of them `
    t.ok(describeMemory().startsWith(text), describeMemory())
    t.match(describeMemory(), /of them [1-9]\d* MiB of heap$/)
  }
  t.end()
})
