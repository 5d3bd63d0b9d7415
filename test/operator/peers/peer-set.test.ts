import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../../src/dns/tsig/key.ts'
import { type PeerFollowerView, PeerSet } from '../../../src/operator/peers/peer-set.ts'
import { keyIdOf } from '../../../src/operator/provider/key-id.ts'
import type { Nameserver } from '../../../src/operator/provider/nameserver.ts'
import type { Provider } from '../../../src/operator/provider/provider-secret.ts'
import type { Generation, SiteState } from '../../../src/peering/peer-endpoint.ts'
import type { SiteObservation } from '../../../src/peering/quorum/observation-codec.ts'
import { peerEndpoint } from '../../support/operator-cluster.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const SILENT_AFTER_MS = 30_000

const EAST: Nameserver = { host: '192.0.2.53', port: 53 }
const WEST: Nameserver = { host: '2001:db8::53', port: 53 }
const APP = 'app.k.example.com'

class ToyFollower implements PeerFollowerView {
  generation: Generation | '' = ''
  lastSeenMs = Number.NEGATIVE_INFINITY
  lastSeenTimeMs = 0
  serial: number | undefined
  error = ''
  readonly sites = []
  readonly clockAheadMs = undefined
  isClosed = false
  /** As often as it is wanted: the follower counts that. */
  readonly wanted: string[] = []
  readonly siteStates: SiteState[] = []
  #listener: (hosts: ReadonlySet<string>) => void = () => {}

  get status() {
    const { generation, lastSeenMs, lastSeenTimeMs, serial, error } = this
    return {
      address: '',
      keyName: '',
      site: '',
      generation,
      lastSeenMs,
      lastSeenTimeMs,
      serial,
      isUp: error === '',
      error,
      failures: 0,
      endpoints: 0,
      refused: 0,
    }
  }

  start(): void {}

  notified = 0
  host = ''

  notify(): void {
    this.notified++
  }

  isAt(host: string): boolean {
    return host === this.host
  }

  close(): void {
    this.isClosed = true
  }

  want(rootHost: string): void {
    this.wanted.push(rootHost)
  }

  forget(rootHost: string): void {
    this.wanted.splice(this.wanted.indexOf(rootHost), 1)
  }

  ownSite = ''
  readonly observationCount = 0

  get lastAnswerMs(): number {
    return this.lastSeenMs
  }

  readonly observations: SiteObservation[] = []

  observationsOf(): readonly SiteObservation[] {
    return this.observations
  }

  subscribe(listener: (hosts: ReadonlySet<string>) => void): () => void {
    this.#listener = listener
    return () => {
      this.#listener = () => {}
    }
  }

  hasAnsweredFor(): boolean {
    return this.generation !== ''
  }

  siteStatesOf(host: string): readonly SiteState[] {
    return this.siteStates.filter(({ rootHost }) => rootHost.replace(/^\*\./, '') === host)
  }

  problemsOf(host: string): readonly string[] {
    return host === APP ? ['x: no name'] : []
  }

  report(...hosts: readonly string[]): void {
    this.#listener(new Set(hosts))
  }
}

function lastSeen(clock: FakeClock) {
  return { lastSeenMs: clock.monotonicMs, lastSeenTimeMs: clock.nowMs }
}

function setUp(expiryMs = 24 * 3600 * 1000) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const followers: ToyFollower[] = []
  const news: string[] = []
  const peers = new PeerSet({
    clock,
    timers,
    onEvent: (key) => news.push(key),
    expiryMs,
    follow: ({ host }) => {
      const follower = new ToyFollower()
      follower.host = host
      followers.push(follower)
      return follower
    },
  })
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(1000)
  }
  return { clock, timers, followers, news, peers, pass }
}

function provider(nameservers: readonly Nameserver[], secret = ''): Provider {
  const name = scanName('peers.example.')!
  const tsigKey = secret === '' ? undefined : createTsigKey(name, HMAC_SHA256, Buffer.from(secret))
  return { secretName: 'coredns', zones: ['k.example.com'], nameservers, tsigKey, rules: [] }
}

t.test('a nameserver is followed once, for as long as a record wants to know of it', (t) => {
  const { followers, peers } = setUp()
  const [first] = peers.peersFor('a/one', APP, provider([EAST]))
  const [second] = peers.peersFor('b/two', `*.${APP}`, provider([EAST, WEST]))
  t.equal(first, second)
  t.equal(first?.address, '192.0.2.53:53')
  t.equal(followers.length, 2)
  t.strictSame([...followers[0]!.wanted], [APP, `*.${APP}`])
  peers.forget('a/one')
  t.strictSame([...followers[0]!.wanted], [`*.${APP}`])
  peers.peersFor('b/two', `*.${APP}`, provider([WEST]))
  t.equal(followers[0]!.isClosed, true)
  t.equal(followers[1]!.isClosed, false)
  peers.forget('b/two')
  peers.forget('b/two')
  t.equal(followers[1]!.isClosed, true)
  t.equal(peers.statuses().length, 0)
  t.end()
})

t.test('two records of one host share what is asked for', (t) => {
  const { followers, peers } = setUp()
  peers.peersFor('a/one', APP, provider([EAST]))
  peers.peersFor('a/two', APP, provider([EAST]))
  peers.peersFor('b/other', `*.${APP}`, provider([EAST]))
  peers.forget('a/one')
  t.ok(followers[0]!.wanted.includes(APP))
  peers.forget('a/two')
  t.strictSame(followers[0]!.wanted, [`*.${APP}`], 'and no query is sent once both are gone')
  t.end()
})

t.test('another key makes another follower', (t) => {
  const { followers, peers } = setUp()
  for (const secret of ['', 'one', 'one', 'two']) {
    peers.peersFor('a/one', APP, provider([EAST], secret))
  }
  t.strictSame(
    followers.map(({ isClosed }) => isClosed),
    [true, true, false],
  )
  t.end()
})

t.test('subscribers of a host are notified of its changes', (t) => {
  const { followers, peers, news } = setUp()
  peers.peersFor('a/one', APP, provider([EAST]))
  peers.peersFor('a/wild', `*.${APP}`, provider([EAST]))
  peers.peersFor('a/other', 'other.k.example.com', provider([EAST]))
  followers[0]!.report(APP, 'nobody.example')
  t.strictSame(news, ['a/one', 'a/wild'])
  t.end()
})

t.test('states are returned only for the given host', (t) => {
  const { followers, peers, clock } = setUp()
  const [peer] = peers.peersFor('a/one', APP, provider([EAST]))
  t.strictSame(peer?.answerFor(APP), { kind: 'pending' })
  const share = (rootHost: string): SiteState => ({
    site: 'east',
    exporter: '192.0.2.53:53',
    isOwn: true,
    rootHost,
    endpoints: [peerEndpoint({ rootHost })],
    seenMs: clock.monotonicMs,
    generation: 'v2',
  })
  const siteStates = [share(APP), share(`*.${APP}`)]
  followers[0]!.siteStates.push(...siteStates)
  Object.assign(followers[0]!, { generation: 'v2', ...lastSeen(clock), serial: 9 })
  const observed = { site: 'b', address: '192.0.2.1', health: 'down', sinceSeconds: 5 } as const
  followers[0]!.observations.push(observed, { ...observed, site: 'c' })
  followers[0]!.ownSite = 'b'
  const about = {
    ...thisMoment(clock),
    ...{ generation: 'v2', serial: 9, problems: ['x: no name'] },
    observations: [observed],
  }
  t.strictSame(peer?.answerFor(APP), {
    kind: 'answered',
    state: { ...about, siteStates: [siteStates[0]] },
  })
  t.strictSame(peer?.answerFor(`*.${APP}`), {
    kind: 'answered',
    state: { ...about, siteStates: [siteStates[1]] },
  })
  t.strictSame(peer?.answerFor('x.example'), {
    kind: 'answered',
    state: { ...about, siteStates: [], problems: [] },
  })
  t.end()
})

t.test('a peer is silent after half a minute, and all its records are notified once', async (t) => {
  const { followers, peers, clock, news, pass } = setUp()
  const [peer] = peers.peersFor('a/one', APP, provider([EAST]))
  const follower = followers[0]!
  Object.assign(follower, { generation: 'v2', ...lastSeen(clock) })
  await pass(1000)
  t.strictSame(news.splice(0), ['a/one'], 'it is heard')
  follower.error = 'timeout'
  await pass(SILENT_AFTER_MS - 1001)
  t.equal(peer?.answerFor(APP).kind, 'answered', 'not yet')
  t.strictSame(news, [])
  await pass(1)
  t.match(peer?.answerFor(APP), { kind: 'silent', reason: 'timeout', state: { siteStates: [] } })
  await pass(60_000)
  t.strictSame(news.splice(0), ['a/one'])
  Object.assign(follower, { error: '', ...lastSeen(clock) })
  await pass(1000)
  t.strictSame(news, ['a/one'])
})

t.test('a peer that never answers is silent after as long', async (t) => {
  const { followers, peers, pass } = setUp()
  const [peer] = peers.peersFor('a/one', APP, provider([EAST]))
  followers[0]!.error = 'refused'
  t.equal(peer?.answerFor(APP).kind, 'pending')
  await pass(SILENT_AFTER_MS)
  t.strictSame(peer?.answerFor(APP), { kind: 'silent', reason: 'refused', state: undefined })
})

t.test('closing ends all', (t) => {
  const { followers, peers, timers } = setUp()
  peers.peersFor('a/one', APP, provider([EAST, WEST]))
  peers.close()
  t.strictSame(
    followers.map(({ isClosed }) => isClosed),
    [true, true],
  )
  t.equal(timers.count, 0)
  t.end()
})

// One that came back after its endpoints had expired, but within half a minute, was no news: they stayed away.
t.test('a peer whose endpoints go within half a minute is silent before they go', async (t) => {
  const expiryMs = 12_000
  const { followers, peers, clock, news, pass } = setUp(expiryMs)
  const [peer] = peers.peersFor('a/one', APP, provider([EAST]))
  const follower = followers[0]!
  Object.assign(follower, { generation: 'v2', ...lastSeen(clock) })
  await pass(1000)
  follower.error = 'timeout'
  await pass(expiryMs)
  t.equal(peer?.answerFor(APP).kind, 'silent')
  news.splice(0)
  Object.assign(follower, { error: '', ...lastSeen(clock) })
  await pass(1000)
  t.strictSame(news, ['a/one'], 'it is heard again')
})

t.test('a clock that is set makes no peer silent, and none answered', async (t) => {
  const { followers, peers, clock, pass } = setUp()
  const [peer] = peers.peersFor('a/one', APP, provider([EAST]))
  const follower = followers[0]!
  Object.assign(follower, { generation: 'v2', ...lastSeen(clock), error: 'timeout' })
  clock.nowMs += 24 * 3600 * 1000
  await pass(1000)
  t.equal(peer?.answerFor(APP).kind, 'answered')
  clock.nowMs -= 365 * 24 * 3600 * 1000
  await pass(SILENT_AFTER_MS)
  t.equal(peer?.answerFor(APP).kind, 'silent')
})

t.test('a NOTIFY has those peers asked that it may be about', (t) => {
  const { followers, peers, clock } = setUp()
  const keyed = provider([EAST], 'secret')
  peers.peersFor('a/one', APP, provider([EAST, WEST]))
  peers.peersFor('a/two', APP, keyed)
  const keyId = keyIdOf(keyed.tsigKey!)
  const table = [
    { name: 'an unknown sender', host: '192.0.2.9', want: 'stranger', asked: [0, 0, 0] },
    {
      name: 'a peer is all who are at its address, with a key or without',
      host: EAST.host,
      asked: [1, 0, 1],
    },
    { name: 'IPv6', host: WEST.host, asked: [0, 1, 0] },
    { name: 'a network of --notify-allow', host: '192.0.2.9', isAllowed: true, asked: [1, 1, 1] },
    { name: 'one that is a peer as well', host: EAST.host, isAllowed: true, asked: [1, 1, 1] },
    {
      name: 'a key is that of all who have it, wherever it comes from',
      host: '192.0.2.9',
      keyId,
      asked: [0, 0, 1],
    },
    {
      name: 'a key without a follower',
      host: EAST.host,
      keyId: 'other',
      asked: [0, 0, 0],
    },
  ]
  for (const { name, want = 'hastened', asked, ...sender } of table) {
    clock.pass(1000)
    for (const follower of followers) follower.notified = 0
    t.equal(peers.hasten({ keyId: '', isAllowed: false, ...sender }), want, name)
    t.strictSame(
      followers.map(({ notified }) => notified),
      asked,
      name,
    )
  }
  t.end()
})

t.test('looks for the sake of NOTIFYs are bounded, of one peer and of all together', (t) => {
  const { followers, peers, clock } = setUp()
  const many = Array.from({ length: 60 }, (_, i) => ({ host: `192.0.2.${i}`, port: 53 }))
  peers.peersFor('a/one', APP, provider(many))
  const all = { host: '192.0.2.254', keyId: '', isAllowed: true }
  const looks = (): number => followers.filter(({ notified }) => notified > 0).length
  t.equal(peers.hasten(all), 'hastened')
  t.equal(looks(), 60)
  t.equal(peers.hasten(all), 'hastened', 'those that come in a row share a look')
  clock.pass(100)
  for (const follower of followers) follower.notified = 0
  t.equal(peers.hasten(all), 'limited')
  t.equal(looks(), 50, 'a hundred at once, and ten since')
  clock.pass(1000)
  t.equal(peers.hasten(all), 'hastened', 'the next second has others')
  t.end()
})
