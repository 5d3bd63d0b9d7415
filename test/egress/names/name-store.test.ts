import fc from 'fast-check'
import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import type { AddressFact, NameFacts } from '../../../src/egress/names/facts.ts'
import { NAME_LIMITS_DEFAULT, NameStore } from '../../../src/egress/names/name-store.ts'
import type { Observation } from '../../../src/egress/names/observation.ts'

const wireOf = (name: string): Uint8Array => scanName(name)!

function fact(address: string, atMs: number, ttlSeconds: number, server = ''): AddressFact {
  const endMs = atMs + ttlSeconds * 1000
  const seen = { firstSeenMs: atMs, lastSeenMs: atMs, endMs, chainEndMs: endMs }
  return { family: 1, address, ttlSeconds, chainTtlSeconds: ttlSeconds, server, chain: [], ...seen }
}

function answer(name: string, atMs: number, ttlSeconds: number, addresses: readonly string[]) {
  const observation: Observation = {
    name: wireOf(name),
    family: 1,
    atMs,
    server: '',
    kind: 'answer',
    facts: addresses.map((address) => fact(address, atMs, ttlSeconds)),
  }
  return observation
}

function failure(name: string, atMs: number): Observation {
  const asked = { name: wireOf(name), family: 1 as const, atMs, server: '' }
  return { ...asked, kind: 'failed', isReply: true, reason: 'NXDOMAIN' }
}

function printed(facts: Iterable<NameFacts>): readonly string[] {
  return [...facts]
    .map(({ name, addresses, outcomes }) => {
      const list = [...addresses.values()].map((item) =>
        JSON.stringify(Object.entries(item).sort()),
      )
      return `${name} ${list.sort().join(' ')} ${JSON.stringify(outcomes)}`
    })
    .sort()
}

function addressesOf(store: NameStore, name: string): readonly string[] {
  return [...(store.get(name)?.addresses.keys() ?? [])].sort()
}

const arbitraryAnswer = fc
  .record({
    name: fc.constantFrom('a.example.', 'b.example.'),
    atMs: fc.nat(5).map((n) => n * 1000),
    ttl: fc.nat(6),
    last: fc.uniqueArray(fc.nat(5), { minLength: 1, maxLength: 4 }),
  })
  .map(({ name, atMs, ttl, last }) =>
    answer(
      name,
      atMs,
      ttl,
      last.map((n) => `192.0.2.${n}`),
    ),
  )

t.test('the order of answers does not matter', async () => {
  fc.assert(
    fc.property(
      fc.array(arbitraryAnswer, { maxLength: 8 }).chain((all) => {
        return fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))
      }),
      ([all, shuffled]) => {
        const [one, other] = [
          new NameStore(NAME_LIMITS_DEFAULT),
          new NameStore(NAME_LIMITS_DEFAULT),
        ]
        for (const item of all) one.observe(item, ['s'])
        for (const item of [...shuffled, ...shuffled]) other.observe(item, ['s'])
        return printed(one.all()).join('\n') === printed(other.all()).join('\n')
      },
    ),
  )
})

t.test('stores that learn apart and merge know the same, also at the limit per name', async () => {
  const limits = { ...NAME_LIMITS_DEFAULT, addressesPerName: 3 }
  const answers = fc.array(arbitraryAnswer, { maxLength: 6 })
  fc.assert(
    fc.property(answers, answers, (left, right) => {
      const whole = new NameStore(limits)
      for (const item of [...left, ...right]) whole.observe(item, ['s'])
      const [one, other] = [new NameStore(limits), new NameStore(limits)]
      for (const item of left) one.observe(item, ['s'])
      for (const item of right) other.observe(item, ['s'])
      const merged = new NameStore(limits)
      for (const store of [other, one, other]) {
        for (const facts of store.all()) merged.merge(facts, wireOf(facts.name))
      }
      const names = ['a.example.', 'b.example.']
      return names.every((name) => {
        return addressesOf(whole, name).join() === addressesOf(merged, name).join()
      })
    }),
  )
})

t.test('at each limit the address or name that ends first is evicted', async (t) => {
  const limits = { addressesPerName: 3, namesPerWildcard: 2, addresses: 5 }
  const store = new NameStore(limits)
  store.observe(answer('a.example.', 0, 10, ['192.0.2.1', '192.0.2.2']), ['*'])
  store.observe(answer('a.example.', 0, 5, ['192.0.2.3']), ['*'])
  store.observe(answer('a.example.', 0, 20, ['192.0.2.4']), ['*'])
  t.strictSame(addressesOf(store, 'a.example.'), ['192.0.2.1', '192.0.2.2', '192.0.2.4'])
  t.equal(store.evictions, 1)
  store.observe(answer('b.example.', 0, 7, ['192.0.2.1', '192.0.2.2', '192.0.2.3']), ['*'])
  t.equal(store.addressCount, 5)
  t.strictSame(addressesOf(store, 'b.example.'), ['192.0.2.2', '192.0.2.3'], 'in total')
  store.takeChanged()
  store.observe(answer('c.example.', 0, 15, ['192.0.2.1']), ['*', 'c'])
  t.equal(store.get('b.example.'), undefined, 'per wildcard')
  t.strictSame([...store.takeChanged()].sort(), ['*', 'c'])
  store.observe(answer('d.example.', 0, 1, ['192.0.2.1']), ['*', 'd'])
  t.strictSame(
    [...store.namesOf('*')].map(({ name }) => name),
    ['a.example.', 'c.example.'],
    'the new name may be the one that ends first',
  )
  t.ok(store.get('d.example.'), 'another selector holds it')
  t.strictSame(
    [...store.namesOf('d')].map(({ name }) => name),
    ['d.example.'],
  )
})

t.test('after a flood the store is within its limits', async (t) => {
  const limits = { addressesPerName: 5, namesPerWildcard: 10, addresses: 30 }
  const store = new NameStore(limits)
  let seed = 1
  const next = (bound: number): number => (seed = (seed * 48271) % 2147483647) % bound
  for (let i = 0; i < 5000; i++) {
    const addresses = [1, 2, 3].map(() => `192.0.2.${next(250)}`)
    const holders = [`w${next(3)}`, `w${next(5)}`]
    store.observe(answer(`n${next(200)}.example.`, i, next(100), [...new Set(addresses)]), holders)
    if (store.addressCount > 30 || store.nameCount > 30) t.fail('above the total')
    const facts = [...store.all()]
    if (facts.some(({ addresses }) => addresses.size > 5 || addresses.size === 0)) {
      t.fail('above the limit of a name, or empty')
    }
    for (const holder of ['w0', 'w1', 'w2', 'w3', 'w4']) {
      if ([...store.namesOf(holder)].length > 10) t.fail('above the limit of a wildcard')
    }
  }
  store.rehold(() => [])
  t.equal(store.nameCount + store.addressCount, 0)
})

t.test('failures count for names with addresses only, and end with an answer', async (t) => {
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  store.observe(failure('a.example.', 0), ['s'])
  t.equal(store.get('a.example.'), undefined)
  store.observe(answer('a.example.', 1000, 60, ['192.0.2.1']), ['s'])
  store.observe(failure('a.example.', 2000), ['s'])
  store.observe(failure('a.example.', 3000), ['s'])
  store.observe({ ...failure('a.example.', 3500), kind: 'nodata' } as Observation, ['s'])
  t.equal(store.get('a.example.')?.outcomes[1].failures?.count, 2)
  t.equal(store.get('a.example.')?.outcomes[2].failures, undefined, 'families fail on their own')
  store.observe(answer('a.example.', 4000, 60, ['192.0.2.2']), ['s'])
  t.equal(store.get('a.example.')?.outcomes[1].failures, undefined)
  t.equal(store.get('a.example.')?.addresses.size, 2, 'an absent address is not removed')
})

t.test('a name that no selector selects is not stored', async (t) => {
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  store.observe(answer('a.example.', 0, 60, ['192.0.2.1']), [])
  t.equal(store.nameCount, 0)
  store.observe(answer('b.example.', 0, 60, ['192.0.2.1']), ['s'])
  store.takeChanged()
  store.rehold((wire) => (wire[1] === 0x62 ? ['t'] : []))
  t.strictSame([...store.takeChanged()].sort(), ['s', 't'])
  t.equal([...store.namesOf('t')].length, 1)
  t.equal([...store.namesOf('s')].length, 0)
  store.rehold(() => [])
  t.equal(store.nameCount, 0)
})

t.test('a new wildcard over all names stays within its limit', async (t) => {
  const store = new NameStore({ ...NAME_LIMITS_DEFAULT, namesPerWildcard: 2 })
  for (const i of [3, 1, 2, 5, 4]) {
    store.observe(answer(`n${i}.example.`, 0, i, ['192.0.2.1']), [`n${i}`])
  }
  store.rehold(() => ['*'])
  t.strictSame([...store.namesOf('*')].map(({ name }) => name).sort(), [
    'n4.example.',
    'n5.example.',
  ])
  t.equal(store.nameCount, 2)
  t.equal(store.addressCount, 2)
})

t.test('collect drops what no reader can use any more', async (t) => {
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  store.observe(answer('a.example.', 0, 10, ['192.0.2.1']), ['s'])
  store.observe(answer('a.example.', 0, 60, ['192.0.2.2']), ['s'])
  store.observe(answer('b.example.', 0, 10, ['192.0.2.3']), ['s'])
  store.observe(failure('b.example.', 30_000), ['s'])
  store.collect(15_000, 5000)
  t.equal(store.addressCount, 3, 'at the end of the grace')
  store.collect(15_001, 5000)
  t.strictSame(addressesOf(store, 'a.example.'), ['192.0.2.2'])
  t.strictSame(addressesOf(store, 'b.example.'), ['192.0.2.3'], 'it failed since')
  store.collect(35_001, 5000)
  t.equal(store.get('b.example.'), undefined)
  t.equal(store.nameCount, 1)
})
