import t from 'tap'
import { thisMoment } from '../../src/base/moment.ts'
import { rootHostOf } from '../../src/peering/merged-keys.ts'
import type { PeerEndpoint } from '../../src/peering/peer-endpoint.ts'
import { RecordSet } from '../../src/peering/record-set.ts'
import { SiteWatch } from '../../src/peering/site-watch.ts'
import type { RecordChange } from '../../src/records/record-source.ts'
import { recordOf } from '../health/stage.ts'
import { endpoint, type PeerText } from '../support/peer-text.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

const HOST = 'a.k.test'
const CONFLICT =
  /^peer 192.0.2.53:53 reports other endpoints under the name of this site, east: give each site a name of its own with `site`/

const isOf = (host: string) => (one: PeerEndpoint) => one.rootHost === host

function stage({ ownSite: ownSiteFirst = 'west', isWhole = true } = {}) {
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const { lines, log } = recordLog()
  let said: readonly PeerEndpoint[] = []
  let site = 'east'
  let ownSite = ownSiteFirst
  let clockAheadMs: number | undefined
  let sites: readonly string[] = ['west']
  let announce = (_: ReadonlySet<string>): void => {}
  let announceOwn = (_: readonly RecordChange[]): void => {}
  const records = [recordOf('a', ['192.0.2.1']), recordOf('b', ['192.0.2.7'])]
  const watch = new SiteWatch({
    site: 'east',
    isWhole: () => isWhole,
    expiryMs: 24 * 3_600_000,
    own: {
      subscribe: (listener) => {
        announceOwn = listener
        return () => {}
      },
      recordsOf: (host) => RecordSet.of(records.filter((one) => rootHostOf(one) === host)),
    },
    peers: [
      {
        address: '192.0.2.53:53',
        get ownSite() {
          return ownSite
        },
        get clockAheadMs() {
          return clockAheadMs
        },
        get lastSeenMs() {
          return clock.monotonic()
        },
        get sites() {
          return sites
        },
        hosts: () => new Set(said.length === 0 ? [HOST] : said.map(({ rootHost }) => rootHost)),
        subscribe: (listener) => {
          announce = listener
          return () => {}
        },
        siteStatesOf: (host) => {
          const { seenMs } = thisMoment(clock)
          const about = { exporter: 'p', isOwn: true, seenMs, generation: 'v2' } as const
          return [{ ...about, site, rootHost: host, endpoints: said.filter(isOf(host)) }]
        },
      },
    ],
    clock,
    timers,
    log,
  })
  const say = (host: string, targets: readonly string[], more: Partial<PeerText> = {}): void => {
    site = more.site ?? 'east'
    said = targets.map((target) => {
      const about = { site, rootHost: host, dnsName: host, setIdentifier: target }
      return endpoint({ ...about, sinceSeconds: 5, targets: [target], ...more })
    })
    announce(new Set([host]))
  }
  /** Replaces our record `a`. No targets: it is removed. */
  const put = (...targets: readonly string[]): void => {
    const before = records.find((one) => rootHostOf(one) === HOST)
    const after = targets.length === 0 ? undefined : recordOf('a', targets)
    if (before !== undefined) records.splice(records.indexOf(before), 1)
    if (after !== undefined) records.push(after)
    if (before !== after) announceOwn([{ before, after }])
  }
  const pass = async (seconds: number): Promise<void> => {
    clock.pass(seconds * 1000)
    await timers.advance(seconds * 1000)
  }
  const name = (...names: readonly string[]): void => {
    sites = names
  }
  const setClock = (aheadMs: number): void => {
    clockAheadMs = aheadMs
  }
  const own = (name: string): void => {
    ownSite = name
  }
  return { watch, say, name, own, put, pass, lines, clock, setClock }
}

t.test('a peer that has the name of this site', async (t) => {
  for (const { name, host, targets, isConflict } of [
    { name: 'another nameserver of the site', host: HOST, targets: ['192.0.2.1'] },
    { name: 'another site', host: HOST, targets: ['192.0.2.9'], isConflict: true },
    { name: 'hosts of another block', host: 'other.k.test', targets: ['192.0.2.9'] },
  ]) {
    const { watch, say, pass, lines } = stage()
    say(host, targets)
    for (let i = 0; i < 5; i++) await pass(5)
    t.equal(watch.note(), '', `${name}: it may be late`)
    for (let i = 0; i < 5; i++) await pass(5)
    t.match(watch.note(), isConflict ? CONFLICT : /^$/, name)
    t.equal(lines.length, isConflict ? 1 : 0, name)
    say(host, ['192.0.2.1'])
    await pass(5)
    t.equal(watch.note(), '', `${name}: it is over`)
    watch.close()
  }
})

t.test('a peer with the name of this site is found when our records change', async (t) => {
  const { watch, say, put, pass } = stage()
  put()
  say(HOST, ['192.0.2.9'])
  await pass(25)
  for (const { name, targets, isConflict } of [
    { name: 'no record of the host', targets: [] },
    { name: 'a record with other addresses', targets: ['192.0.2.1'], isConflict: true },
    { name: 'a record with the same address', targets: ['192.0.2.9'] },
    { name: 'again one with other addresses', targets: ['192.0.2.2'], isConflict: true },
    { name: 'no record any longer', targets: [] },
  ]) {
    put(...targets)
    for (let i = 0; i < 10; i++) await pass(5)
    t.match(watch.note(), isConflict ? CONFLICT : /^$/, name)
  }
  watch.close()
})

t.test('a peer that has the name of this site, and none of its hosts', async (t) => {
  const DISJOINT =
    /^peer 192.0.2.53:53 reports no host of ours under the name of this site, east: give each site a name of its own with `site`/
  for (const { name, host = 'other.k.test', isConflict = false, ...given } of [
    { name: 'another site', isConflict: true },
    { name: 'a nameserver of the site', host: HOST },
    { name: 'another name', ownSite: 'west' },
    { name: 'another block has other records, or we have none', isWhole: false },
  ]) {
    const { watch, say, pass, lines } = stage({ ownSite: 'east', ...given })
    say(host, ['192.0.2.1'])
    for (let i = 0; i < 5; i++) await pass(5)
    t.equal(watch.note(), '', `${name}: it may be late`)
    for (let i = 0; i < 5; i++) await pass(5)
    t.match(watch.note(), isConflict ? DISJOINT : /^$/, name)
    t.equal(lines.length, isConflict ? 1 : 0, name)
    say(HOST, ['192.0.2.1'])
    await pass(5)
    t.equal(watch.note(), '', `${name}: it is over`)
    watch.close()
  }
})

for (const aheadMs of [-60_000, -11_000, 11_000, 60_000]) {
  t.test(`a site whose clock is ${aheadMs} ms ahead is reported until it agrees`, async (t) => {
    const { setClock, pass, lines, watch } = stage()
    await pass(5)
    setClock(aheadMs)
    await pass(10)
    const side = aheadMs > 0 ? 'ahead of' : 'behind'
    t.match(lines, [new RegExp(`the clock of site west is ${side} ours: synchronise the clocks`)])
    t.match(watch.note(), 'the clock of site west')
    setClock(9000)
    await pass(10)
    t.match(lines[1], 'the clock of site west agrees with ours again')
    t.equal(watch.note(), '')
    t.equal(lines.length, 2)
  })
}

t.test('the clock of another nameserver of this site is reported until it agrees', async (t) => {
  const { say, setClock, pass, lines, watch } = stage({ ownSite: 'east' })
  say(HOST, ['192.0.2.1'])
  setClock(60_000)
  await pass(5)
  const fault = 'the clock of peer 192.0.2.53:53 of this site, east, is ahead of ours: synchronise'
  t.match(lines, [fault])
  t.match(watch.note(), fault)
  setClock(0)
  await pass(5)
  t.match(lines[1], 'the clock of peer 192.0.2.53:53 of this site, east, agrees with ours again')
  t.equal(lines.length, 2)
  t.equal(watch.note(), '')
})

t.test('the clock of a peer that has the name of this site does not count', async (t) => {
  const { say, setClock, pass, lines } = stage({ ownSite: 'east' })
  say(HOST, ['192.0.2.9'])
  setClock(60_000)
  await pass(5)
  t.strictSame(lines, [])
})

t.test('a nameserver of this site that follows a change late keeps its clock', async (t) => {
  const { say, put, setClock, pass, lines, watch } = stage({ ownSite: 'east' })
  say(HOST, ['192.0.2.1'])
  setClock(60_000)
  await pass(5)
  t.equal(lines.length, 1)
  for (const last of [2, 3, 4]) {
    put(`192.0.2.${last}`)
    for (let i = 0; i < 5; i++) await pass(5)
    t.match(watch.note(), 'the clock of peer', 'it is late')
    say(HOST, [`192.0.2.${last}`])
    await pass(5)
  }
  t.equal(lines.length, 1, 'once')
  put('192.0.2.9')
  for (let i = 0; i < 7; i++) await pass(5)
  t.notMatch(watch.note(), 'the clock of peer', 'it does not follow, so it is another site')
})

t.test('a peer that becomes a relay has no clock of a site any more', async (t) => {
  const { setClock, own, pass, lines, watch } = stage()
  setClock(60_000)
  await pass(5)
  own('')
  await pass(5)
  t.match(lines, [/the clock of site west is ahead of ours/])
  t.equal(lines.length, 1)
  t.equal(watch.note(), '')
})

t.test('a site that dates changes in our future is logged once', async (t) => {
  const { say, pass, lines, clock } = stage()
  const nowSeconds = Math.floor(clock.now() / 1000)
  for (const sinceSeconds of [nowSeconds + 5, nowSeconds + 3600, nowSeconds + 3601]) {
    say(HOST, ['192.0.2.9'], { site: 'west', sinceSeconds })
    await pass(5)
  }
  t.match(lines, [/site west dates changes in our future/])
  t.equal(lines.length, 1)
})

t.test('sites that change all the time are not logged each time', async (t) => {
  const { name, pass, watch, lines } = stage()
  for (let i = 0; i < 100; i++) {
    name('west', `s${i}`)
    await pass(5)
  }
  t.strictSame(lines, [])
  for (let i = 0; i < 10; i++) await pass(5)
  t.match(watch.note(), /reports endpoints of several sites, west, s99/)
  t.equal(lines.length, 1)
})
