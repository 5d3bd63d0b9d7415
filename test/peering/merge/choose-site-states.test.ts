import fc from 'fast-check'
import t from 'tap'
import { chooseOthers } from '../../../src/peering/merge/choose-site-states.ts'
import { setKey } from '../../../src/peering/merge/part.ts'
import { peerEndpointKey, type SiteState } from '../../../src/peering/peer-endpoint.ts'
import { type PeerText, targetsOf } from '../../support/peer-text.ts'
import { HOST, share, shares } from '../samples.ts'

const RUNS = { seed: 4, numRuns: 200 }
const HOUR_MS = 3_600_000
/** After which of two nameservers the silent one has no say. */
const YIELD_MS = 20_000

/** Targets that are chosen of all this. */
function served(siteStates: readonly SiteState[]): readonly string[] {
  const chosen = chooseOthers('m', siteStates, 24 * HOUR_MS)
  return chosen.flatMap(({ endpoints }) => targetsOf(endpoints)).sort()
}

/** Chooses at a site that reports nothing itself. */
const choose = (reported: readonly SiteState[]) => chooseOthers('m', reported, HOUR_MS)

/** What a nameserver of the site itself says. */
const own = (site: string, exporter: string, endpoints: readonly Partial<PeerText>[]) =>
  share(site, endpoints, { exporter: exporter })
/** What a peer says of a site that it is no nameserver of. */
const hearsay = (site: string, exporter: string, endpoints: readonly Partial<PeerText>[]) =>
  share(site, endpoints, { exporter: exporter, isOwn: false })

const ONE = { targets: ['192.0.2.1'], sinceSeconds: 100 }
const TWO = { targets: ['192.0.2.2'], sinceSeconds: 100, dnsName: `two.${HOST}` }

const TABLE: readonly {
  readonly name: string
  readonly given: readonly SiteState[]
  readonly want: readonly string[]
}[] = [
  {
    name: 'a relay removes nothing from a peer that reports its own site',
    given: [own('west', 'w:53', [ONE]), { ...hearsay('west', 'x:53', []), seenMs: 9 }],
    want: ['192.0.2.1'],
  },
  {
    name: 'and adds nothing to it',
    given: [own('west', 'w:53', [ONE]), { ...hearsay('west', 'x:53', [TWO]), seenMs: 9 }],
    want: ['192.0.2.1'],
  },
  {
    name: 'nor has it a say when the site said that it has nothing',
    given: [own('west', 'w:53', []), { ...hearsay('west', 'x:53', [TWO]), seenMs: 9 }],
    want: [],
  },
  {
    name: 'a relay counts for a site that no other peer reports',
    given: [hearsay('west', 'x:53', [ONE]), hearsay('east', 'x:53', [TWO])],
    want: ['192.0.2.1', '192.0.2.2'],
  },
  {
    name: 'of several relays of a site none removes what another one reports',
    given: [hearsay('west', 'x:53', [ONE]), { ...hearsay('west', 'y:53', []), seenMs: HOUR_MS }],
    want: ['192.0.2.1'],
  },
  {
    name: "a site's only nameserver that says it has nothing is believed at once",
    given: [own('west', 'w:53', [ONE]), { ...own('west', 'w:53', []), seenMs: 1 }],
    want: [],
  },
  {
    name: 'of two nameservers of a site that are heard, what only one has stays',
    given: [own('west', 'w1:53', [ONE, TWO]), { ...own('west', 'w2:53', [ONE]), seenMs: 900 }],
    want: ['192.0.2.1', '192.0.2.2'],
  },
  {
    name: 'one that is silent has no say beside one that is heard',
    given: [
      own('west', 'w1:53', [ONE, TWO]),
      { ...own('west', 'w2:53', [ONE]), seenMs: YIELD_MS + 1 },
    ],
    want: ['192.0.2.1'],
  },
  {
    name: 'also where the one that is heard says that there is nothing',
    given: [own('west', 'w1:53', [ONE]), { ...own('west', 'w2:53', []), seenMs: YIELD_MS + 1 }],
    want: [],
  },
]

for (const { name, given, want } of TABLE) {
  t.test(name, async (t) => {
    t.strictSame(served(given), want)
    t.strictSame(served([...given].reverse()), want)
  })
}

t.test(
  'while one of two nameservers lags, the later change counts, whichever answered last',
  async (t) => {
    const before = { weight: 1, setIdentifier: 'x', sinceSeconds: 100 }
    const after = { ...before, weight: 2, targets: ['192.0.2.9'], sinceSeconds: 200 }
    for (const [fastMs, slowMs] of [
      [0, 0],
      [0, 900],
      [900, 0],
    ] as const) {
      const fast = { ...own('west', 'w1:53', [after]), seenMs: fastMs }
      const slow = { ...own('west', 'w2:53', [before]), seenMs: slowMs }
      t.strictSame(served([fast, slow]), ['192.0.2.9'])
    }
  },
)

t.test('one state is chosen for each site and host, in any order', async (t) => {
  const property = fc.property(shares, (given) => {
    const chosen = choose(given)
    const keys = chosen.map(({ site, rootHost }) => `${site} ${rootHost}`)
    t.equal(new Set(keys).size, keys.length)
    t.strictSame(choose([...given].reverse()), chosen)
    // It is chosen from the given states.
    const reported = new Set(given.flatMap(({ endpoints }) => endpoints.map(peerEndpointKey)))
    for (const { endpoints } of chosen) {
      for (const endpoint of endpoints) t.ok(reported.has(peerEndpointKey(endpoint)))
    }
  })
  fc.assert(property, RUNS)
})

/** Names and types of the given endpoints. */
function setsOf(given: readonly SiteState[]): Set<string> {
  return new Set(
    given.flatMap(({ site, endpoints }) =>
      endpoints.map(({ endpoint }) => `${site} ${setKey(endpoint)}`),
    ),
  )
}

t.test('of nameservers that are polled in turn, one stays the exporter', async (t) => {
  const exporters = [
    [1000, 2000],
    [3000, 2000],
    [3000, 4000],
    [3000, 9000],
  ].map(([first, second]) => {
    const states = [own('west', 'w1:53', [ONE]), own('west', 'w2:53', [ONE])]
    const seen = [
      { ...states[0]!, seenMs: first! },
      { ...states[1]!, seenMs: second! },
    ]
    return choose(seen).map(({ exporter, seenMs }) => `${exporter} ${seenMs}`)[0]
  })
  const silent = 'w2:53 9000'
  t.strictSame(exporters, ['w1:53 2000', 'w1:53 3000', 'w1:53 4000', silent])
})

t.test('no peer that is heard takes anything from another one that is', async (t) => {
  const property = fc.property(shares, shares, (given, more) => {
    // A peer of its own, heard at the same time.
    const others = more.map((one) => ({ ...one, exporter: `x${one.exporter}`, isOwn: false }))
    const before = setsOf(choose(given))
    const after = setsOf(choose([...given, ...others]))
    for (const set of before) t.ok(after.has(set), set)
    const rivals = more.map((one) => ({ ...one, exporter: `x${one.exporter}` }))
    const own = given.filter(({ isOwn }) => isOwn)
    const beside = setsOf(choose([...own, ...rivals]))
    for (const set of setsOf(choose(own))) t.ok(beside.has(set), set)
  })
  fc.assert(property, RUNS)
})
