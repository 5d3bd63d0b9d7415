import fc from 'fast-check'
import t from 'tap'
import type { PeerEndpoint, SiteState } from '../../src/peering/peer-endpoint.ts'
import { findSiteClocks, undateStates } from '../../src/peering/site-clocks.ts'
import { type RecordRank, sortRecords } from '../../src/records/record-order.ts'
import { endpoint } from '../support/peer-text.ts'

const NOW_SECONDS = 1_790_000_000
/** Monotonic. */
const NOW_MS = 500_000_000
const DAY_MS = 24 * 3_600_000

interface Site {
  readonly name: string
  /** By how much its clock is wrong, which dates its records. */
  readonly errorSeconds: number
  /** By how much the clocks of further nameservers of it are wrong. */
  readonly moreErrors?: readonly number[]
  /** Ages of its records of the host. */
  readonly ages: readonly number[]
}

const error = fc.constantFrom(0, 0, 0, 1, 8, 16, -3600, 3600, 400_000_000)
const site = fc.record({
  name: fc.constantFrom('berlin', 'dublin', 'lima', 'osaka', 'rome'),
  errorSeconds: error,
  moreErrors: fc.array(error, { maxLength: 2 }),
  ages: fc.array(fc.nat(2000), { maxLength: 3 }),
})
const world = fc.uniqueArray(site, { minLength: 2, maxLength: 5, selector: ({ name }) => name })

function recordsOf({ name, errorSeconds, ages }: Site): PeerEndpoint[] {
  return ages.map((age, i) => {
    const createdSeconds = NOW_SECONDS + errorSeconds - age
    return endpoint({ site: name, createdSeconds, recordId: `0000000${i}` })
  })
}

/** All nameservers of a site. */
function clocksOf({ errorSeconds, moreErrors = [] }: Site): readonly number[] {
  return [errorSeconds, ...moreErrors]
}

interface Scene {
  /** By how much the clock of the nameserver is wrong. */
  readonly ours?: number
  /** By how much the clocks of peers are wrong that have the name of its site and are not its nameservers. */
  readonly namesakes?: readonly number[]
  /** How long nameservers, as `SITE INDEX`, are silent; missing = they are heard. */
  readonly silentMs?: ReadonlyMap<string, number>
}

/** The records of the host in the order that counts at a nameserver of a site. */
function orderAt(
  at: Site,
  sites: readonly Site[],
  { ours = at.errorSeconds, namesakes = [], silentMs = new Map() }: Scene = {},
): readonly string[] {
  const others = sites.filter((one) => one !== at)
  const strangers = namesakes.map((error, i) => {
    const address = `namesake ${i}`
    return { address, ownSite: at.name, clockAheadMs: (error - ours) * 1000, lastSeenMs: NOW_MS }
  })
  const nameservers = sites.flatMap((one) => {
    return clocksOf(one).map((error, i) => {
      const address = `${one.name} ${i}`
      const about = { address, ownSite: one.name, clockAheadMs: (error - ours) * 1000 }
      return { ...about, lastSeenMs: NOW_MS - (silentMs.get(address) ?? 0) }
    })
  })
  const states = others.map((one): SiteState => {
    const about = { exporter: one.name, isOwn: true, seenMs: 0, generation: 'v2' } as const
    return { site: one.name, rootHost: 'app.k.example.com', endpoints: recordsOf(one), ...about }
  })
  const own = recordsOf(at)
  const clocks = findSiteClocks([...nameservers, ...strangers])
  const addresses = new Set(strangers.map(({ address }) => address))
  const rules = { namesakes: addresses, nowMs: NOW_MS, silentMs: DAY_MS }
  const foreign = undateStates(states, own, clocks, rules).flatMap((one) => one.endpoints)
  const ranks = [...own, ...foreign].map((one): RecordRank => {
    const { site: of, createdSeconds = 0, recordId: id, isUndated } = one
    return { key: `${of}/${id}`, createdSeconds, site: of, id, isUndated }
  })
  return sortRecords(ranks).map(({ key }) => key)
}

t.test('all nameservers order the records of a host alike, whatever their clocks', async (t) => {
  const property = fc.property(world, (sites) => {
    const orders = sites.flatMap((one) => {
      return clocksOf(one).map((ours) => orderAt(one, sites, { ours }).join())
    })
    return new Set(orders).size === 1
  })
  fc.assert(property, { numRuns: 1000 })
  t.pass()
})

t.test('a wrong clock changes nothing in the order of sites', async (t) => {
  const property = fc.property(world, fc.constantFrom(-7200, 7200), (sites, moreSeconds) => {
    const wrong = sites.map((one, i) => ({ ...one, errorSeconds: i === 0 ? moreSeconds : 0 }))
    const other = sites.map((one, i) => ({ ...one, errorSeconds: i === 0 ? -moreSeconds : 0 }))
    return orderAt(wrong[1]!, wrong).join() === orderAt(other[1]!, other).join()
  })
  fc.assert(property, { numRuns: 1000 })
  t.pass()
})

t.test('a peer that has the name of our site decides nothing by its clock', async (t) => {
  const property = fc.property(world, fc.array(error, { maxLength: 3 }), (sites, namesakes) => {
    const [at] = sites
    return orderAt(at!, sites, { namesakes }).join() === orderAt(at!, sites).join()
  })
  fc.assert(property, { numRuns: 1000 })
  t.pass()
})

t.test('of several nameservers of a site, each clock counts', async (t) => {
  const peers = [
    { address: 'a', ownSite: 'rome', clockAheadMs: 1000, lastSeenMs: 5 },
    { address: 'b', ownSite: 'rome', clockAheadMs: -20_000, lastSeenMs: 6 },
    { address: 'c', ownSite: 'oslo', clockAheadMs: undefined, lastSeenMs: 7 },
    { address: 'd', ownSite: '', clockAheadMs: 50_000, lastSeenMs: 8 },
  ]
  const clocks = [
    { address: 'a', aheadMs: 1000, seenMs: 5 },
    { address: 'b', aheadMs: -20_000, seenMs: 6 },
  ]
  t.strictSame([...findSiteClocks(peers)], [['rome', clocks]])
})

const HELSINKI: Site = { name: 'helsinki', errorSeconds: 0, ages: [5] }
const ATHENS: Site = { name: 'athens', errorSeconds: 0, moreErrors: [-3600], ages: [1] }
const OLDEST = ['helsinki/00000000', 'athens/00000000']
const BY_NAME = [...OLDEST].reverse()

t.test('the clock of a dead nameserver ends where its data ends', async (t) => {
  const [both, second] = [['athens 0', 'athens 1'], ['athens 1']]
  for (const { name, at = HELSINKI, silent, seconds, want } of [
    { name: 'all are heard', silent: [], seconds: 0, want: BY_NAME },
    { name: 'it may be late', silent: second, seconds: 20, want: BY_NAME },
    { name: 'another one of its site is heard', silent: second, seconds: 21, want: OLDEST },
    // Its records still count, and they have wrong ages.
    { name: 'its site is silent', silent: both, seconds: 3600, want: BY_NAME },
    { name: 'of our site: it may be late', at: ATHENS, silent: second, seconds: 20, want: BY_NAME },
    { name: 'of our site', at: ATHENS, silent: second, seconds: 21, want: OLDEST },
  ]) {
    const silentMs = new Map(silent.map((address) => [address, seconds * 1000]))
    t.strictSame(orderAt(at, [HELSINKI, ATHENS], { silentMs }), want, name)
  }
})
