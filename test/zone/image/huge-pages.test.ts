import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { Arena } from '../../../src/zone/image/arena.ts'

const MIB = 2 ** 20

/** A file that is read without a change of the arena. */
function* readNothing(): Generator<void, boolean> {
  yield
  return true
}

/** Octets of this process for which huge pages were asked for, whether it uses them yet or not. */
function advisedOctets(): number {
  let octets = 0
  for (const mapping of readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[\da-f]+-)/m)) {
    const [start, end] = mapping.slice(0, mapping.indexOf(' ')).split('-')
    const hasFlag = /^VmFlags:.* hg\b/m.test(mapping)
    if (hasFlag) octets += Number.parseInt(end!, 16) - Number.parseInt(start!, 16)
  }
  return octets
}

const hasHugePages = existsSync('/sys/kernel/mm/transparent_hugepage')

t.test('only a large arena asks for huge pages, once for all that it can grow to', (t) => {
  const before = hasHugePages ? advisedOctets() : 0
  const added = () => (hasHugePages ? advisedOctets() - before : 0)
  const arena = new Arena(MIB, 64 * MIB)
  arena.allocate(MIB)
  t.equal(added(), 0)
  arena.allocate(2 * MIB)
  t.equal(added(), hasHugePages ? 64 * MIB : 0)
  arena.allocate(4 * MIB)
  t.equal(added(), hasHugePages ? 64 * MIB : 0)
  const octets = 16 * MIB
  t.ok(runWhole(Arena.restore(octets, readNothing)))
  t.ok(added() >= (hasHugePages ? 64 * MIB + octets : 0))
  t.end()
})
