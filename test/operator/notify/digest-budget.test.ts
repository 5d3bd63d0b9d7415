import t from 'tap'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { DigestBudget } from '../../../src/operator/notify/digest-budget.ts'
import { FakeClock } from '../../support/setup.ts'

function setUp(seed = 1) {
  const clock = new FakeClock()
  const budget = new DigestBudget(clock, seed)
  const take = (host: string): boolean => {
    const { bytes, family } = scanAddress(host)!
    return budget.take({ peerAddress: bytes, peerFamily: family }, host)
  }
  /** How many of so many are let through. */
  const flood = (count: number, hostOf: (i: number) => string): number =>
    Array.from({ length: count }, (_, i) => take(hostOf(i))).filter(Boolean).length
  return { clock, budget, take, flood }
}

const NETWORKS = [
  { name: 'an address', hostOf: () => '203.0.113.9' },
  { name: 'a network of IPv4', hostOf: (i: number) => `203.0.113.${i % 256}` },
  { name: 'a network of IPv6', hostOf: (i: number) => `2001:db8:1:${(i % 9999) + 1}::1` },
]
for (const { name, hostOf } of NETWORKS) {
  t.test(`${name} has a share of its own, of which more comes with time`, async (t) => {
    const { clock, flood } = setUp()
    t.equal(flood(1000, hostOf), 20)
    clock.pass(500)
    t.equal(flood(1000, hostOf), 10)
    clock.pass(60_000)
    t.equal(flood(1000, hostOf), 20)
  })
}

t.test('all networks together have a limit', async (t) => {
  const { clock, flood } = setUp()
  const anywhere = (i: number): string => `${(i >> 8) & 255}.${i & 255}.1.1`
  t.equal(flood(60_000, anywhere), 200)
  clock.pass(1000)
  t.equal(flood(60_000, anywhere), 200)
})

t.test('which networks share a share can not be known', async (t) => {
  const sharing = (seed: number): string => {
    const { flood, take } = setUp(seed)
    flood(1000, () => '203.0.113.9')
    return Array.from({ length: 150 }, (_, i) => (take(`192.0.${i}.1`) ? '1' : '0')).join('')
  }
  t.ok(new Set(Array.from({ length: 20 }, (_, seed) => sharing(seed))).size > 1)
})

t.test(
  'a sender with a valid signature before has a share of its own beside unknown senders',
  async (t) => {
    const { budget, flood } = setUp()
    budget.noteGood('198.51.100.1')
    flood(60_000, (i) => `${(i >> 8) & 255}.${i & 255}.1.1`)
    t.equal(
      flood(100, () => '198.51.100.1'),
      20,
    )
    budget.noteGood('198.51.100.1')
    t.equal(
      flood(100, () => '198.51.100.1'),
      0,
      'being good again fills nothing',
    )
  },
)

t.test(
  'a bounded number of senders is stored, those with the latest valid signatures',
  async (t) => {
    const { budget, flood } = setUp()
    for (let i = 1; i <= 64; i++) budget.noteGood(`198.51.100.${i}`)
    budget.noteGood('198.51.100.1')
    budget.noteGood('198.51.100.65')
    flood(60_000, (i) => `${(i >> 8) & 255}.${i & 255}.1.1`)
    const known = Array.from({ length: 65 }, (_, i) => `198.51.100.${i + 1}`).filter(
      (host) => flood(1, () => host) === 1,
    )
    t.equal(known.length, 64)
    t.notOk(known.includes('198.51.100.2'))
  },
)
