import t from 'tap'
import { endpoint, type PeerText, targetsOf } from '../../support/peer-text.ts'
import { ADDRESS, HOST, setUp, ToyPeer } from './quorum-stage.ts'

const REACHED = { outcome: 'up', by: 'this site' }
const OVERRULED = { outcome: 'down', by: 'sites' }
const DRAINED = { drain: { reason: 'work' } }
const GATEWAY = `gw.${HOST}`
const THEIR_GATEWAY = `gw2.${HOST}`
const to = (...targets: string[]) => ({ recordType: 'CNAME', targets })

for (const { name, own, theirs = [{}], isKept = true, address = ADDRESS } of [
  { name: 'A down, none else', own: [{ health: 'down' }] },
  { name: 'A up', own: [{ health: 'up' }], isKept: false },
  { name: 'A without a health check', own: [{ health: 'unknown' }], isKept: false },
  { name: 'no endpoint', own: [] },
  {
    name: 'A down, AAAA up',
    own: [{ health: 'down' }, { recordType: 'AAAA', targets: ['2001:db8::1'], health: 'up' }],
  },
  {
    name: 'only AAAA, up',
    own: [{ recordType: 'AAAA', targets: ['2001:db8::1'], health: 'up' }],
  },
  {
    name: 'A down, another name of the host up',
    own: [{ health: 'down' }, { dnsName: `www.${HOST}`, targets: ['192.0.2.2'], health: 'up' }],
  },
  { name: 'A drained', own: [{ health: 'down', settings: DRAINED }] },
  {
    name: 'A down at one of two endpoints',
    own: [{ health: 'down' }, { targets: ['192.0.2.2'], health: 'up' }],
    isKept: false,
  },
  {
    name: 'A down, another site up',
    own: [{ health: 'down' }],
    theirs: [{}, { targets: ['192.0.2.10'] }],
    isKept: false,
  },
  {
    name: 'A down, another site drained',
    own: [{ health: 'down' }],
    theirs: [{}, { targets: ['192.0.2.10'], settings: DRAINED }],
  },
  {
    name: 'a CNAME that works, beside a CNAME',
    own: [{ ...to('gw.other.test'), health: 'up' }],
    theirs: [to('their.other.test')],
    address: 'their.other.test',
    isKept: false,
  },
  {
    name: 'a CNAME that is down, beside a CNAME',
    own: [{ ...to('gw.other.test'), health: 'down' }],
    theirs: [to('their.other.test')],
    address: 'their.other.test',
  },
  {
    name: 'a CNAME to an A that is down, and an AAAA that is up',
    own: [
      { ...to(GATEWAY), health: 'unknown' },
      { dnsName: GATEWAY, health: 'down' },
      { dnsName: GATEWAY, recordType: 'AAAA', targets: ['2001:db8::1'], health: 'up' },
    ],
    theirs: [to(GATEWAY), { dnsName: GATEWAY }],
  },
  {
    name: 'each site has a name of its own, and ours works',
    own: [
      { ...to(GATEWAY), health: 'up' },
      { dnsName: GATEWAY, health: 'up' },
    ],
    theirs: [to(THEIR_GATEWAY), { dnsName: THEIR_GATEWAY }],
    isKept: false,
  },
  {
    name: 'each site has a name of its own, and ours is down',
    own: [
      { ...to(GATEWAY), health: 'down' },
      { dnsName: GATEWAY, health: 'down' },
    ],
    theirs: [to(THEIR_GATEWAY), { dnsName: THEIR_GATEWAY }],
  },
  {
    name: 'each site has a name of its own, and ours is drained',
    own: [
      { ...to(GATEWAY), health: 'down', settings: DRAINED },
      { dnsName: GATEWAY, health: 'down', settings: DRAINED },
    ],
    theirs: [to(THEIR_GATEWAY), { dnsName: THEIR_GATEWAY }],
  },
  {
    name: 'a CNAME to our A that is down, where another site has one that works',
    own: [
      { ...to(GATEWAY), health: 'down' },
      { dnsName: GATEWAY, health: 'down' },
    ],
    theirs: [
      to(THEIR_GATEWAY),
      { dnsName: THEIR_GATEWAY },
      { dnsName: GATEWAY, targets: ['192.0.2.10'] },
    ],
    isKept: false,
  },
  {
    name: 'a loop of CNAMEs beside an A that is down',
    own: [
      { health: 'down' },
      { dnsName: GATEWAY, ...to(THEIR_GATEWAY) },
      { dnsName: THEIR_GATEWAY, ...to(GATEWAY) },
    ],
  },
] as readonly {
  readonly name: string
  readonly own: readonly Partial<PeerText>[]
  readonly theirs?: readonly Partial<PeerText>[]
  /** Served, because clients of its name and type get nothing else. */
  readonly isKept?: boolean
  /** We reach it, and two of three sites find it down. */
  readonly address?: string
}[]) {
  t.test(`what this site reaches is served where all else is out: ${name}`, async (t) => {
    const sites = ['paris', 'rome', 'oslo'].map((site) => new ToyPeer(site))
    const { quorum, clock, found } = setUp({ peers: sites })
    clock.pass(100_000)
    for (const site of sites) {
      site.lastAnswerMs = clock.monotonicMs
      if (site.ownSite !== 'rome') site.observed = [found(site.ownSite, 'down', address)]
    }
    quorum.check()
    const mine = own.map((one) => endpoint({ site: 'berlin', ...one }))
    const findings = mine.flatMap((one) => {
      const { health, settings } = one
      if (health === 'unknown') return []
      const found = settings === undefined ? health : 'up'
      return targetsOf([one]).map((target) => [target, found] as const)
    })
    const about = { rootHost: HOST, exporter: 'rome:53', isOwn: true, generation: 'v2' } as const
    const endpoints = theirs.map((one) => endpoint({ site: 'rome', targets: [ADDRESS], ...one }))
    const { decisions } = quorum.settle({
      host: HOST,
      own: mine,
      ownFindings: new Map(findings),
      checkedKey: 'default/app',
      observed: [found('berlin', 'up', address)],
      siteStates: [{ site: 'rome', seenMs: clock.monotonicMs, endpoints, ...about }],
    })
    const { outcome, by } = decisions.get(address)!
    t.strictSame({ outcome, by }, isKept ? REACHED : OVERRULED)
  })
}
