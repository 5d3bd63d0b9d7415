import fc from 'fast-check'
import t from 'tap'
import { type RecordRank, sortRecords } from '../../src/dnsrecord/record-order.ts'
import type { PeerEndpoint, SiteState } from '../../src/peering/peer-endpoint.ts'
import { findSiteClocks, undateStates } from '../../src/peering/site-clocks.ts'
import { endpoint } from '../support/exported-zone.ts'

const NOW_SECONDS = 1_790_000_000

interface Site {
  readonly name: string
  /** By how much its clock is wrong. */
  readonly errorSeconds: number
  /** Ages of its records of the host. */
  readonly ages: readonly number[]
}

const site = fc.record({
  name: fc.constantFrom('berlin', 'dublin', 'lima', 'osaka', 'rome'),
  errorSeconds: fc.constantFrom(0, 0, 0, 1, -3600, 3600, 400_000_000),
  ages: fc.array(fc.nat(2000), { maxLength: 3 }),
})
const world = fc.uniqueArray(site, { minLength: 2, maxLength: 5, selector: ({ name }) => name })

function recordsOf({ name, errorSeconds, ages }: Site): PeerEndpoint[] {
  return ages.map((age, i) => {
    const createdSeconds = NOW_SECONDS + errorSeconds - age
    return endpoint({ site: name, createdSeconds, recordId: `0000000${i}` })
  })
}

/** The records of the host in the order that counts at a site. */
function orderAt(at: Site, sites: readonly Site[]): readonly string[] {
  const others = sites.filter((one) => one !== at)
  const peers = others.map(({ name, errorSeconds }) => ({
    ownSite: name,
    clockAheadMs: (errorSeconds - at.errorSeconds) * 1000,
  }))
  const states = others.map((one): SiteState => {
    const about = { exporter: one.name, isOwn: true, seenMs: 0, generation: 'v2' } as const
    return { site: one.name, rootHost: 'app.k.example.com', endpoints: recordsOf(one), ...about }
  })
  const own = recordsOf(at)
  const foreign = undateStates(states, own, findSiteClocks(peers)).flatMap((one) => one.endpoints)
  const ranks = [...own, ...foreign].map((one): RecordRank => {
    const { site: of, createdSeconds = 0, recordId: id, isUndated } = one
    return { key: `${of}/${id}`, createdSeconds, site: of, id, isUndated }
  })
  return sortRecords(ranks).map(({ key }) => key)
}

t.test('all sites order the records of a host alike, whatever their clocks', async (t) => {
  const property = fc.property(world, (sites) => {
    const orders = sites.map((one) => orderAt(one, sites).join())
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

t.test('of several nameservers of a site, the worst clock counts', async (t) => {
  const peers = [
    { ownSite: 'rome', clockAheadMs: 1000 },
    { ownSite: 'rome', clockAheadMs: -20_000 },
    { ownSite: 'oslo', clockAheadMs: undefined },
    { ownSite: '', clockAheadMs: 50_000 },
  ]
  t.strictSame([...findSiteClocks(peers)], [['rome', -20_000]])
})
