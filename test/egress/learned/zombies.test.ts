import t from 'tap'
import { LearnedTable, ttlRule } from '../../../src/egress/learned/learned-table.ts'
import type { Zombie, ZombieLimits } from '../../../src/egress/learned/zombies.ts'

const ENOUGH: ZombieLimits = { most: 1000, perName: 0, idleGraceMs: 0, keepMs: 1_000_000 }

function tableWith(limits: Partial<ZombieLimits> = {}): LearnedTable {
  const zombies = { ...ENOUGH, ...limits }
  return new LearnedTable({ endOf: ttlRule(0), addressesPerName: 0, zombies })
}

function filled(
  entries: Readonly<Record<string, string>>,
  limits: Partial<ZombieLimits> = {},
): LearnedTable {
  const zombies = tableWith(limits)
  for (const [address, names] of Object.entries(entries)) {
    for (const name of names.split(' ')) add(zombies, address, name, 1000)
  }
  return zombies
}

function add(zombies: LearnedTable, address: string, name: string, endMs: number): void {
  zombies.retire({ address, name, endMs, ttlEndMs: endMs })
}

/** A complete dump that begins at a time, with open connections to these addresses. */
function dump(zombies: LearnedTable, startMs: number, ...open: readonly string[]): void {
  for (const address of open) zombies.markAlive(address, startMs)
  zombies.noteDump(startMs)
}

function aliveIn(zombies: LearnedTable): readonly string[] {
  return [...zombies.zombies()].map(({ address }) => address).sort()
}

/** The names of each zombie. */
function namesIn(zombies: LearnedTable): readonly string[] {
  return [...zombies.zombies()].map(({ names }) => [...names].join(' '))
}

function zombieAt(zombies: LearnedTable, address: string): Zombie | undefined {
  return [...zombies.zombies()].find((zombie) => zombie.address === address)
}

function decision(zombies: LearnedTable): string {
  const { dead } = zombies.collectZombies(0)
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
  t.equal(zombies.zombieCount, 0)
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
    const zombies = tableWith({ most: 2 })
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

t.test('addresses that a new answer has, or that are forgotten', async (t) => {
  const zombies = filled({ '1.1.1.1': 'a. b.', '2.2.2.2': 'a.' })
  const learn = (name: string, ...addresses: readonly string[]) => {
    return zombies.add({ name, addresses, lookupMs: 1000, ttlSeconds: 1 })
  }
  learn('a.', '9.9.9.9')
  learn('c.', '1.1.1.1')
  t.equal(zombies.zombieCount, 2)
  t.strictSame(learn('a.', '1.1.1.1').added, ['1.1.1.1'])
  t.strictSame(namesIn(zombies), ['b.', 'a.'])
  const earlier = { address: '1.1.1.1', aliveMs: 0, endMs: 1000, keptMs: 5000 }
  zombies.putZombie({ ...earlier, names: new Set(['a.']) })
  t.strictSame(namesIn(zombies), ['b.', 'a.'], 'it is valid')
  const at = [...zombies.namesAt('1.1.1.1')].map(({ name, isZombie }) => `${name} ${isZombie}`)
  t.strictSame(at, ['c. false', 'a. false', 'b. true'])
  learn('b.', '1.1.1.1')
  t.equal(zombies.zombieCount, 1)

  const forgotten = filled({ '1.1.1.1': 'test. anothertest.' })
  t.strictSame([...forgotten.forget((name) => name === 'a.')], [])
  t.strictSame([...forgotten.forget((name) => name === 'test.')], ['1.1.1.1'])
  t.strictSame(namesIn(forgotten), ['anothertest.'])
  t.strictSame([...forgotten.forget(() => true)], ['1.1.1.1'])
  t.equal(forgotten.zombieCount, 0)
})

// While a change of the rules had taken the name away, its client learned it again. Then the name moved between
// tables, and its zombie was lost when its new answer was dropped at a limit.
t.test('an answer that moves from another table leaves the zombie', async (t) => {
  const zombies = filled({ '1.1.1.1': 'a.' })
  const answer = { name: 'a.', addresses: ['1.1.1.1'], lookupMs: 2000, ttlSeconds: 1, endMs: 3000 }
  t.strictSame(zombies.put(answer).added, ['1.1.1.1'])
  t.equal(zombies.take('a.').length, 1)
  t.strictSame(namesIn(zombies), ['a.'])
})

t.test('after a restart nothing dies before two dumps', async (t) => {
  const before = filled({ '1.1.1.1': 'a. b.' })
  dump(before, 2000)
  const zombies = tableWith()
  for (const zombie of before.zombies()) zombies.putZombie(zombie)
  t.strictSame(namesIn(zombies), ['a. b.'])
  dump(zombies, 10_000)
  t.equal(decision(zombies), '1.1.1.1 | ')
  dump(zombies, 11_000)
  t.equal(decision(zombies), ' | 1.1.1.1')
})

t.test('an address that was not kept for a time is dead', async (t) => {
  const zombies = tableWith({ keepMs: 300_000 })
  for (const i of [1, 2]) add(zombies, `192.0.2.${i}`, 'a.', 1000 * i)
  t.equal(zombieAt(zombies, '192.0.2.1')?.keptMs, 301_000)
  t.strictSame(zombies.collectZombies(100_000).extended, [], 'it is kept for long enough')
  zombies.noteDump(151_000)
  t.strictSame(zombies.collectZombies(151_500).extended, ['192.0.2.1'])
  t.equal(zombieAt(zombies, '192.0.2.1')?.keptMs, 451_500)
  zombies.markAlive('192.0.2.2', 310_000)
  t.strictSame(zombies.collectZombies(310_000).dead, ['192.0.2.2'], 'although a connection is open')
  t.equal(zombies.zombieCount, 1)
  t.equal(zombies.collectZombies(12 * 3_600_000).dead.length, 1, 'a pause')
  t.equal(zombies.zombieCount, 0)

  const undumped = tableWith({ keepMs: 300_000 })
  add(undumped, '192.0.2.1', 'a.', 1000)
  undumped.noteDump(2000)
  t.strictSame(undumped.collectZombies(200_000).extended, ['192.0.2.1'])
  t.strictSame(undumped.collectZombies(400_000).extended, [], 'no dump for five minutes')
  t.equal(undumped.collectZombies(500_001).dead.length, 1)

  const restored = tableWith({ keepMs: 300_000 })
  const names = new Set(['a.'])
  restored.putZombie({ address: '192.0.2.1', names, aliveMs: 0, endMs: 1000, keptMs: 5000 })
  t.equal(zombieAt(restored, '192.0.2.1')?.keptMs, 5000)
  t.equal(restored.collectZombies(5001).dead.length, 1)
})
