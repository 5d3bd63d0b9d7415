import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { EAST, HOUR_MS, KEY, OperatorFixture, WEST } from './stage.ts'

t.test(
  'a peer that was started anew has forgotten when it changed: nothing is written',
  async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    const say = (target: string, sinceSeconds: number) =>
      fixture.peers.say(
        EAST,
        'east',
        [{ targets: [target], sinceSeconds }],
        thisMoment(fixture.clock),
      )
    const since = () =>
      JSON.stringify(fixture.field('app', 'status', 'peers')).match(/"\d{10}"/)?.[0]
    say('192.0.2.2', 1_790_000_500)
    await fixture.reconcile()
    say('192.0.2.2', 1_790_000_000)
    t.strictSame(await fixture.reconcile(), [], 'we both go on')
    fixture.start()
    t.strictSame(await fixture.reconcile(), [], 'we are started anew as well')
    t.equal(since(), '"1790000500"')
    say('192.0.2.2', 1_790_000_600)
    t.strictSame(await fixture.reconcile(), ['status app'], 'it was something else meanwhile')
    t.equal(since(), '"1790000600"')
    say('192.0.2.3', 1_790_000_000)
    t.strictSame(
      await fixture.reconcile(),
      ['apply merged-app', 'status app'],
      'it is something else now',
    )
    t.equal(since(), '"1790000000"')
  },
)

t.test('an endpoint that a live peer no longer reports is removed at once', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'east', ['192.0.2.2'])
  await fixture.reconcile()
  fixture.say(EAST, 'east', [])
  t.strictSame(await fixture.reconcile(), ['apply merged-app', 'status app'])
  t.strictSame(fixture.served(), [['192.0.2.1']])
})

t.test('a silent peer is heard until its word runs out, also over a restart', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'east', ['192.0.2.2'])
  await fixture.reconcile()
  fixture.clock.pass(HOUR_MS)
  fixture.peers.fallSilent(EAST)
  t.strictSame(await fixture.reconcile(), ['status app'], 'reported once, and served as before')
  t.match(fixture.field('app', 'status', 'peers'), [
    { address: EAST, state: 'Silent', site: 'east', serial: 7, message: 'no answer' },
  ])
  t.match(fixture.ready()[2], '1 of 2 nameservers is silent: 192.0.2.53:53')
  fixture.peers.answers.clear()
  fixture.start()
  t.strictSame(await fixture.reconcile(), [])
  fixture.peers.fallSilent(EAST)
  t.strictSame(await fixture.reconcile(), [])
  fixture.clock.pass(23 * HOUR_MS - 1)
  t.strictSame(await fixture.reconcile(), [])
  fixture.clock.pass(1)
  t.strictSame(await fixture.reconcile(), ['apply merged-app', 'status app'])
  t.strictSame(fixture.served(), [['192.0.2.1']])
})

// The exporter of a silent peer's state was guessed: the state of a relay counted as that of the site.
t.test(
  'a relay that is silent has no say beside the site itself, also over a restart',
  async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.say(EAST, 'east', ['192.0.2.2'])
    fixture.relay(WEST, 'east', ['192.0.2.9'])
    fixture.peers.fallSilent(WEST)
    await fixture.reconcile()
    t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
    const answers = new Map(fixture.peers.answers)
    fixture.peers.answers.clear()
    fixture.start()
    t.strictSame(await fixture.reconcile(), [], 'before any has answered')
    for (const [address, answer] of answers) fixture.peers.answers.set(address, answer)
    t.strictSame(await fixture.reconcile(), [])
    t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  },
)

// It was forgotten whose nameserver it is that had nothing, and a relay brought back what was gone.
t.test(
  'an endpoint that a site removed stays removed while the site is silent, also over a restart',
  async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.say(EAST, 'east', [])
    fixture.relay(WEST, 'east', ['192.0.2.9'])
    await fixture.reconcile()
    t.strictSame(fixture.served(), [['192.0.2.1']])
    const relayed = fixture.peers.answers.get(WEST)!
    fixture.peers.answers.clear()
    fixture.start()
    t.strictSame(await fixture.reconcile(), [], 'before any has answered')
    fixture.peers.answers.set(WEST, relayed)
    fixture.peers.fallSilent(EAST)
    t.strictSame(await fixture.reconcile(), ['status app'])
    fixture.peers.answers.delete(EAST)
    fixture.start()
    t.strictSame(await fixture.reconcile(), [])
    t.strictSame(fixture.served(), [['192.0.2.1']])
  },
)

t.test(
  'statuses of before: what they leave open costs one write, and most cost none',
  async (t) => {
    const table: readonly {
      readonly name: string
      readonly say: (fixture: OperatorFixture) => void
      readonly writes: readonly string[]
    }[] = [
      {
        name: 'live sites, one with nothing',
        say: (fixture) => {
          fixture.say(EAST, 'east', ['192.0.2.2'])
          fixture.say(WEST, 'west', [])
        },
        writes: [],
      },
      {
        name: 'a silent site',
        say: (fixture) => {
          fixture.say(EAST, 'east', ['192.0.2.2'])
          fixture.peers.fallSilent(EAST)
        },
        writes: [],
      },
      {
        name: 'a relay of one site, live',
        say: (fixture) => fixture.relay(WEST, 'east', ['192.0.2.9']),
        writes: ['status app'],
      },
      {
        name: 'a relay of one site, silent',
        say: (fixture) => {
          fixture.relay(WEST, 'east', ['192.0.2.9'])
          fixture.peers.fallSilent(WEST)
        },
        writes: ['status app'],
      },
    ]
    for (const { name, say, writes } of table) {
      const fixture = new OperatorFixture()
      fixture.peersForm = 'unmarked'
      fixture.cluster.put(dnsRecord())
      say(fixture)
      await fixture.reconcile()
      const answers = new Map(fixture.peers.answers)
      fixture.peers.answers.clear()
      fixture.peersForm = 'whole'
      fixture.start()
      t.strictSame(await fixture.reconcile(), [], `${name}: no peer has answered yet`)
      for (const [address, answer] of answers) fixture.peers.answers.set(address, answer)
      t.strictSame(await fixture.reconcile(), writes, name)
      fixture.start()
      t.strictSame(await fixture.reconcile(), [], `${name}, and once more`)
    }
  },
)

t.test('clocks that are set neither end the word of a silent peer nor keep it', async (t) => {
  for (const stepMs of [10 * 24 * HOUR_MS, -10 * 24 * HOUR_MS]) {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.say(EAST, 'east', ['192.0.2.2'])
    fixture.peers.fallSilent(EAST)
    await fixture.reconcile()
    fixture.clock.nowMs += stepMs
    t.strictSame(await fixture.reconcile(), [])
    fixture.clock.pass(24 * HOUR_MS - 1)
    t.strictSame(await fixture.reconcile(), [])
    fixture.clock.pass(1)
    t.strictSame(await fixture.reconcile(), ['apply merged-app', 'status app'])
  }
})

// It was kept for as long as the clock was ahead, and for ever by restarts.
t.test('a word with a time that is yet to come counts from the restart', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'east', ['192.0.2.2'])
  fixture.peers.fallSilent(EAST)
  await fixture.reconcile()
  fixture.peers.answers.clear()
  fixture.clock.nowMs -= 30 * 24 * HOUR_MS
  fixture.start()
  t.strictSame(await fixture.reconcile(), ['status app'], 'the time is set right')
  fixture.clock.pass(23 * HOUR_MS)
  fixture.start()
  t.strictSame(await fixture.reconcile(), [])
  fixture.clock.pass(HOUR_MS)
  t.strictSame(await fixture.reconcile(), ['apply merged-app', 'status app'])
})

t.test(
  'a record that is refused for long has its peers heard again before they expire',
  async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.say(EAST, 'east', ['192.0.2.2'])
    await fixture.reconcile()
    const coredns = fixture.cluster.secrets.get('a/coredns')!
    fixture.cluster.secrets.clear()
    await fixture.reconcile()
    fixture.clock.pass(48 * HOUR_MS)
    fixture.cluster.put(coredns)
    const answer = fixture.peers.answers.get(EAST)!
    fixture.peers.answers.clear()
    t.strictSame(await fixture.reconcile(), ['status app'], 'they are asked anew')
    t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
    t.equal(fixture.peers.wanted.get(KEY), 'k.example.com')
    fixture.peers.answers.set(EAST, answer)
    fixture.clock.pass(10_000)
    t.strictSame(
      await fixture.reconcile(),
      ['apply merged-app', 'status app'],
      'what was said long ago',
    )
  },
)

t.test('a peer that is dead from the start stops nothing', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(WEST, 'west', ['192.0.2.3'])
  fixture.peers.fallSilent(EAST)
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.3']])
  t.equal(fixture.ready()[0], 'True')
  t.match(fixture.field('app', 'status', 'peers'), [{ state: 'Unknown' }, { state: 'Live' }])
})

t.test('a nameserver that the Secret names no longer is forgotten', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'east', ['192.0.2.2'])
  await fixture.reconcile()
  fixture.cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com' }))
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1']])
  t.strictSame(fixture.field('app', 'status', 'peers'), [])
})

t.test('our own endpoints are ignored if our own nameserver reports them', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  fixture.say(EAST, 'here', ['192.0.2.77'])
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1']])
})

t.test('a conflict of sites is reported, and the oldest record decides', async (t) => {
  const fixture = new OperatorFixture()
  const at = { dnsName: 'www.k.example.com', recordTTL: 60 }
  const own = { ...at, recordType: 'CNAME', targets: ['lb.example.net'] }
  fixture.cluster.put(dnsRecord({ spec: { endpoints: [own] } }))
  const theirs = { dnsName: at.dnsName, createdSeconds: 1 }
  fixture.peers.say(EAST, 'east', [theirs], thisMoment(fixture.clock))
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.2']])
  const text =
    'www.k.example.com.: CNAME (a/app) beside A (east: record of k.example.com): the CNAME is not served, because a CNAME must be alone; delete one of them'
  t.strictSame([...new Set(fixture.conflicts)], [text])
  t.strictSame(fixture.ready().slice(0, 2), ['False', 'ProviderError'], 'nothing of it is served')
  t.match(fixture.ready()[2], text)
  t.strictSame(fixture.field('app', 'status', 'endpoints'), [
    { dnsName: at.dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.2'] },
  ])
})
