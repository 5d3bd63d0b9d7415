import t from 'tap'
import { nameKey } from '../../../src/dns/name/name.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import type { FoundAddresses } from '../../../src/publish/alias/outside-addresses.ts'
import { outsideOf, type Says, wireOf } from './stage.ts'

const NAME = wireOf('lb.example.')
const KEY = nameKey(NAME)
const print = ({ addresses, ttlSeconds, fault }: FoundAddresses): string => {
  const texts = addresses.map(({ bytes, family }) => printAddress(bytes, family))
  return [...texts, `ttl=${ttlSeconds}`, fault].join(' ').trim()
}

t.test('the TTL of an answer is rounded down, to at least 5 seconds', async (t) => {
  const cases: readonly [ttl: number, served: number][] = [
    [0, 5],
    [1, 5],
    [9, 5],
    [20, 20],
    [59, 45],
    [60, 60],
    [299, 180],
    [86_400, 3600],
  ]
  for (const [ttl, served] of cases) {
    const world = new Map<string, Says>([['lb.example', { ttl, addresses: ['192.0.2.1'] }]])
    const { outside, pass } = outsideOf(t, world)
    outside.want(NAME)
    await pass(200)
    t.equal(outside.of(KEY).ttlSeconds, served, `${ttl}`)
  }
})

t.test('addresses change when the TTL has ended, and are sorted', async (t) => {
  const world = new Map<string, Says>([
    ['lb.example', { ttl: 20, addresses: ['2001:db8::1', '192.0.2.20', '192.0.2.3'] }],
  ])
  const { outside, pass } = outsideOf(t, world)
  const changed: string[] = []
  outside.subscribe((keys) => changed.push(...keys))
  outside.want(NAME)
  await pass(200)
  t.equal(print(outside.of(KEY)), '192.0.2.3 192.0.2.20 2001:db8::1 ttl=20')
  world.set('lb.example', { ttl: 20, addresses: ['192.0.2.20', '192.0.2.3', '2001:db8::1'] })
  await pass(23_000)
  t.same(changed, [KEY], 'another order is no change')
  world.set('lb.example', { ttl: 20, addresses: ['192.0.2.4'] })
  await pass(23_000)
  t.equal(print(outside.of(KEY)), '192.0.2.4 2001:db8::1 ttl=20', 'IPv6 may be missing by chance')
  await pass(23_000)
  t.equal(print(outside.of(KEY)), '192.0.2.4 ttl=20')
})

t.test('addresses of a name are kept for a day while servers fail', async (t) => {
  for (const failure of ['SERVFAIL', undefined] as const) {
    const world = new Map<string, Says>([['lb.example', { ttl: 300, addresses: ['192.0.2.1'] }]])
    const { outside, pass } = outsideOf(t, world)
    outside.want(NAME)
    await pass(200)
    world.set('lb.example', failure)
    await pass(310_000, 1000)
    const why = `lb.example. cannot be resolved: ${failure ?? 'timed out'}`
    const kept = `192.0.2.1 ttl=30 ${why}; its last addresses are served for up to 24 hours`
    t.equal(print(outside.of(KEY)), kept)
    await pass(23 * 3_600_000, 3_600_000)
    t.equal(print(outside.of(KEY)), kept)
    await pass(2 * 3_600_000, 3_600_000)
    t.equal(print(outside.of(KEY)), `ttl=0 ${why}`)
    world.set('lb.example', { ttl: 300, addresses: ['192.0.2.2'] })
    await pass(130_000, 1000)
    t.equal(print(outside.of(KEY)), '192.0.2.2 ttl=300')
  }
})

t.test('the second reply without addresses removes them', async (t) => {
  for (const none of ['NXDOMAIN', { addresses: [] }] as const) {
    const world = new Map<string, Says>([['lb.example', { ttl: 10, addresses: ['192.0.2.1'] }]])
    const { outside, pass } = outsideOf(t, world)
    outside.want(NAME)
    await pass(200)
    world.set('lb.example', none)
    await pass(12_000)
    t.equal(print(outside.of(KEY)), '192.0.2.1 ttl=10')
    await pass(6000)
    const why = none === 'NXDOMAIN' ? none : 'no data'
    t.equal(print(outside.of(KEY)), `ttl=0 lb.example. has no addresses: ${why}`)
  }
})

t.test('names are settled once all were asked, or after 3 seconds', async (t) => {
  const world = new Map<string, Says>([['lb.example', { addresses: ['192.0.2.1'] }]])
  const { outside, pass } = outsideOf(t, world)
  let isSettled = false
  outside.want(NAME)
  t.equal(outside.unansweredCount, 1)
  void outside.settled().then(() => {
    isSettled = true
  })
  await pass(200)
  t.ok(isSettled)
  t.equal(outside.unansweredCount, 0)
  await outside.settled()
})

t.test(
  'a name that nothing wants is not asked any more; another instance knows what this one did',
  async (t) => {
    const world = new Map<string, Says>([['lb.example', { ttl: 10, addresses: ['192.0.2.1'] }]])
    const { outside, pass, asked } = outsideOf(t, world)
    const releases = [outside.want(NAME), outside.want(NAME)]
    await pass(200)
    const next = outsideOf(t, new Map(), [outside])
    next.outside.want(NAME)
    t.equal(print(next.outside.of(KEY)), '192.0.2.1 ttl=10')
    await next.outside.settled()
    const before = asked()
    releases[0]!()
    await pass(12_000)
    t.ok(asked() > before)
    releases[1]!()
    const after = asked()
    await pass(30_000)
    t.equal(asked(), after)
  },
)
