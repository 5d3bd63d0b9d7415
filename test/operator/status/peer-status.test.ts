import fc from 'fast-check'
import t from 'tap'
import { recallMoment, thisMoment } from '../../../src/base/moment.ts'
import type { KnownPeer } from '../../../src/operator/peers/peer-state-store.ts'
import { printPeers, scanPeers } from '../../../src/operator/status/peer-status.ts'
import type { Generation, PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { recordFields } from '../../peering/samples.ts'
import { peerEndpoint } from '../../support/operator-cluster.ts'
import { runs } from '../../support/runs.ts'
import { FakeClock } from '../../support/setup.ts'

const START_MS = Date.parse('2026-03-01T12:00:00Z')
const clock = new FakeClock()
clock.nowMs = START_MS
const HOST = 'k.example.com'
const WHOLE = { form: 'whole', roomOctets: 400_000 } as const

const endpoints: fc.Arbitrary<PeerEndpoint> = fc
  .record({
    dnsName: fc.constantFrom(HOST, `a.${HOST}`),
    ttlSeconds: fc.nat(),
    setIdentifier: fc.constantFrom('', 'default', 'one'),
    weight: fc.option(fc.nat(1_000_000), { nil: undefined }),
    geoCodes: fc.subarray(['DE', 'GEO-EU']),
    isDefault: fc.boolean(),
    set: fc.constantFrom(
      { recordType: 'A', targets: ['192.0.2.1', '192.0.2.2'] },
      { recordType: 'TXT', targets: ['<b> \\ é', '"two" "strings"'] },
    ),
    health: fc.constantFrom('up', 'down', 'unknown'),
    sinceSeconds: fc.nat(),
    fields: recordFields,
  })
  // Geo codes under that set identifier make it a default, whatever else is said.
  .map(({ fields, set, ...one }) => {
    const isImplied = one.setIdentifier === 'default' && one.geoCodes.length > 0
    return peerEndpoint({
      ...one,
      ...set,
      ...fields,
      rootHost: HOST,
      isDefault: one.isDefault || isImplied,
    })
  })

/** What a peer may have said, as of a whole second. */
function words(generation: Generation, seenMs: number) {
  return fc
    .uniqueArray(fc.constantFrom('east', 'west', 'x'), { minLength: 1 })
    .chain((sites) =>
      fc.tuple(
        ...sites.map((site) =>
          fc.boolean().chain((isOwn) => siteStates({ site, isOwn }, generation, seenMs)),
        ),
      ),
    )
}

function siteStates(
  { site, isOwn }: Pick<SiteState, 'site' | 'isOwn'>,
  generation: Generation,
  seenMs: number,
): fc.Arbitrary<SiteState> {
  const own = fc.array(endpoints, { minLength: 1, maxLength: 3 })
  return own.map((list) => ({
    site,
    exporter: '',
    isOwn,
    rootHost: HOST,
    endpoints: list.map((one) => ({
      ...one,
      site,
      // v1 does not report since when.
      sinceSeconds: generation === 'v1' ? 0 : one.sinceSeconds,
    })),
    seenMs,
    generation,
  }))
}

const states = fc
  .record({
    generation: fc.constantFrom<Generation>('v1', 'v2'),
    isSilent: fc.boolean(),
    ageSeconds: fc.integer({ min: 1, max: 100_000 }),
  })
  .chain(({ generation, isSilent, ageSeconds }) => {
    const moment = recallMoment(isSilent ? START_MS - ageSeconds * 1000 : START_MS, clock)
    const serial = isSilent ? 7 : undefined
    return words(generation, moment.seenMs).map(
      (said): KnownPeer => ({
        state: { siteStates: said, ...moment, generation, serial, problems: [] },
        reason: isSilent ? 'no answer' : '',
      }),
    )
  })

function reportedBy(exporter: string, { state, reason }: KnownPeer): KnownPeer {
  return {
    reason,
    state: state && { ...state, siteStates: state.siteStates.map((one) => ({ ...one, exporter })) },
  }
}

t.test('the states of peers survive a restart, and are written unchanged after it', async (t) => {
  fc.assert(
    fc.property(states, states, (one, other) => {
      const known = new Map([
        ['192.0.2.1:53', reportedBy('192.0.2.1:53', one)],
        ['[::1]:53', reportedBy('[::1]:53', other)],
      ])
      const printed = printPeers([...known.keys()], known, WHOLE)
      const scanned = scanPeers(JSON.parse(JSON.stringify(printed)), HOST, clock)
      t.strictSame(scanned, known)
      t.strictSame(printPeers([...known.keys()], scanned, WHOLE), printed)
    }),
    { numRuns: runs(200), seed: 4 },
  )
})

t.test(
  'a peer that has nothing is an item of its own, one that was never asked is none',
  async (t) => {
    const about = { generation: 'v2', serial: 7, problems: [] } as const
    const state = { siteStates: [], ...thisMoment(clock), ...about }
    const known = new Map<string, KnownPeer>([
      ['live', { state, reason: '' }],
      ['silent', { state, reason: 'timeout' }],
      ['never', { state: undefined, reason: 'refused' }],
    ])
    t.strictSame(printPeers(['live', 'silent', 'never', 'new'], known, WHOLE), [
      { address: 'live', state: 'Live', generation: 'v2', endpoints: [] },
      {
        address: 'silent',
        state: 'Silent',
        generation: 'v2',
        lastSeenTime: '2026-03-01T12:00:00Z',
        serial: 7,
        message: 'timeout',
        endpoints: [],
      },
      { address: 'never', state: 'Unknown', message: 'refused', endpoints: [] },
    ])
  },
)

/** One peer's words: `east` or `east-`, which has nothing, its own; `(west)` is relayed. */
function pageOf(exporter: string, text: string, reason = ''): KnownPeer {
  const { seenMs, seenTimeMs } = thisMoment(clock)
  const said = text.split(' ').map((word): SiteState => {
    const site = word.replace(/[()-]/g, '')
    const about = { generation: 'v2', seenMs, rootHost: HOST } as const
    const isOwn = !word.startsWith('(')
    return {
      site,
      exporter: exporter,
      isOwn,
      ...about,
      endpoints: word.endsWith('-') ? [] : [peerEndpoint({ site })],
    }
  })
  const about = { seenMs, seenTimeMs, generation: 'v2', serial: 7, problems: [] } as const
  return { reason, state: { siteStates: text === '' ? [] : said, ...about } }
}

t.test('what is reported beside the site of a peer, and where', async (t) => {
  const table: readonly {
    readonly name: string
    readonly given: readonly (readonly [address: string, words: string, reason?: string])[]
    readonly want: readonly object[]
  }[] = [
    {
      name: 'a nameserver of one site is what a peer is by default',
      given: [['a', 'east']],
      want: [{ site: 'east', relayed: undefined }],
    },
    {
      name: 'a peer that reports a site of others is marked',
      given: [['a', '(east)']],
      want: [{ site: 'east', relayed: true }],
    },
    {
      name: 'a peer that reports several sites is a nameserver of none, by default',
      given: [['a', '(east) (west)']],
      want: [
        { site: 'east', relayed: undefined },
        { site: 'west', relayed: undefined },
      ],
    },
    {
      name: 'the one of several sites that is its own is distinguished',
      given: [['a', 'east (west)']],
      want: [
        { site: 'east', relayed: false },
        { site: 'west', relayed: undefined },
      ],
    },
    {
      name: 'a live nameserver that has nothing does not say of which site it is',
      given: [['a', 'east-']],
      want: [{ site: undefined }],
    },
    {
      name: 'unless another peer reports that site',
      given: [
        ['a', 'east-'],
        ['b', '(east)'],
      ],
      want: [
        { site: 'east', endpoints: [] },
        { site: 'east', relayed: true },
      ],
    },
    {
      name: 'and where it is silent, as another one may begin to',
      given: [['a', 'east-', 'timeout']],
      want: [{ site: 'east', state: 'Silent', endpoints: [] }],
    },
    {
      name: 'one that relays nothing does not say whose',
      given: [['a', '(east)-', 'timeout']],
      want: [{ site: undefined }],
    },
  ]
  for (const { name, given, want } of table) {
    const pages = new Map(
      given.map(([address, words, reason]) => [address, pageOf(address, words, reason)]),
    )
    const printed = printPeers([...pages.keys()], pages, WHOLE)
    t.match(printed, want, name)
    t.equal(printed.length, want.length, name)
    const scanned = scanPeers(JSON.parse(JSON.stringify(printed)), HOST, clock)
    t.strictSame(printPeers([...pages.keys()], scanned, WHOLE), printed, `${name}, after a restart`)
    for (const [i, { site, relayed }] of printed.entries()) {
      if (site === undefined) continue
      const { address } = printed[i]!
      const of = (from: ReadonlyMap<string, KnownPeer>) =>
        from.get(String(address))?.state?.siteStates.find((share) => share.site === site)?.isOwn
      t.equal(of(scanned), of(pages), `${name}: ${relayed}`)
    }
    const unmarked = printPeers([...pages.keys()], pages, { ...WHOLE, form: 'unmarked' })
    t.strictSame(
      unmarked,
      printed.map(({ relayed: _, ...rest }) => rest),
      `${name}, with an older definition`,
    )
  }
})

t.test('invalid entries are ignored', async (t) => {
  const bad = [
    null,
    7,
    {},
    { address: 'a', state: 'Silent', site: 'x', lastSeenTime: 'soon', endpoints: [{}] },
    { address: 'b', state: 'Live', site: 'x', endpoints: [{ dnsName: HOST }, 7] },
  ]
  const scanned = scanPeers(bad, HOST, clock)
  t.strictSame([...scanned.keys()], ['a', 'b'])
  t.equal(scanned.get('a')?.state, undefined)
  t.strictSame(scanned.get('b')?.state?.siteStates[0]?.endpoints, [])
  t.strictSame(scanPeers('nothing', HOST, clock), new Map())
})

t.test('invalid endpoints of a site are one problem', async (t) => {
  const good = { dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'] }
  const bad = [
    { ...good, targets: ['nonsense'] },
    { ...good, recordType: 'A6' },
  ]
  const sites = [
    { site: 'x', endpoints: [bad[0]!, good, ...Array(100).fill(bad[1]!)] },
    { site: 'y', endpoints: [good] },
    { site: 'z', endpoints: [bad[1]!] },
  ]
  const peers = sites.map((one) => ({ address: 'a', state: 'Live', ...one }))
  const { siteStates, problems } = scanPeers(peers, HOST, clock).get('a')!.state!
  t.strictSame(
    siteStates.map(({ endpoints }) => endpoints.length),
    [1, 1, 0],
  )
  t.match(problems, [
    /^ignoring in status\.peers: endpoint of site x: .*nonsense.*, and 100 more$/,
    /^ignoring in status\.peers: endpoint of site z: .*A6/,
  ])
  t.equal(problems.length, 2)
})

t.test('properties of records that are invalid, or missing in old data, are unknown', async (t) => {
  const scan = (...providerSpecific: readonly object[]) => {
    const endpoint = { dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'], providerSpecific }
    const peer = { address: 'a', state: 'Live', site: 'x', generation: 'v2', endpoints: [endpoint] }
    const scanned = scanPeers(JSON.parse(JSON.stringify([peer])), HOST, clock)
    const [found] = scanned.get('a')!.state!.siteStates[0]!.endpoints
    const { createdSeconds, recordId, settings } = found!
    return JSON.parse(JSON.stringify({ createdSeconds, recordId, settings }))
  }
  const of = (name: string, value: unknown) => ({ name, value })
  t.strictSame(scan(), {})
  t.strictSame(scan(of('created', 'x'), of('record', 'n/r'), of('sticky', 'maybe')), {})
  t.strictSame(scan(of('sticky', 7), of('drain', ''), of('shift', 'to=x')), {
    settings: { drain: { reason: '' } },
  })
})

t.test('the room for peers includes the properties of records', async (t) => {
  const failover = [{ code: '*', entries: ['x'.repeat(2000)] }]
  const endpoints = Array.from({ length: 100 }, (_, i) => {
    return peerEndpoint({ site: 'east', targets: [`192.0.2.${i}`], settings: { failover } })
  })
  const page = pageOf('a', 'east')
  const [state] = page.state!.siteStates
  const full = { ...page, state: { ...page.state!, siteStates: [{ ...state!, endpoints }] } }
  const printed = printPeers(['a'], new Map([['a', full]]), { ...WHOLE, roomOctets: 50_000 })
  const octets = Buffer.byteLength(JSON.stringify(printed))
  t.ok(octets > 40_000 && octets <= 50_000, `${octets}`)
})
