import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { LearnedTable, ttlRule } from '../../../src/egress/learned/learned-table.ts'

const START_MS = 1_000_000
const NO_LIMITS = { endOf: ttlRule(0), addressesPerName: 0 }
const at = (seconds: number) => START_MS + seconds * 1000

function answer(name: string, addresses: readonly string[], ttlSeconds: number, lookup = 0) {
  return { name, addresses, ttlSeconds, lookupMs: at(lookup) }
}

/** The addresses of a name that are valid at a time, sorted. */
function addressesOf(cache: LearnedTable, name: string, nowMs: number): readonly string[] {
  const valid = [...cache.endsOf(name)].filter(([, endMs]) => endMs >= nowMs)
  return valid.map(([address]) => address).sort()
}

/** The names that have the address at a time, sorted. */
function namesOf(cache: LearnedTable, address: string, nowMs: number): readonly string[] {
  const valid = [...cache.namesAt(address)].filter(({ endMs }) => endMs >= nowMs)
  return valid.map(({ name }) => name).sort()
}

/** Both directions, and the number of pairs. They must agree. */
function contents(cache: LearnedTable, nowMs: number): string {
  const names = [...new Set([...cache.answers()].map(({ name }) => name))].sort()
  const lines = names.map((name) => `${name} ${addressesOf(cache, name, nowMs).join(' ')}`)
  for (const { name, addresses } of cache.answers()) {
    for (const address of addresses) {
      const isHere = addressesOf(cache, name, nowMs).includes(address)
      if (isHere !== namesOf(cache, address, nowMs).includes(name)) lines.push(`${address} differs`)
    }
  }
  return lines.join('\n')
}

t.test('of several answers with an address, the one that ends last counts', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  for (const i of [1, 2, 3, 4]) {
    cache.add(answer('test.com.', [`1.1.1.${i}`, `2.2.2.${i}`], i))
    cache.add(answer('test.com.', [`1.1.1.${i}`], Math.floor(i / 2)))
  }
  for (const k of [1, 2, 3, 4]) {
    const left = [1, 2, 3, 4].filter((i) => i >= k)
    const want = [...left.map((i) => `1.1.1.${i}`), ...left.map((i) => `2.2.2.${i}`)]
    t.strictSame(addressesOf(cache, 'test.com.', at(k)), want, `after ${k} s`)
  }
  t.strictSame(addressesOf(cache, 'test.com.', at(4) + 1), [])
})

t.test('what a change reports', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  const first = cache.add(answer('a.', ['192.0.2.1', '192.0.2.2'], 5))
  t.strictSame(first, { added: ['192.0.2.1', '192.0.2.2'], extended: [] })
  const same = cache.add(answer('a.', ['192.0.2.1'], 5))
  t.strictSame(same, { added: [], extended: [] }, 'strictly later')
  const later = cache.add(answer('a.', ['192.0.2.1', '192.0.2.3'], 5, 1))
  t.strictSame(later, { added: ['192.0.2.3'], extended: ['192.0.2.1'] })
})

t.test('names of an address', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  cache.add(answer('test1.', ['1.1.1.1', '2.2.2.1'], 2))
  cache.add(answer('test2.', ['1.1.1.1', '2.2.2.2'], 4))
  t.strictSame(namesOf(cache, '1.1.1.1', at(1)), ['test1.', 'test2.'])
  t.strictSame(namesOf(cache, '1.1.1.1', at(3)), ['test2.'])
  t.strictSame(namesOf(cache, '1.1.1.1', at(5)), [])
  t.equal(cache.endOf('test1.', '2.2.2.1'), at(2))
  t.equal(cache.endOf('test1.', '9.9.9.9'), undefined)
})

t.test('names that are forgotten', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  for (const i of [1, 2, 3]) cache.add(answer(`test${i}.com.`, ['1.1.1.1', `2.2.2.${i}`], 5))
  t.strictSame([...cache.forget((name) => name === 'notatest.com.')], [])
  const addresses = cache.forget((name) => name === 'test1.com.')
  t.strictSame([...addresses], ['1.1.1.1', '2.2.2.1'])
  t.strictSame(addressesOf(cache, 'test2.com.', at(1)), ['1.1.1.1', '2.2.2.2'])
  t.strictSame([...cache.forget(() => true)], ['1.1.1.1', '2.2.2.2', '2.2.2.3'])
  t.strictSame([cache.nameCount, cache.size, [...cache.answers()]], [0, 0, []])
})

t.test('the minimum TTL', async (t) => {
  const table = [
    { min: 60, ttl: 3, there: 3, gone: 70 },
    { min: 60, ttl: 0, there: 60, gone: 61 },
    { min: 0, ttl: 10, there: 10, gone: 11 },
    { min: 60, ttl: 90, there: 90, gone: 91 },
  ]
  for (const { min, ttl, there, gone } of table) {
    const cache = new LearnedTable({ endOf: ttlRule(min), addressesPerName: 0 })
    cache.add(answer('a.', ['192.0.2.1'], ttl))
    t.equal(addressesOf(cache, 'a.', at(there)).length, 1, `${min} ${ttl}`)
    t.equal(addressesOf(cache, 'a.', at(gone)).length, 0, `${min} ${ttl}`)
  }
})

t.test('the answers that are left', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  for (const i of [1, 2, 3]) cache.add(answer(`${i}.`, ['8.8.8.8', `10.0.0.${i}`], 5))
  t.strictSame([cache.nameCount, cache.size], [3, 6])
  t.equal([...cache.answers()].length, 3)
  cache.add(answer('1.', ['8.8.8.8'], 9))
  const left = [...cache.answers()].filter(({ name }) => name === '1.')
  t.strictSame(left.map(({ addresses }) => addresses).sort(), [['10.0.0.1'], ['8.8.8.8']])
})

t.test('answers that share an address', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  for (const i of [1, 2, 3]) {
    cache.add(answer(`${i}.`, ['8.8.8.8'], 5))
    cache.add(answer(`${i}.`, [`10.0.0.${i}`], 6))
  }
  t.equal([...cache.answers()].length, 6)
  t.strictSame([...cache.addresses()].sort(), ['10.0.0.1', '10.0.0.2', '10.0.0.3', '8.8.8.8'])
  t.strictSame([...cache.names()].sort(), ['1.', '2.', '3.'])
  const found = [...cache.namesAt('8.8.8.8')].map(({ name, endMs }) => `${name} ${endMs}`)
  t.strictSame(
    found,
    ['1.', '2.', '3.'].map((name) => `${name} ${at(5)}`),
  )
})

t.test('single addresses that are removed', async (t) => {
  const cache = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 1 })
  for (const i of [3, 1, 2]) cache.add(answer(`${i}.`, ['8.8.8.8'], i))
  t.equal(cache.evictName('8.8.8.8', 3, at(0)), undefined)
  t.match(cache.evictName('8.8.8.8', 2, at(0)), { name: '1.', ttlEndMs: at(1) })
  t.equal(cache.evictName('1.1.1.1', 0, at(0)), undefined)
  t.match(cache.evict(at(0)), { name: '2.', address: '8.8.8.8' })
  cache.add(answer('3.', ['1.1.1.1'], 1))
  t.match(cache.evict(at(0)), { name: '3.', address: '1.1.1.1' })
  cache.evict(at(0))
  t.equal(cache.evict(at(0)), undefined)
  t.strictSame(cache.collect(at(0)), [], 'a name that was over its limit, and is gone')
})

t.test('a collection removes what has ended', async (t) => {
  const cache = new LearnedTable(NO_LIMITS)
  cache.add(answer('test.com.', ['1.1.1.1', '2.2.2.2'], 3))
  cache.add(answer('test.com.', ['3.3.3.3'], 5))
  t.strictSame(cache.collect(at(3)), [], 'valid at its end')
  const first = cache.collect(at(4)).map(({ address, endMs }) => [address, endMs])
  t.strictSame(first, [
    ['1.1.1.1', at(4)],
    ['2.2.2.2', at(4)],
  ])
  t.equal(contents(cache, at(4)), 'test.com. 3.3.3.3')
  t.strictSame(
    cache.collect(at(8)).map(({ address }) => address),
    ['3.3.3.3'],
  )
  t.strictSame([cache.nameCount, cache.size, cache.collect(at(9))], [0, 0, []])
})

t.test('a collection removes what ends first above the limit', async (t) => {
  const cache = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 5 })
  cache.add(answer('foo.bar.', ['1.1.1.1'], 9))
  for (const i of [1, 2, 3, 4, 5, 6]) cache.add(answer('test.com.', [`1.1.1.${i}`], i))
  t.equal(addressesOf(cache, 'test.com.', at(0)).length, 6, 'no insert is refused')
  t.strictSame(cache.collect(at(0)), [
    { name: 'test.com.', address: '1.1.1.1', endMs: at(1), ttlEndMs: at(1) },
  ])
  t.strictSame(namesOf(cache, '1.1.1.1', at(0)), ['foo.bar.'])
  t.equal(addressesOf(cache, 'test.com.', at(0)).length, 5)

  const ended = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 5 })
  for (const i of [1, 2, 3, 4, 5, 6]) ended.add(answer('a.', [`1.1.1.${i}`], i))
  t.equal(ended.collect(at(3)).length, 2, 'what has ended counts first')

  const unlimited = new LearnedTable(NO_LIMITS)
  for (let i = 0; i < 200; i++) unlimited.add(answer('a.', [`10.0.0.${i}`], 1))
  t.strictSame(unlimited.collect(at(0)), [])
})

t.test('the limits of answers and zombies', async (t) => {
  const zombies = { most: 10, perName: 5, idleGraceMs: 0, keepMs: 300_000 }
  const cache = new LearnedTable({ endOf: ttlRule(100), addressesPerName: 5, zombies })
  for (let i = 1; i <= 20; i++) cache.add(answer('a.', [`192.0.2.${i}`], 0, i - 20))
  for (const removal of cache.collect(at(0))) cache.retire(removal)
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => `192.0.2.${from + i}`).sort()
  t.strictSame(addressesOf(cache, 'a.', at(0)), range(16, 20))
  const { dead, evictions } = cache.collectZombies(at(0))
  t.strictSame([...cache.zombies()].map(({ address }) => address).sort(), range(11, 15))
  t.strictSame([...dead].sort(), range(1, 10))
  t.equal(evictions, 10)
})

t.test('the order of answers, and of caches that are merged, does not matter', async (t) => {
  const random = new Random(4)
  for (let round = 0; round < 200; round++) {
    const answers = Array.from({ length: 12 }, () => {
      const addresses = [1, 2, 3].filter(() => random.below(5) < 3).map((i) => `10.0.0.${i}`)
      return answer(`${random.below(3)}.`, addresses, random.below(9), random.below(9))
    })
    const fill = (list: typeof answers) => {
      const cache = new LearnedTable(NO_LIMITS)
      for (const one of list) cache.add(one)
      return cache
    }
    const shuffled = [...answers].sort(() => random.below(3) - 1)
    const merged = fill(shuffled.slice(0, 5))
    for (const one of fill(shuffled.slice(3)).answers()) merged.put(one)
    for (const one of [...merged.answers()]) merged.put(one)
    for (let second = 0; second < 18; second += 3) {
      const want = contents(fill(answers), at(second))
      t.equal(contents(fill(shuffled), at(second)), want)
      t.equal(contents(merged, at(second)), want)
    }
  }
})

const anyAnswer = fc.record({
  name: fc.constantFrom('a.example.', 'b.example.'),
  lookupMs: fc.nat(5).map((n) => n * 1000),
  ttlSeconds: fc.nat(6),
  addresses: fc
    .uniqueArray(fc.nat(5), { minLength: 1, maxLength: 4 })
    .map((all) => all.map((n) => `192.0.2.${n}`)),
})

t.test('the order of answers does not matter', async () => {
  const printed = (table: LearnedTable): string => {
    const lines = ['a.example.', 'b.example.'].flatMap((name) => {
      return [...table.endsOf(name)].map((end) => `${name} ${end.join(' ')}`)
    })
    return lines.sort().join('\n')
  }
  fc.assert(
    fc.property(
      fc.array(anyAnswer, { maxLength: 8 }).chain((all) => {
        return fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))
      }),
      fc.constantFrom(ttlRule(0), ttlRule(3), expiry(4000)),
      ([all, shuffled], endOf) => {
        const one = new LearnedTable({ ...NO_LIMITS, endOf })
        const other = new LearnedTable({ ...NO_LIMITS, endOf })
        for (const item of all) one.add(item)
        for (const item of [...shuffled, ...shuffled]) other.add(item)
        return printed(one) === printed(other)
      },
    ),
  )
})

/** A rule of policies that grant an address for a fixed time. */
function expiry(ms: number) {
  return ({ lookupMs }: { readonly lookupMs: number }) => lookupMs + ms
}

t.test('at each limit the address that ends first is evicted', async (t) => {
  const table = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 3 })
  table.add(answer('a.', ['192.0.2.1', '192.0.2.2'], 10))
  table.add(answer('a.', ['192.0.2.3'], 5))
  table.add(answer('a.', ['192.0.2.4'], 20))
  t.equal(table.collect(at(0)).length, 1)
  t.strictSame(addressesOf(table, 'a.', at(0)), ['192.0.2.1', '192.0.2.2', '192.0.2.4'])
  table.add(answer('b.', ['192.0.2.1', '192.0.2.2', '192.0.2.3'], 7))
  table.evict(at(0))
  t.equal(table.size, 5)
  t.equal([...table.endsOf('b.')].length, 2, 'in total')
})

t.test('after a flood the store is within its limits', async (t) => {
  const table = new LearnedTable({ endOf: ttlRule(0), addressesPerName: 5 })
  const random = new Random(1)
  for (let i = 0; i < 5000; i++) {
    const addresses = new Set([1, 2, 3].map(() => `192.0.2.${random.below(250)}`))
    const name = `n${random.below(200)}.`
    const lookupMs = at(0) + i
    table.add({ name, addresses: [...addresses], lookupMs, ttlSeconds: random.below(100) })
    table.collect(lookupMs)
    while (table.size > 30) table.evict(lookupMs)
    if (table.nameCount > 30) t.fail('above the total')
    const { length } = [...table.endsOf(name)]
    if (length > 5) t.fail('above the limit of a name')
    if (table.hasName(name) !== length > 0) t.fail('an empty name')
  }
  for (const name of [...table.names()]) table.take(name)
  t.equal(table.nameCount + table.addressCount + table.size, 0)
})

t.test('a name that is not wanted any more is dropped', async (t) => {
  const table = new LearnedTable(NO_LIMITS)
  for (const name of ['a.', 'b.']) table.add(answer(name, ['192.0.2.1'], 60))
  table.add(answer('a.', ['192.0.2.2'], 60, 1))
  t.strictSame(addressesOf(table, 'a.', at(0)), ['192.0.2.1', '192.0.2.2'], 'none is removed')
  t.equal(table.take('a.').length, 2)
  t.notOk(table.hasName('a.'))
  t.equal(table.endOf('a.', '192.0.2.1'), undefined)
  t.strictSame([table.nameCount, table.size], [1, 1])
})

t.test('collect drops what no policy can grant any more', async (t) => {
  const table = new LearnedTable({ endOf: expiry(15_000), addressesPerName: 0 })
  table.add(answer('a.', ['192.0.2.1'], 10))
  table.add(answer('a.', ['192.0.2.2'], 0, 5))
  table.add(answer('b.', ['192.0.2.3'], 60))
  t.strictSame(table.collect(at(15)), [], 'at the end of the grant')
  table.collect(at(15) + 1)
  t.strictSame([...table.endsOf('a.')], [['192.0.2.2', at(20)]], 'whatever its TTL')
  t.notOk(table.hasName('b.'))
  t.equal(table.nameCount, 1)
})
