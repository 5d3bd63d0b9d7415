import fc from 'fast-check'
import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import type { AddressFact } from '../../../src/egress/names/facts.ts'
import { NAME_LIMITS_DEFAULT, NameStore } from '../../../src/egress/names/name-store.ts'
import type { Observation } from '../../../src/egress/names/observation.ts'

const wireOf = (name: string): Uint8Array => scanName(name)!

function fact(address: string, atMs: number, ttlSeconds: number): AddressFact {
  const endMs = atMs + ttlSeconds * 1000
  return { family: 1, address, ttlSeconds, chain: [], lastSeenMs: atMs, endMs }
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

function failure(name: string, atMs: number, family: 1 | 2 = 1): Observation {
  const asked = { name: wireOf(name), family, atMs, server: '' }
  return { ...asked, kind: 'failed', isReply: true, reason: 'NXDOMAIN' }
}

function addressesOf(store: NameStore, name: string): readonly string[] {
  return [...store.factsOf(name)].map(({ address }) => address).sort()
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
  const printed = (store: NameStore): string => {
    const names = ['a.example.', 'b.example.']
    const lines = names.flatMap((name) => {
      return [...store.factsOf(name)].map(
        (one) => name + JSON.stringify(Object.entries(one).sort()),
      )
    })
    return lines.sort().join('\n')
  }
  fc.assert(
    fc.property(
      fc.array(arbitraryAnswer, { maxLength: 8 }).chain((all) => {
        return fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))
      }),
      ([all, shuffled]) => {
        const one = new NameStore(NAME_LIMITS_DEFAULT)
        const other = new NameStore(NAME_LIMITS_DEFAULT)
        for (const item of all) one.observe(item)
        for (const item of [...shuffled, ...shuffled]) other.observe(item)
        return printed(one) === printed(other)
      },
    ),
  )
})

t.test('at each limit the address that ends first is evicted', async (t) => {
  const store = new NameStore({ addressesPerName: 3, addresses: 5 })
  store.observe(answer('a.example.', 0, 10, ['192.0.2.1', '192.0.2.2']))
  store.observe(answer('a.example.', 0, 5, ['192.0.2.3']))
  store.observe(answer('a.example.', 0, 20, ['192.0.2.4']))
  t.strictSame(addressesOf(store, 'a.example.'), ['192.0.2.1', '192.0.2.2', '192.0.2.4'])
  t.equal(store.evictions, 1)
  store.observe(answer('b.example.', 0, 7, ['192.0.2.1', '192.0.2.2', '192.0.2.3']))
  t.equal(store.addressCount, 5)
  t.strictSame(addressesOf(store, 'b.example.'), ['192.0.2.2', '192.0.2.3'], 'in total')
})

t.test('after a flood the store is within its limits', async (t) => {
  const store = new NameStore({ addressesPerName: 5, addresses: 30 })
  let seed = 1
  const next = (bound: number): number => (seed = (seed * 48271) % 2147483647) % bound
  for (let i = 0; i < 5000; i++) {
    const addresses = [1, 2, 3].map(() => `192.0.2.${next(250)}`)
    const name = `n${next(200)}.example.`
    store.observe(answer(name, i, next(100), [...new Set(addresses)]))
    if (store.addressCount > 30 || store.nameCount > 30) t.fail('above the total')
    if (addressesOf(store, name).length > 5) t.fail('above the limit of a name')
    if (store.hasName(name) !== addressesOf(store, name).length > 0) t.fail('an empty name')
  }
  store.retain(() => false)
  t.equal(store.nameCount + store.addressCount, 0)
})

t.test('a name that is not wanted any more is dropped', async (t) => {
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  store.observe(failure('a.example.', 0))
  t.notOk(store.hasName('a.example.'), 'a failure adds no name')
  for (const name of ['a.example.', 'b.example.']) store.observe(answer(name, 0, 60, ['192.0.2.1']))
  store.observe(answer('a.example.', 1000, 60, ['192.0.2.2']))
  t.strictSame(addressesOf(store, 'a.example.'), ['192.0.2.1', '192.0.2.2'], 'none is removed')
  t.ok(store.has('a.example.', '192.0.2.2'))
  t.notOk(store.has('b.example.', '192.0.2.2'))
  store.retain((wire) => wire[1] === 0x62)
  t.notOk(store.hasName('a.example.'))
  t.strictSame([store.nameCount, store.addressCount], [1, 1])
})

t.test('collect drops what no policy can grant any more', async (t) => {
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  const [a, b, c] = ['a.example.', 'b.example.', 'c.example.']
  store.observe(answer(a, 0, 10, ['192.0.2.1']))
  store.observe(answer(a, 0, 60, ['192.0.2.2']))
  store.observe(answer(b, 0, 10, ['192.0.2.3']))
  store.observe(failure(b, 30_000))
  store.observe(answer(c, 0, 10, ['192.0.2.4']))
  store.observe(failure(c, 5000))
  store.observe(answer(c, 6000, 4, ['192.0.2.4']))
  store.observe(failure(c, 30_000, 2))
  store.collect(15_000, 5000)
  t.equal(store.addressCount, 4, 'at the end of the grace')
  store.collect(15_001, 5000)
  t.strictSame(addressesOf(store, a), ['192.0.2.2'])
  t.strictSame(addressesOf(store, b), ['192.0.2.3'], 'it failed since')
  t.notOk(store.hasName(c), 'it answered since, and families fail on their own')
  store.collect(35_001, 5000)
  t.notOk(store.hasName(b))
  t.equal(store.nameCount, 1)
})
