import t from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { needs, needsRoot } from '../../../support/peer.ts'
import { until } from '../../../support/until.ts'
import { allowed, CLOSED, client, OPEN_NETWORK, Place, TABLE } from './place.ts'

// Own process: it makes namespaces of the kernel.
const isPossible = { ...needsRoot(), ...needs('nft') }
const pair = (number: number, address: number) => ({
  client: `10.1.0.${number}`,
  address: `192.0.2.${address}`,
})

t.test('what is allowed is in force when the wait ends', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer, faults } = place.enforcer(t)
  t.equal(await enforcer.allow(pair(1, 1), allowed()), '10.1.0.1 is not a client')
  t.equal(await enforcer.setClients([client(1), client(2, OPEN_NETWORK)]), '')
  t.strictSame(await place.clients(), ['10.1.0.1', '10.1.0.2', 'fd01::1', 'fd01::2'])
  t.equal(await enforcer.allow(pair(1, 1), allowed('tcp 443', 'udp 5-9')), '')
  t.equal(await enforcer.allow({ client: 'fd01::2', address: '2001:db8::1' }, allowed()), '')
  t.strictSame(await place.elements(), [
    '10.1.0.1 . 192.0.2.1 . tcp . 443',
    '10.1.0.1 . 192.0.2.1 . udp . 5-9',
    'fd01::2 . 2001:db8::1',
  ])
  const before = enforcer.counts.transactions
  t.equal(enforcer.allow(pair(1, 1), allowed('tcp 443', 'udp 5-9')), undefined, 'it is in force')
  t.equal(await enforcer.setClients([client(1), client(2, OPEN_NETWORK)]), '')
  t.equal(enforcer.counts.transactions, before, 'nothing has changed')
  t.equal(await enforcer.allow(pair(1, 1), allowed('tcp 80')), '')
  t.strictSame(
    await place.elements(),
    ['10.1.0.1 . 192.0.2.1 . tcp . 80', 'fd01::2 . 2001:db8::1'],
    'it replaces what the pair had',
  )
  t.equal(await enforcer.allow(pair(1, 1), []), '')
  t.equal(enforcer.allow(pair(1, 1), []), undefined)
  t.strictSame(await place.elements(), ['fd01::2 . 2001:db8::1'])
  t.equal(
    await enforcer.allow({ client: '10.1.0.1', address: 'x' }, allowed()),
    'invalid pair of addresses',
  )
  t.equal(
    await enforcer.allow({ client: '10.1.0.1', address: '::1' }, allowed()),
    'invalid pair of addresses',
  )
  t.strictSame(faults, [])
})

t.test('timeouts follow the ends', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer, timers } = place.enforcer(t)
  void enforcer.setClients([client(1)])
  const nowMs = systemClock.monotonic()
  const until = (seconds: number) => [{ ports: undefined, endMs: nowMs + seconds * 1000 }]
  const seconds = async () => {
    const listing = await place.nft('list', 'set', 'inet', TABLE, 'any4')
    const [, minutes = '0', left = '0'] = /expires (?:(\d+)m)?(\d+)s/.exec(listing) ?? []
    return Number(minutes) * 60 + Number(left)
  }
  await enforcer.allow(pair(1, 1), until(50))
  t.ok((await seconds()) > 40)
  t.equal(enforcer.allow(pair(1, 1), until(500)), undefined, 'a refresh need not be waited for')
  await enforcer.allow(pair(1, 3), allowed('tcp 1'))
  t.ok((await seconds()) < 60, 'replies do not wait for refreshes of others')
  await timers.advance(1000)
  await enforcer.allow(pair(1, 4), allowed('tcp 1'))
  t.ok((await seconds()) > 400, 'later')
  enforcer.allow(pair(1, 1), until(100))
  await timers.advance(1000)
  await enforcer.allow(pair(1, 5), allowed('tcp 1'))
  const left = await seconds()
  t.ok(left > 50 && left < 110, 'earlier')
  enforcer.allow(pair(1, 1), until(-1))
  await enforcer.allow(pair(1, 6), allowed('tcp 1'))
  t.equal(await seconds(), 0, 'removed')
  await enforcer.allow(pair(1, 1), until(Number.POSITIVE_INFINITY))
  t.match(await place.nft('list', 'set', 'inet', TABLE, 'any4'), /timeout 30d/)
})

t.test('an equal timeout begins again', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer, timers } = place.enforcer(t)
  void enforcer.setClients([client(1)])
  const left = async () => {
    const listing = await place.nft('list', 'set', 'inet', TABLE, 'any4')
    const [, seconds = '0'] = /expires (\d+)s/.exec(listing) ?? []
    return Number(seconds)
  }
  const allow = () => {
    const endMs = systemClock.monotonic() + 10_000
    return enforcer.allow(pair(1, 1), [{ ports: undefined, endMs }])
  }
  await allow()
  await until(async () => (await left()) < 9, 'time has passed')
  void allow()
  await timers.advance(1000)
  await enforcer.allow(pair(1, 2), allowed('tcp 1'))
  t.ok((await left()) >= 10)
})

t.test('a change of a client removes what it was allowed', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer } = place.enforcer(t)
  await enforcer.setClients([client(1), client(2), client(3)])
  for (const number of [1, 2, 3]) await enforcer.allow(pair(number, 1), allowed())
  t.equal(await enforcer.setClients([client(1, CLOSED, 2), client(2, OPEN_NETWORK)]), '')
  t.strictSame(await place.elements(), ['10.1.0.2 . 192.0.2.1'], 'another uid, other rules, gone')
  t.equal(await enforcer.allow(pair(3, 1), allowed()), '10.1.0.3 is not a client')
  const chains = await place.nft('list', 'chains', 'inet')
  t.equal(await enforcer.setClients([]), '')
  t.match(chains, /chain profile_/)
  t.notMatch(await place.nft('list', 'chains', 'inet'), /chain profile_/)
  t.strictSame(await place.clients(), [])
  t.equal(enforcer.size, 0)
})

t.test('full sets', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer } = place.enforcer(t, 3)
  await enforcer.setClients([client(1)])
  for (const address of [1, 2, 3]) t.equal(await enforcer.allow(pair(1, address), allowed()), '')
  t.equal(await enforcer.allow(pair(1, 4), allowed()), 'the sets are full')
  t.equal(await enforcer.allow(pair(1, 4), allowed('tcp 80')), 'the sets are full', 'any of them')
  t.equal(enforcer.refused, 2)
  await enforcer.allow(pair(1, 1), [])
  t.equal(await enforcer.allow(pair(1, 4), allowed()), '')
  t.equal((await place.elements()).length, 3)
})

t.test('what others remove is written again', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer, repairs } = place.enforcer(t)
  const clients = [client(1), client(2, OPEN_NETWORK)]
  await enforcer.setClients(clients)
  await enforcer.allow(pair(1, 1), allowed('tcp 80-90'))
  await enforcer.allow(pair(2, 1), allowed())
  const before = await place.nft('-s', 'list', 'table', 'inet', TABLE)
  const isRepaired = async () => {
    await enforcer.setClients(clients)
    const listing = await place.nft('-s', 'list', 'table', 'inet', TABLE)
    const plain = (text: string) => text.replace(/ timeout \S+| packets \d+ bytes \d+/g, '')
    return plain(listing) === plain(before)
  }
  await enforcer.glance()
  await enforcer.check()
  t.strictSame(repairs, [], 'nothing to repair')
  const table: [string, 'glance' | 'check', string, string[]][] = [
    ['everything', 'glance', 'the table', ['flush', 'ruleset']],
    ['the table', 'check', 'the table', ['delete', 'table', 'inet', TABLE]],
    ['clients of the map', 'glance', 'the clients', ['flush', 'map', 'inet', TABLE, 'profiles4']],
    ['clients of the set', 'glance', 'the clients', ['flush', 'set', 'inet', TABLE, 'clients6']],
    ['rules', 'check', 'rules of chain client', ['flush', 'chain', 'inet', TABLE, 'client']],
    [
      'the rules of all chains',
      'check',
      'rules of chain forward',
      ['flush', 'table', 'inet', TABLE],
    ],
    ['the cluster', 'check', 'set cluster4', ['flush', 'set', 'inet', TABLE, 'cluster4']],
    ['elements', 'check', '1 elements', ['flush', 'set', 'inet', TABLE, 'range4']],
    [
      'an element that never ends',
      'check',
      '1 elements',
      ['add', 'element', 'inet', TABLE, 'any4', '{ 10.1.0.1 . 192.0.2.77 }'],
    ],
    [
      'an element of no client',
      'check',
      '1 elements',
      ['add', 'element', 'inet', TABLE, 'any4', '{ 10.1.0.77 . 192.0.2.77 timeout 1m }'],
    ],
  ]
  for (const [what, how, want, command] of table) {
    t.equal(await place.nft(...command), '', what)
    await enforcer[how]()
    t.strictSame(repairs.splice(0), [want], what)
    await until(isRepaired, `the repair of ${what}`)
  }
  t.equal(enforcer.counts.repaired, table.length)
  t.equal(enforcer.counts.missedChecks, 0)
})

t.test('timers start the repairs', isPossible, async (t) => {
  const place = await Place.create(t)
  const { enforcer, timers, repairs } = place.enforcer(t)
  await enforcer.setClients([client(1)])
  await place.nft('flush', 'ruleset')
  await timers.advance(10_000)
  await until(() => repairs.length > 0, 'a look')
  await enforcer.setClients([client(1)])
  await until(async () => (await place.clients()).length === 2, 'the clients')
  await place.nft('flush', 'chain', 'inet', TABLE, 'client')
  await timers.advance(60_000)
  await until(() => repairs.length > 1, 'a comparison')
  t.strictSame(repairs, ['the table', 'rules of chain client'])
})

t.test('the table of another program or version', isPossible, async (t) => {
  const place = await Place.create(t)
  for (const old of [
    `add table inet ${TABLE}; add chain inet ${TABLE} other; add set inet ${TABLE} any4 { type ipv4_addr; }`,
    `add table inet ${TABLE}; add chain inet ${TABLE} forward { type nat hook prerouting priority 0; };
     add chain inet ${TABLE} form_1; add set inet ${TABLE} clients4 { type ipv4_addr; flags interval; }`,
  ]) {
    await place.nft('flush', 'ruleset')
    t.equal(await place.nft(old), '')
    const { enforcer, timers, faults } = place.enforcer(t)
    if ((await enforcer.setClients([client(1)])) !== '') {
      // The form is known, but the sets differ.
      const retried = enforcer.setClients([client(1)])
      await timers.advance(100)
      t.equal(await retried, '')
    }
    t.equal(await enforcer.allow(pair(1, 1), allowed()), '')
    t.strictSame(await place.elements(), ['10.1.0.1 . 192.0.2.1'])
    t.notMatch(await place.nft('list', 'chains', 'inet'), /chain other/)
    t.equal(faults.at(-1) ?? '', '')
    await enforcer.close()
  }
})
