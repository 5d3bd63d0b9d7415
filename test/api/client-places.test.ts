import fc from 'fast-check'
import t from 'tap'
import { type ClientPlace, ClientPlaces, clientOf } from '../../src/api/client-places.ts'

const PLACES = 256
const PLACES_PER_CLIENT = 16
const REGULARS = 32
const REGULAR_MS = 5 * 60_000
const RATE_PER_CLIENT = 32
const RATE = 128
const RATE_FIRST = 32
const RATE_NETWORKS = 1024
const FIRST_OF_NETWORK = 8

const address = (n: number): string => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`

/** Connections of `ClientPlaces`, by address. */
class Crowd {
  readonly places = new ClientPlaces()
  readonly open = new Map<ClientPlace, string>()

  /** A second passes with each, unless they are to come fast. */
  nowMs = 0
  join(from: string): ClientPlace {
    this.nowMs += 1000
    const place = this.places.admit(from, this.nowMs, () => this.open.delete(place))!
    this.open.set(place, from)
    return place
  }

  count(from: string): number {
    return [...this.open.values()].filter((other) => other === from).length
  }
}

t.test('a client has so many connections, of which the newest stay', async (t) => {
  const crowd = new Crowd()
  const places = Array.from({ length: PLACES_PER_CLIENT + 3 }, () => crowd.join(address(1)))
  t.same([...crowd.open.keys()], places.slice(3))
  t.equal(crowd.count(address(1)), PLACES_PER_CLIENT)
})

t.test('a new client is accepted, and the one with most connections loses one', async (t) => {
  const crowd = new Crowd()
  for (let n = 0; crowd.open.size < PLACES - PLACES_PER_CLIENT; n++) crowd.join(address(n))
  for (let i = 0; i < PLACES_PER_CLIENT; i++) crowd.join('192.0.2.1')
  t.equal(crowd.open.size, PLACES)
  crowd.join('192.0.2.2')
  t.same([crowd.count('192.0.2.1'), crowd.count('192.0.2.2')], [PLACES_PER_CLIENT - 1, 1])
  t.equal(crowd.open.size, PLACES)
})

t.test('places of loopback and of regular clients are out of reach of others', async (t) => {
  const crowd = new Crowd()
  crowd.places.noteServed(crowd.join('192.0.2.1'), 0)
  const kept = ['192.0.2.1', '127.0.0.1', '::1'].map((from) => crowd.join(from))
  for (let n = 0; n < 10_000; n++) crowd.join(address(n))
  for (const place of kept) t.ok(crowd.open.has(place), place.client)
  crowd.join('192.0.2.1')
  t.equal(crowd.count('192.0.2.1'), 3, 'and there are places for more of theirs')
  t.ok(crowd.open.size <= PLACES + 5)
})

t.test('later clients are not regular until one of the first stays away', async (t) => {
  const crowd = new Crowd()
  for (let n = 0; n < REGULARS; n++) crowd.places.noteServed(crowd.join(address(n)), 1000)
  const late = crowd.join('192.0.2.1')
  crowd.places.noteServed(late, 1000 + REGULAR_MS)
  t.equal(crowd.places.isRegular(late.client), false)
  for (let n = 1; n < REGULARS; n++) crowd.places.noteServed(crowd.join(address(n)), 2000)
  crowd.places.noteServed(late, 1001 + REGULAR_MS)
  t.equal(crowd.places.isRegular(late.client), true)
  t.equal(crowd.places.isRegular(address(0)), false, 'the one that stayed away')
  t.equal(crowd.places.isRegular(address(1)), true)
})

t.test(
  'connections that come too fast are refused, regular clients and loopback apart',
  async (t) => {
    const places = new ClientPlaces()
    const admitted = (from: (n: number) => string, nowMs: number): number => {
      let count = 0
      for (let n = 0; n < 2 * RATE_NETWORKS; n++)
        if (places.admit(from(n), nowMs, () => {})) count++
      return count
    }
    places.noteServed(places.admit('192.0.2.1', 0, () => {})!, 0)
    const inOneNetwork = (n: number): string => `192.0.3.${n & 255}`
    t.equal(admitted(inOneNetwork, 5000), RATE + RATE_FIRST)
    t.equal(
      admitted(() => '192.0.2.1', 5000),
      RATE_PER_CLIENT,
      'a regular one has a rate of its own',
    )
    t.equal(
      admitted(() => '127.0.0.1', 5000),
      2 * RATE_NETWORKS,
    )
    t.equal(
      admitted(() => '192.0.2.2', 5999),
      FIRST_OF_NETWORK,
      'the first of a network',
    )
    t.equal(
      admitted(() => '192.0.2.2', 5999),
      0,
    )
    const inOwnNetwork = (n: number): string => `10.${n >> 8}.${n & 255}.1`
    const rest = RATE_NETWORKS - FIRST_OF_NETWORK
    t.equal(admitted(inOwnNetwork, 5999), rest, 'as many networks as have room')
    const inOneSite = (n: number): string => `2001:db8:1:${n.toString(16)}::1`
    t.equal(admitted(inOneSite, 5999), 0)
    t.equal(admitted(inOneSite, 7000), RATE + RATE_FIRST, 'IPv6: a /48 is one network')
    t.ok(places.admit('2001:db8:2::1', 7000, () => {}))
    t.equal(
      admitted(() => '192.0.2.2', 8000),
      RATE_PER_CLIENT,
      'a second later',
    )
  },
)

t.test('a flood from many networks leaves room for a client of another one', async (t) => {
  const places = new ClientPlaces()
  let served = 0
  for (let second = 1; second <= 10; second++) {
    for (let i = 0; i < 4000; i++) {
      const nowMs = 1000 * second + i / 5
      places.admit(`10.0.${i % 300}.1`, nowMs, () => {})
      const asks = i === 3000 && places.admit('192.0.2.1', nowMs, () => {}) !== undefined
      if (asks) served++
    }
  }
  t.equal(served, 9, 'each time but in the first second')
})

t.test('the node is served during a flood that came before it', async (t) => {
  const node = '10.244.1.1'
  const places = new ClientPlaces(new Set([node, 'fd00:10:244:1::1']))
  const admit = (from: string, nowMs: number) => places.admit(from, nowMs, () => {})
  for (let n = 0; n < REGULARS; n++) places.noteServed(admit(address(n), n)!, n)
  for (let second = 5; second < 10; second++) {
    for (let n = 0; n < 2 * RATE_NETWORKS; n++) {
      admit(`10.${n >> 8}.${n & 255}.1`, second * 1000)
      // Other pods of the node have addresses of its IPv6 /64.
      admit(`fd00:10:244:1::${(n + 2).toString(16)}`, second * 1000)
    }
    for (const from of [node, `::ffff:${node}`, 'fd00:10:244:1::1']) {
      const place = admit(from, second * 1000)!
      t.equal(place.isReserved, true, from)
      places.noteServed(place, second * 1000)
    }
    t.equal(admit('192.0.2.1', second * 1000), undefined, 'a client that is not known')
  }
})

t.test('a host counts as one client', async (t) => {
  const table = [
    { given: '192.0.2.1', want: '192.0.2.1' },
    { given: '::ffff:192.0.2.1', want: '192.0.2.1' },
    { given: '::1', want: '::1' },
    { given: '2001:db8:1:2:3:4:5:6', want: '2001:db8:1:2::/64' },
    { given: '2001:db8:1:2::6', want: '2001:db8:1:2::/64' },
    { given: '2001:db8::6', want: '2001:db8:0:0::/64' },
    { given: '2001:db8::1:2:3:4:5', want: '2001:db8:0:1::/64' },
    { given: 'fe80::1%eth0', want: 'fe80:0:0:0::/64' },
    { given: '', want: '' },
  ]
  for (const { given, want } of table) t.equal(clientOf(given), want, given)
})

t.test('whatever comes and goes, limits hold and nothing leaks', async () => {
  const step = fc.record({
    from: fc.nat(400),
    kind: fc.constantFrom('join', 'join', 'leave', 'serve'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 2000 }), (steps) => {
      const crowd = new Crowd()
      for (const [now, { from, kind }] of steps.entries()) {
        const own = [...crowd.open].find(([, other]) => other === address(from))?.[0]
        if (kind === 'join') crowd.join(address(from))
        else if (own !== undefined && kind === 'serve') crowd.places.noteServed(own, now)
        else if (own !== undefined) {
          crowd.places.leave(own)
          crowd.places.leave(own)
          crowd.open.delete(own)
        }
        const shared = [...crowd.open.keys()].filter((place) => !place.isReserved).length
        if (shared > PLACES || crowd.count(address(from)) > PLACES_PER_CLIENT) return false
      }
      for (const place of [...crowd.open.keys()]) crowd.places.leave(place)
      crowd.open.clear()
      // All places are free again.
      for (let n = 0; n < PLACES; n++) crowd.join(`192.0.${n >> 8}.${n & 255}`)
      return crowd.open.size === PLACES
    }),
    { numRuns: 30 },
  )
})
