import t from 'tap'
import type { EndpointHealth, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { HealthQuorum } from '../../../src/peering/quorum/health-quorum.ts'
import { QuorumMemory } from '../../../src/peering/quorum/quorum-memory.ts'
import { endpoint } from '../../support/peer-text.ts'
import { FakeClock } from '../../support/setup.ts'
import { ADDRESS, HOST, setUp, ToyPeer } from './quorum-stage.ts'

t.test('addresses of peers are watched, and ours are not', async (t) => {
  const { settle, watched, quorum } = setUp()
  settle([], 'up', [ADDRESS, '192.0.2.1'])
  t.strictSame([...watched], [['default/app', [ADDRESS]]])
  quorum.forget(HOST)
  t.strictSame([...watched], [['default/app', []]])
})

t.test('a majority takes out one target of an endpoint, and a success returns it', async (t) => {
  const { settle, pass, paris, clock, found, lines, quorum } = setUp()
  const targets = [ADDRESS, '192.0.2.10']
  const mine = [found('berlin', 'down')]
  t.equal(settle(mine, 'up', targets), '')
  paris.observed = [found('paris', 'down')]
  pass(9000)
  paris.lastAnswerMs = clock.monotonicMs
  pass(0)
  t.match(settle(mine, 'up', targets), /^192\.0\.2\.9: 2 of 2 sites \(berlin, paris\) find it down/)
  t.match(quorum.status, { down: 1, disputed: 0, heard: 2, sites: 3, isIsolated: false })
  t.match(lines.join(), '192.0.2.9 of app.k.example.com is taken out: berlin down, paris down')
  t.match(lines.join(), 'rome (home) up 9 s ago')
  t.equal(settle([found('berlin', 'up')], 'up', targets), '')
  t.match(lines.join(), '192.0.2.9 of app.k.example.com is served again: berlin up')
  t.equal(quorum.status.down, 0)
})

t.test('a site without a record of the host follows the others about a silent site', async (t) => {
  const { quorum, paris, rome, clock, found } = setUp()
  const about = { rootHost: HOST, exporter: rome.address, isOwn: true, generation: 'v2' } as const
  const outcome = (health: EndpointHealth): string | undefined => {
    const endpoints = [endpoint({ site: 'rome', health, targets: [ADDRESS] })]
    const siteStates = [{ site: 'rome', seenMs: rome.lastAnswerMs, endpoints, ...about }]
    const ours = { own: [], ownFindings: new Map(), checkedKey: '', observed: [] }
    return quorum.settle({ host: HOST, ...ours, siteStates }).decisions.get(ADDRESS)?.outcome
  }
  paris.observed = [found('paris', 'down')]
  t.equal(outcome('unknown'), 'unknown', 'one site alone takes out nothing of a site that is heard')
  clock.pass(9000)
  paris.lastAnswerMs = clock.monotonicMs
  quorum.check()
  t.equal(outcome('up'), 'down')
})

t.test('what its own site reports down is no decision of others', async (t) => {
  const { settle, lines, quorum } = setUp()
  t.equal(settle([], 'down'), `${ADDRESS}: its site rome reports it`)
  t.equal(quorum.status.down, 0)
  t.match(lines, [/is taken out: rome \(home\) down/])
})

t.test('an address that others find down and that is served as ours is not out', async (t) => {
  const memory = new QuorumMemory(new FakeClock())
  memory.note(HOST, new Set([ADDRESS]), new Set())
  t.equal(memory.outOf(HOST).size, 0)
  memory.note(HOST, new Set([ADDRESS]))
  t.strictSame([...memory.outOf(HOST)], [ADDRESS])
})

t.test(
  'the log does not say that an address is taken out which is served as ours too',
  async (t) => {
    for (const { name, own, health = undefined, isLogged } of [
      { name: 'not probed', own: endpoint({ targets: [ADDRESS] }), isLogged: false },
      { name: 'up', own: endpoint({ targets: [ADDRESS] }), health: 'up', isLogged: false },
      { name: 'down', own: endpoint({ targets: [ADDRESS] }), health: 'down', isLogged: true },
      { name: 'drained', own: endpoint({ targets: [ADDRESS], health: 'down' }), isLogged: true },
      { name: 'another address', own: endpoint(), isLogged: true },
    ] as const) {
      const { quorum, rome, lines } = setUp()
      const about = {
        rootHost: HOST,
        exporter: rome.address,
        isOwn: true,
        generation: 'v2',
      } as const
      for (const theirs of ['unknown', 'down', 'unknown'] as const) {
        const endpoints = [endpoint({ site: 'rome', health: theirs, targets: [ADDRESS] })]
        quorum.settle({
          host: HOST,
          own: [own],
          ownFindings: new Map(health === undefined ? [] : [[ADDRESS, health]]),
          checkedKey: 'default/app',
          observed: [],
          siteStates: [{ site: 'rome', seenMs: rome.lastAnswerMs, endpoints, ...about }],
        })
      }
      const found = lines.filter((line) => / is (taken out|served again): /.test(line))
      t.equal(found.length > 0, isLogged, `${name}: ${found.join()}`)
    }
  },
)

t.test('an address that is ours too is down only if all sites that have it say so', async (t) => {
  const { quorum, rome } = setUp()
  const about = { rootHost: HOST, exporter: rome.address, isOwn: true, generation: 'v2' } as const
  for (const [ours, theirs, want] of [
    ['up', 'down', 'up'],
    ['down', 'down', 'down'],
    ['down', 'up', 'unknown'],
  ] as const) {
    const endpoints = [endpoint({ site: 'rome', health: theirs, targets: [ADDRESS] })]
    const siteStates = [{ site: 'rome', seenMs: rome.lastAnswerMs, endpoints, ...about }]
    const { decisions } = quorum.settle({
      host: HOST,
      own: [endpoint({ targets: [ADDRESS] })],
      ownFindings: new Map([[ADDRESS, ours]]),
      checkedKey: 'default/app',
      observed: [],
      siteStates,
    })
    const outcome = decisions.get(ADDRESS)?.outcome
    t.equal(outcome === 'up' && want === 'unknown' ? 'unknown' : outcome, want)
  }
})

t.test('a status lists the sites, and the addresses that some site finds down', async (t) => {
  const { settle, inspect, pass, paris, clock, found, quorum } = setUp()
  const mine = [found('berlin', 'down')]
  t.strictSame(inspect([]), [])
  t.match(inspect(mine), [
    { address: ADDRESS, sites: ['rome'], up: ['rome'], down: ['berlin'], isDown: false },
  ])
  paris.observed = [found('paris', 'down')]
  pass(61_000)
  paris.lastAnswerMs = clock.monotonicMs
  pass(0)
  t.match(settle(mine), ADDRESS)
  t.strictSame([...quorum.noted], [[HOST, 1]])
  t.match(inspect(mine), [{ isDown: true, down: ['berlin', 'paris'], up: [] }])
  t.match(inspect(mine)[0]?.reason, /^down: 2 of 2 sites \(berlin, paris\) find it down since .*Z$/)
  t.strictSame(quorum.members(), [
    { site: 'berlin', peers: [], state: 'this site', ageSeconds: 0, observations: 1 },
    { site: 'paris', peers: ['paris:53'], state: 'heard', ageSeconds: 0, observations: 1 },
    { site: 'rome', peers: ['rome:53'], state: 'silent', ageSeconds: 61, observations: 0 },
  ])
  pass(61_000)
  t.match(quorum.members()[0], { site: 'berlin', state: 'isolated' })
  quorum.forget(HOST)
  t.strictSame([...quorum.noted], [])
})

t.test('a quorum of more sites than there are is logged once', async (t) => {
  for (const [quorum, peers, want] of [
    [3, ['paris', 'rome'], []],
    [4, ['paris', 'rome'], ['berlin and its peers are 3 sites; set it to at most 3']],
    // Two nameservers of one site.
    [3, ['rome', 'rome'], ['berlin and its peers are 2 sites; set it to at most 2']],
    // The operator has the quorum also for records without peers.
    [3, [], []],
  ] as const) {
    const set = setUp({ quorum, peers: peers.map((site) => new ToyPeer(site)) })
    set.quorum.check()
    const lines = want.map((text) => `[WARNING] quorum ${quorum} is never reached: ${text}`)
    t.strictSame(set.lines, lines, `${quorum} of ${peers.length + 1}`)
  }
})

t.test('a host with more addresses than are probed is logged once', async (t) => {
  const { settle, lines, watched } = setUp()
  const targets = Array.from({ length: 1100 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  settle([], 'up', targets)
  settle([], 'up', targets)
  t.equal(watched.get('default/app')?.length, 1100)
  t.match(lines, ['app.k.example.com: 1100 addresses of peers, 1000 are probed'])
  settle([], 'up')
  settle([], 'up', targets)
  t.equal(lines.length, 2)
})

t.test('no peer speaks for another site, nor for ours', async (t) => {
  const { settle, pass, paris, clock, found } = setUp()
  const mine = [found('berlin', 'down')]
  paris.observed = [found('berlin', 'up'), found('oslo', 'up'), found('paris', 'down')]
  pass(9000)
  paris.lastAnswerMs = clock.monotonicMs
  pass(0)
  t.match(settle(mine), /2 of 2 sites \(berlin, paris\)/)
})

t.test('a site that does not probe peers uses the reports of their own sites alone', async (t) => {
  const { settle, given, paris, found } = setUp()
  const quorum = new HealthQuorum({ ...given, observer: undefined })
  paris.observed = [found('paris', 'down')]
  t.equal(settle([found('berlin', 'down')], 'up', [ADDRESS], quorum), '')
  t.match(settle([], 'down', [ADDRESS], quorum), 'its site rome reports it')
  t.equal(quorum.isObserving, false)
})

t.test('a reload keeps decisions of a site that hears fewer sites than are set', async (t) => {
  const first = setUp({ quorum: 2 })
  const mine = [first.found('berlin', 'down')]
  first.paris.observed = [first.found('paris', 'down')]
  first.pass(9000)
  first.paris.lastAnswerMs = first.clock.monotonicMs
  first.pass(0)
  t.match(first.settle(mine), ADDRESS)
  first.clock.pass(60_000)
  const next = new HealthQuorum(first.given)
  t.equal(next.status.isIsolated, true)
  t.match(first.settle(mine, 'up', [ADDRESS], next), 'before this site became isolated')
})

// If its own site reported it after our finding, `is served again` was never logged; if before, nothing was.
for (const { name, first } of [
  { name: 'our checks find it down first', first: ['down', 'up'] },
  { name: 'its own site reports it first', first: ['up', 'down'] },
  { name: 'both at once', first: ['down', 'down'] },
] as const) {
  t.test(`the log says once that an address is out, and is served again: ${name}`, async (t) => {
    const { settle, paris, rome, clock, found, lines } = setUp()
    const step = (ours: 'up' | 'down', home: 'up' | 'down'): void => {
      clock.pass(1000)
      for (const peer of [paris, rome]) peer.lastAnswerMs = clock.monotonicMs
      paris.observed = [found('paris', ours)]
      settle([found('berlin', ours)], home)
    }
    step('up', 'up')
    step(first[0], first[1])
    step('down', 'down')
    step('down', 'down')
    step('down', 'up')
    step('up', 'up')
    step('up', 'up')
    const logged = lines.flatMap((line) => /is (?:taken out|served again)(?=: )/.exec(line) ?? [])
    t.strictSame(logged, ['is taken out', 'is served again'], lines.join(''))
    t.match(lines.join(''), `${ADDRESS} of ${HOST} is taken out: `)
  })
}

t.test('changes of many addresses do not fill the log', async (t) => {
  const { settle, pass, paris, clock, found, lines } = setUp()
  const targets = Array.from({ length: 50 }, (_, i) => `198.51.100.${i}`)
  const mine = targets.map((address) => found('berlin', 'down', address))
  paris.observed = targets.map((address) => found('paris', 'down', address))
  pass(9000)
  paris.lastAnswerMs = clock.monotonicMs
  pass(0)
  settle(mine, 'up', targets)
  pass(1000)
  t.equal(lines.filter((line) => line.includes('taken out: ')).length, 20)
  t.match(lines.at(-1), "and 30 more changes of the health of peers' addresses")
})

t.test('one peer that reports everything as down takes nothing out', async (t) => {
  const { settle, pass, paris, clock, found } = setUp()
  paris.observed = [found('paris', 'down')]
  pass(61_000)
  paris.lastAnswerMs = clock.monotonicMs
  pass(0)
  t.equal(settle([]), '', 'no other site finds it down')
  t.equal(settle([found('berlin', 'up')]), '', 'we find it up')
})

t.test('a peer that claims the name of a site cannot hide its success', async (t) => {
  const { settle, pass, paris, rome, clock, found, given } = setUp()
  const liar = new ToyPeer('paris')
  const quorum = new HealthQuorum({ ...given, peers: [paris, liar, rome] })
  const mine = [found('berlin', 'down')]
  paris.observed = [found('paris', 'up')]
  liar.observed = [found('paris', 'down')]
  pass(61_000)
  paris.lastAnswerMs = clock.monotonicMs - 900
  liar.lastAnswerMs = clock.monotonicMs
  quorum.check()
  t.equal(settle(mine, 'up', [ADDRESS], quorum), '')
  t.equal(quorum.status.sites, 3, 'and has no vote of its own')
  pass(25_000)
  liar.lastAnswerMs = clock.monotonicMs
  quorum.check()
  t.match(settle(mine, 'up', [ADDRESS], quorum), ADDRESS, 'until the site is silent')
})

for (const aheadSeconds of [-3600, -20, 0, 20, 3600]) {
  t.test(`the clock of another site changes no hold-down: ${aheadSeconds} s`, async (t) => {
    const { settle, pass, paris, rome, clock, found } = setUp({ holdDownMs: 10_000 })
    const hear = (milliseconds: number): void => {
      for (const peer of [paris, rome]) peer.lastAnswerMs = clock.monotonicMs + milliseconds
      pass(milliseconds)
    }
    const mine = [found('berlin', 'down')]
    const theirs = found('paris', 'down')
    settle([])
    paris.observed = [{ ...theirs, sinceSeconds: theirs.sinceSeconds + aheadSeconds }]
    t.equal(settle(mine), '', 'at once')
    hear(9999)
    t.equal(settle(mine), '', 'before its end')
    hear(1)
    t.match(settle(mine), ADDRESS, 'at its end')
    paris.observed = [found('paris', 'up')]
    t.equal(settle([found('berlin', 'up')]), '')
    t.equal(settle(mine), '')
    paris.observed = [{ ...theirs, sinceSeconds: theirs.sinceSeconds + aheadSeconds }]
    t.equal(settle(mine), '', 'a failure after a success waits again')
  })
}

t.test('a hold-down runs on when another nameserver of the site reports the failure', async (t) => {
  const { quorum, clock, found, pass, paris, rome } = setUp({ holdDownMs: 30_000 })
  const settle = (exporter: string): string | undefined => {
    paris.lastAnswerMs = rome.lastAnswerMs = clock.monotonicMs
    pass(0)
    const about = { rootHost: HOST, isOwn: true, generation: 'v2' } as const
    const ofSite = (site: string, exporter: string, health: EndpointHealth): SiteState => {
      const endpoints = [endpoint({ site, health, targets: [ADDRESS] })]
      return { ...about, site, exporter, seenMs: clock.monotonicMs, endpoints }
    }
    const { decisions } = quorum.settle({
      host: HOST,
      own: [endpoint()],
      ownFindings: new Map(),
      checkedKey: 'default/app',
      observed: [found('berlin', 'down')],
      // Of two nameservers, the state is that of the one which was heard last.
      siteStates: [ofSite('rome', exporter, 'down'), ofSite('paris', paris.address, 'up')],
    })
    return decisions.get(ADDRESS)?.outcome
  }
  t.equal(settle(rome.address), 'up')
  clock.pass(30_000)
  t.equal(settle('ns2.rome:53'), 'down')
})

t.test('an address that is out does not wait for the hold-down again', async (t) => {
  const { settle, given, paris, found } = setUp({ holdDownMs: 10_000 })
  const mine = [found('berlin', 'down')]
  paris.observed = [found('paris', 'down')]
  given.memory.note(HOST, new Set([ADDRESS]))
  t.match(settle(mine), ADDRESS, 'as after a restart')
})
