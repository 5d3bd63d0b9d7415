import t from 'tap'
import { type ZombieLimits, Zombies } from '../../../src/egress/learned/zombies.ts'

const ENOUGH: ZombieLimits = { most: 1000, perName: 0, idleGraceMs: 0, keepMs: 1_000_000 }

function filled(
  entries: Readonly<Record<string, string>>,
  limits: Partial<ZombieLimits> = {},
): Zombies {
  const zombies = new Zombies({ ...ENOUGH, ...limits })
  for (const [address, names] of Object.entries(entries)) {
    for (const name of names.split(' ')) add(zombies, address, name, 1000)
  }
  return zombies
}

function add(zombies: Zombies, address: string, name: string, endMs: number): void {
  zombies.add({ address, name, endMs, ttlEndMs: endMs })
}

/** A complete dump that begins at a time, with open connections to these addresses. */
function dump(zombies: Zombies, startMs: number, ...open: readonly string[]): void {
  for (const address of open) zombies.markAlive(address, startMs)
  zombies.noteDump(startMs)
}

function aliveIn(zombies: Zombies): readonly string[] {
  return [...zombies.all()].map(({ address }) => address).sort()
}

function decision(zombies: Zombies): string {
  const { dead } = zombies.collect(0)
  return `${aliveIn(zombies).join(' ')} | ${[...dead].sort().join(' ')}`
}

t.test('an address dies after two dumps without it, and keeps its siblings alive', async (t) => {
  const zombies = filled({
    '1.1.1.1': 'test.com.',
    '1.1.1.2': 'test.com.',
    '3.3.3.3': 'pizza.com.',
  })
  t.equal(decision(zombies), '1.1.1.1 1.1.1.2 3.3.3.3 | ')
  dump(zombies, 2000)
  t.equal(decision(zombies), '1.1.1.1 1.1.1.2 3.3.3.3 | ', 'the first dump kills nothing')
  dump(zombies, 3000, '1.1.1.2')
  t.equal(decision(zombies), '1.1.1.1 1.1.1.2 | 3.3.3.3')
  dump(zombies, 4000)
  t.equal(decision(zombies), ' | 1.1.1.1 1.1.1.2')
  t.equal(zombies.size, 0)
})

t.test('adding it again revives an address', async (t) => {
  const zombies = filled({ '1.1.1.1': 'a.' })
  dump(zombies, 2000)
  add(zombies, '1.1.1.1', 'a.', 2500)
  dump(zombies, 3000)
  t.equal(decision(zombies), '1.1.1.1 | ')
  dump(zombies, 4000)
  t.equal(decision(zombies), ' | 1.1.1.1')
})

t.test('an address that has ended after the dump began is not judged by it', async (t) => {
  const zombies = filled({ '1.1.1.1': 'a.' })
  dump(zombies, 500)
  dump(zombies, 900)
  t.equal(decision(zombies), '1.1.1.1 | ')
  dump(zombies, 1001)
  t.equal(decision(zombies), ' | 1.1.1.1')
})

t.test('the grace for idle connections', async (t) => {
  const zombies = filled({ '1.1.1.1': 'a.' }, { idleGraceMs: 5000 })
  for (const startMs of [2000, 4000, 6000]) {
    dump(zombies, startMs)
    t.equal(decision(zombies), '1.1.1.1 | ')
  }
  dump(zombies, 6001)
  t.equal(decision(zombies), ' | 1.1.1.1')
})

t.test('limits', async (t) => {
  const one = filled(
    { '1.1.1.1': 'test.com.', '2.2.2.2': 'somethingelse. test.com.', '3.3.3.3': 'anothertest.' },
    { perName: 1 },
  )
  t.equal(decision(one), '2.2.2.2 3.3.3.3 | 1.1.1.1', 'per name: fewest names first')

  const marked = filled(
    { '1.1.1.1': 'a.', '1.1.1.2': 'a.', '1.1.1.3': 'a.', '1.1.1.4': 'a.' },
    { perName: 3 },
  )
  dump(marked, 2000, '1.1.1.1', '1.1.1.2', '1.1.1.3')
  t.equal(decision(marked), '1.1.1.1 1.1.1.2 1.1.1.3 | 1.1.1.4', 'idle for longest first')

  const timed = () => {
    const zombies = new Zombies({ ...ENOUGH, most: 2 })
    for (const i of [1, 2, 3]) add(zombies, `${i}.${i}.${i}.${i}`, `${i}.`, i * 1000)
    return zombies
  }
  t.equal(decision(timed()), '2.2.2.2 3.3.3.3 | 1.1.1.1', 'ended first')
  const connected = timed()
  dump(connected, 4000, '1.1.1.1', '2.2.2.2')
  t.equal(decision(connected), '1.1.1.1 2.2.2.2 | 3.3.3.3', 'idle, although it ended last')

  const none = filled({ '1.1.1.1': 'a.' }, { most: 0 })
  t.equal(decision(none), ' | 1.1.1.1')
})

t.test('addresses of a name that are forgotten', async (t) => {
  const zombies = filled({ '1.1.1.1': 'a. b.', '2.2.2.2': 'a.' })
  zombies.forget('a.', ['9.9.9.9'])
  zombies.forget('c.', ['1.1.1.1'])
  t.equal(zombies.size, 2)
  zombies.forget('a.', ['1.1.1.1'])
  t.strictSame(
    [...zombies.all()].map(({ names }) => names),
    [['b.'], ['a.']],
  )
  zombies.forget('b.', ['1.1.1.1'])
  t.equal(zombies.size, 1)

  const expired = filled({ '1.1.1.1': 'test. anothertest.' })
  expired.expire(1000, () => true)
  t.equal(expired.size, 1, 'not that old')
  expired.expire(1001, (name) => name === 'test.')
  t.strictSame([...expired.all()][0]!.names, ['anothertest.'])
})

t.test('after a restart nothing dies before two dumps', async (t) => {
  const before = filled({ '1.1.1.1': 'a. b.' })
  dump(before, 2000)
  const zombies = new Zombies(ENOUGH)
  zombies.restore(before.all())
  t.strictSame([...zombies.all()][0]!.names, ['a.', 'b.'])
  dump(zombies, 10_000)
  t.equal(decision(zombies), '1.1.1.1 | ')
  dump(zombies, 11_000)
  t.equal(decision(zombies), ' | 1.1.1.1')
})

t.test('an address that was not kept for a time is dead', async (t) => {
  const zombies = new Zombies({ ...ENOUGH, keepMs: 300_000 })
  for (const i of [1, 2]) add(zombies, `192.0.2.${i}`, 'a.', 1000 * i)
  t.equal(zombies.get('192.0.2.1')?.keptMs, 301_000)
  t.strictSame(zombies.collect(100_000).extended, [], 'it is kept for long enough')
  zombies.noteDump(151_000)
  t.strictSame(zombies.collect(151_500).extended, ['192.0.2.1'])
  t.equal(zombies.get('192.0.2.1')?.keptMs, 451_500)
  zombies.markAlive('192.0.2.2', 310_000)
  t.strictSame(zombies.collect(310_000).dead, ['192.0.2.2'], 'although a connection is open')
  t.equal(zombies.size, 1)
  t.equal(zombies.collect(12 * 3_600_000).dead.length, 1, 'a pause')
  t.equal(zombies.size, 0)

  const undumped = new Zombies({ ...ENOUGH, keepMs: 300_000 })
  add(undumped, '192.0.2.1', 'a.', 1000)
  undumped.noteDump(2000)
  t.strictSame(undumped.collect(200_000).extended, ['192.0.2.1'])
  t.strictSame(undumped.collect(400_000).extended, [], 'no dump for five minutes')
  t.equal(undumped.collect(500_001).dead.length, 1)

  const restored = new Zombies({ ...ENOUGH, keepMs: 300_000 })
  restored.restore([{ address: '192.0.2.1', names: ['a.'], aliveMs: 0, endMs: 1000, keptMs: 5000 }])
  t.equal(restored.get('192.0.2.1')?.keptMs, 5000)
  t.equal(restored.collect(5001).dead.length, 1)
})
