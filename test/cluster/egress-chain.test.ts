import t, { type Test } from 'tap'
import { Rcode, RRType } from '../../src/dns/iana/index.ts'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { needs } from '../support/peer.ts'
import { until } from '../support/until.ts'
import { testKills } from './egress-chaos.ts'
import { addressesOf, EgressSite, HOST, type Resolver, SEEN_MS } from './egress-site.ts'
import { EgressWatch } from './egress-watch.ts'

const STEADY = 'steady.example.com.'
const BRIEF = 'brief.example.com.'
const BRIEF_TTL_SECONDS = 6
/** Lookups of BRIEF by the controller. */
const ROUNDS = 3
const MANY = '*.many.example.com.'
const LOOKUPS = 60
const ADDRESSES = ['192.0.2.1', '192.0.2.2', '2001:db8::1']
const TYPES = [RRType.A, RRType.AAAA]
const written = (result: string): string =>
  `sextant_egress_status_writes_total{resource="dnsnameresolvers",result="${result}"}`

t.setTimeout(CLUSTER_TEST_MS)

const SKIP = {
  ...needs('ovsdb-server', 'ovn-northd'),
  ...needsCluster(),
  ...(HOST === undefined ? { skip: 'this machine has only loopback addresses' } : {}),
}

t.test('from a DNS answer to an address set', SKIP, async (t) => {
  const site = await EgressSite.start(t)
  await t.test('server and controllers write one object', (t) => testTogether(t, site))
  await t.test('time from an answer to the address set', (t) => testTimes(t, site))
  await t.test('each part is killed', (t) => testKills(t, site))
  if (!t.passing()) t.comment(site.output)
})

/** Neither undoes what the other writes, and nothing is written while nothing changes. */
async function testTogether(t: Test, site: EgressSite): Promise<void> {
  const { zone } = site
  const set = (name: string, ttlSeconds: number): void => {
    zone.records.set(name, { ips: ADDRESSES, ttlSeconds, rcode: Rcode.NOERROR })
  }
  set(STEADY, 3600)
  set(BRIEF, BRIEF_TTL_SECONDS)
  const watch = new EgressWatch(site, [STEADY, BRIEF], () => 0)
  await site.putFirewall('a', ['steady.example.com', 'brief.example.com'])
  // No client asks: the controller is the first.
  const areListed = (list: readonly Resolver[] | undefined): boolean => {
    return list?.length === 2 && list.every((resolver) => addressesOf(resolver).size === 3)
  }
  const areSet = (): boolean =>
    [...watch.sets.values()].reduce((sum, set) => sum + set.size, 0) === 6
  await until(async () => areListed(await watch.list()) && areSet(), 'all addresses', SEEN_MS)
  const versionOf = async (dnsName: string): Promise<string> => {
    const list = (await watch.list()) ?? []
    return list.find((resolver) => resolver.dnsName === dnsName)?.version ?? ''
  }
  const counts = () =>
    Promise.all(['written', 'conflict', 'failed'].map((r) => site.serverMetric(written(r))))
  const before = {
    steady: await versionOf(STEADY),
    counts: await counts(),
    asked: zone.count(BRIEF),
  }
  const lookups = 'sextant_dnsnameresolver_lookups_total{result="answer"}'
  const lookupsBefore = (await site.operatorMetric(lookups)) ?? 0
  let isComplete = true
  await until(
    async () => {
      // When the TTL of BRIEF ends, its name is looked up by a client and by the controller in turns.
      const names = zone.count(BRIEF) % 2 === 0 ? [STEADY, BRIEF] : [STEADY]
      for (const name of names) for (const type of TYPES) await site.query(name, type)
      isComplete &&= areListed(await watch.list()) && areSet()
      return (await site.operatorMetric(lookups))! >= lookupsBefore + 2 * ROUNDS
    },
    'more lookups',
    SEEN_MS,
  )
  const asked = zone.count(BRIEF) - before.asked
  t.ok(isComplete, 'no address is lost')
  t.strictSame(watch.violations, [])
  t.equal(await versionOf(STEADY), before.steady, 'no write without a new answer')
  const [writes = 0, conflicts = 0, failed = 0] = (await counts()).map(
    (count, i) => count - before.counts[i]!,
  )
  // One for A and one for AAAA. The writes for the first answer may come late.
  t.ok(writes >= ROUNDS - 1 && writes <= 2 * (asked + 1), `${writes} writes, ${asked} lookups`)
  t.strictSame([conflicts, failed], [0, 0], 'conflicts and failures')
  const removed = 'sextant_dnsnameresolver_removed_total{what="addresses"}'
  t.equal(await site.operatorMetric(removed), 0)
  t.comment(`${writes} writes of a status in ${asked} lookups of both families`)
  await end(site, watch)
}

async function testTimes(t: Test, site: EgressSite): Promise<void> {
  const watch = new EgressWatch(site, [MANY], () => 0)
  const lookUp = (label: string, ip: string) => {
    const name = MANY.replace('*', label)
    site.zone.records.set(name, { ips: [ip], ttlSeconds: 300, rcode: Rcode.NOERROR })
    return site.query(name)
  }
  await site.putFirewall('a', ['*.many.example.com'])
  for (let i = 0; !watch.seenMs.has('198.51.100.0'); i++) {
    await until(async () => (await watch.list())?.length === 1, 'the object', SEEN_MS)
    // Until the server knows the object, its cache must not have the name.
    await lookUp(`first${i}`, '198.51.100.0')
  }
  const replies: number[] = []
  const sets: number[] = []
  for (let i = 1; i <= LOOKUPS; i++) {
    const ip = `198.51.100.${i}`
    const startMs = performance.now()
    await lookUp(`n${i}`, ip)
    replies.push(performance.now() - startMs)
    await until(() => watch.seenMs.has(ip), `${ip} in the set`, SEEN_MS)
    sets.push(watch.seenMs.get(ip)! - startMs)
    const [resolver] = (await watch.list()) ?? []
    t.ok(resolver !== undefined && addressesOf(resolver).has(ip), `${ip} in the status`)
  }
  t.comment(`query to reply, which waits for the status: ${quantiles(replies)}`)
  t.comment(`query to address set: ${quantiles(sets)}`)
  t.strictSame(watch.violations, [])
  await end(site, watch)
}

/** Deletes the firewall, and waits until nothing is left of it. */
async function end(site: EgressSite, watch: EgressWatch): Promise<void> {
  await site.putFirewall('a', [])
  const isEmpty = async () => (await site.resolvers())?.length === 0 && watch.sets.size === 0
  await until(isEmpty, 'the end of the objects and sets', SEEN_MS)
  watch.close()
}

function quantiles(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b)
  const print = (share: number): string => sorted[Math.floor(sorted.length * share)]!.toFixed(1)
  return `median ${print(0.5)} ms, 95 % ${print(0.95)} ms, most ${print(0.999)} ms`
}
