import fc from 'fast-check'
import t from 'tap'
import { recallMoment, thisMoment } from '../../src/base/moment.ts'
import { printPeers, scanPeers } from '../../src/operator/peer-status.ts'
import type { Remembered } from '../../src/operator/share-book.ts'
import type { Generation, SharedEndpoint, SiteShare } from '../../src/peering/shared-endpoint.ts'
import { told } from '../support/operator-cluster.ts'
import { FakeClock } from '../support/setup.ts'

const START_MS = Date.parse('2026-03-01T12:00:00Z')
const clock = new FakeClock()
clock.nowMs = START_MS
const HOST = 'k.example.com'
const ROOM_OCTETS = 400_000

const endpoints: fc.Arbitrary<SharedEndpoint> = fc
  .record({
    dnsName: fc.constantFrom(HOST, `a.${HOST}`),
    recordType: fc.constantFrom('A', 'TXT'),
    ttlSeconds: fc.nat(),
    setIdentifier: fc.constantFrom('', 'default', 'one'),
    weight: fc.option(fc.nat(), { nil: undefined }),
    geoCodes: fc.subarray(['DE', 'GEO-EU']),
    isDefault: fc.boolean(),
    targets: fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 }),
    health: fc.constantFrom('up', 'down', 'unknown'),
    sinceSeconds: fc.nat(),
  })
  // Geo codes under that set identifier make it a default, whatever else is said.
  .map((one) => {
    const isImplied = one.setIdentifier === 'default' && one.geoCodes.length > 0
    return told({ ...one, rootHost: HOST, isDefault: one.isDefault || isImplied })
  })

/** What a peer may have said, as of a whole second. */
function words(generation: Generation, seenMs: number) {
  return fc
    .uniqueArray(fc.constantFrom('east', 'west', 'x'), { minLength: 1 })
    .chain((sites) =>
      fc.tuple(
        ...sites.map((site) => shares({ site, isOwn: sites.length === 1 }, generation, seenMs)),
      ),
    )
}

function shares(
  { site, isOwn }: Pick<SiteShare, 'site' | 'isOwn'>,
  generation: Generation,
  seenMs: number,
): fc.Arbitrary<SiteShare> {
  const own = fc.array(endpoints, { minLength: 1, maxLength: 3 })
  return own.map((list) => ({
    site,
    teller: '',
    isOwn,
    rootHost: HOST,
    endpoints: list.map((one) => ({
      ...one,
      site,
      // The first generation doesn't tell since when.
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
      (said): Remembered => ({
        word: { shares: said, ...moment, generation, serial, problems: [] },
        reason: isSilent ? 'no answer' : '',
      }),
    )
  })

function toldBy(teller: string, { word, reason }: Remembered): Remembered {
  return {
    reason,
    word: word && { ...word, shares: word.shares.map((one) => ({ ...one, teller })) },
  }
}

t.test('what peers said outlives a restart, and is written the same after it', async (t) => {
  fc.assert(
    fc.property(states, states, (one, other) => {
      const remembered = new Map([
        ['192.0.2.1:53', toldBy('192.0.2.1:53', one)],
        ['[::1]:53', toldBy('[::1]:53', other)],
      ])
      const printed = printPeers([...remembered.keys()], remembered, ROOM_OCTETS)
      const scanned = scanPeers(JSON.parse(JSON.stringify(printed)), HOST, clock)
      t.strictSame(scanned, remembered)
      t.strictSame(printPeers([...remembered.keys()], scanned, ROOM_OCTETS), printed)
    }),
    { numRuns: 200, seed: 4 },
  )
})

t.test(
  'a peer that has nothing is an item of its own, one that was never asked is none',
  async (t) => {
    const about = { generation: 'v2', serial: 7, problems: [] } as const
    const word = { shares: [], ...thisMoment(clock), ...about }
    const remembered = new Map<string, Remembered>([
      ['live', { word, reason: '' }],
      ['silent', { word, reason: 'timeout' }],
      ['never', { word: undefined, reason: 'refused' }],
    ])
    t.strictSame(printPeers(['live', 'silent', 'never', 'new'], remembered, ROOM_OCTETS), [
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

t.test('what makes no sense is passed over', async (t) => {
  const bad = [
    null,
    7,
    {},
    { address: 'a', state: 'Silent', site: 'x', lastSeenTime: 'soon', endpoints: [{}] },
    { address: 'b', state: 'Live', site: 'x', endpoints: [{ dnsName: HOST }, 7] },
  ]
  const scanned = scanPeers(bad, HOST, clock)
  t.strictSame([...scanned.keys()], ['a', 'b'])
  t.equal(scanned.get('a')?.word, undefined)
  t.strictSame(scanned.get('b')?.word?.shares[0]?.endpoints, [])
  t.strictSame(scanPeers('nothing', HOST, clock), new Map())
})
