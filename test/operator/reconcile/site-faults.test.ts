import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { at, dnsRecord } from '../../support/operator-objects.ts'
import { EAST, KEY, OperatorFixture } from './stage.ts'

function degraded(fixture: OperatorFixture): string {
  const conditions = fixture.field('app', 'status', 'conditions') as readonly ApiObject[]
  const found = conditions.find(({ type }) => type === 'PeersDegraded')
  return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`
}

const CONFLICT = `True SiteNameConflict: peer ${EAST} reports other endpoints under the name of this site, here: give each site a name of its own with --site; if the peer is our own nameserver, check that it serves our current records`

t.test('a peer with the name of our site', async (t) => {
  const [ours, theirs] = [['192.0.2.1'], ['192.0.2.9']]
  for (const { name, said, want } of [
    { name: 'our own nameserver', said: ours, want: '' },
    { name: 'our own nameserver, which leaves out what is down', said: [], want: '' },
    { name: 'another cluster', said: theirs, want: CONFLICT },
    { name: 'another cluster that also has ours', said: [...ours, ...theirs], want: CONFLICT },
  ]) {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.say(EAST, 'here', said)
    const againMs = await fixture.reconciler.reconcile(KEY)
    t.equal(degraded(fixture), '', `${name}: it may be late`)
    if (want !== '') t.equal(againMs, 30_001, `${name}: it is checked again`)
    fixture.clock.pass(30_001)
    fixture.say(EAST, 'here', said)
    await fixture.reconcile()
    t.equal(degraded(fixture), want, name)
    t.strictSame(fixture.served(), [ours], `${name}: nothing of it is served`)
    fixture.start()
    t.strictSame(await fixture.reconcile(), [], `${name}: a restart changes nothing`)
    fixture.say(EAST, 'here', ours)
    await fixture.reconcile()
    t.match(degraded(fixture), want === '' ? /^$/ : /^False AllHeard/, `${name}: it is over`)
  }
})

t.test('our nameserver reports the endpoints of all records of a host', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  const endpoints = [{ dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.2'] }]
  fixture.cluster.put(dnsRecord({ name: 'second', spec: { endpoints } }))
  for (let i = 0; i < 2; i++) {
    fixture.say(EAST, 'here', ['192.0.2.1', '192.0.2.2'])
    await fixture.reconciler.reconcile(KEY)
    fixture.clock.pass(30_001)
  }
  t.equal(degraded(fixture), '')
})

t.test('a site that dates changes in our future', async (t) => {
  const fixture = new OperatorFixture()
  fixture.cluster.put(dnsRecord())
  const nowSeconds = Math.floor(fixture.clock.now() / 1000)
  const say = (aheadSeconds: number): void => {
    const sinceSeconds = nowSeconds + aheadSeconds
    const endpoints = [{ targets: ['192.0.2.2'], sinceSeconds }]
    fixture.peers.say(EAST, 'east', endpoints, thisMoment(fixture.clock))
  }
  say(5)
  await fixture.reconcile()
  t.equal(degraded(fixture), '', 'a small difference')
  say(3600)
  await fixture.reconcile()
  const ahead =
    'True ClockDiffers: site east dates changes in our future: its clock is ahead, or ours is behind; synchronise the clocks'
  t.equal(degraded(fixture), ahead)
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']], 'its endpoints are served')
  fixture.clock.pass(3600_000)
  await fixture.reconcile()
  t.match(degraded(fixture), /^False AllHeard/)
})

t.test('the clock of another nameserver of our site', async (t) => {
  for (const { name, said, aheadMs, want } of [
    { name: 'it agrees', said: ['192.0.2.1'], aheadMs: 9000, want: /^$/ },
    {
      name: 'it differs',
      said: ['192.0.2.1'],
      aheadMs: -3600_000,
      want: `True ClockDiffers: the clock of peer ${EAST} of this site, here, is behind ours`,
    },
    { name: 'another cluster has the name', said: ['192.0.2.9'], aheadMs: 3600_000, want: /^$/ },
  ]) {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    fixture.peers.clocksMs.set(EAST, aheadMs)
    fixture.say(EAST, 'here', said)
    await fixture.reconcile()
    t.match(degraded(fixture), want, name)
  }
})

t.test('a nameserver of our site that follows a change late keeps its clock', async (t) => {
  const fixture = new OperatorFixture()
  const put = (...targets: readonly string[]): void => {
    const endpoints = [{ dnsName: 'k.example.com', recordType: 'A', recordTTL: 60, targets }]
    const { status = {} } = fixture.cluster.stored(KEY) ?? {}
    fixture.cluster.put({ ...dnsRecord({ spec: { endpoints } }), status })
  }
  put('192.0.2.1')
  fixture.peers.clocksMs.set(EAST, -3600_000)
  fixture.say(EAST, 'here', ['192.0.2.1'])
  await fixture.reconcile()
  const differs = /^True ClockDiffers: the clock of peer/
  t.match(degraded(fixture), differs)
  put('192.0.2.3')
  const againMs = await fixture.reconciler.reconcile(KEY)
  t.match(degraded(fixture), differs, 'it is late')
  t.equal(againMs, 30_001, 'it is checked again')
  fixture.clock.pass(29_000)
  await fixture.reconcile()
  t.match(degraded(fixture), differs, 'it is late still')
  fixture.say(EAST, 'here', ['192.0.2.3'])
  await fixture.reconcile()
  t.match(degraded(fixture), differs)
  put('192.0.2.4')
  fixture.say(EAST, 'here', ['192.0.2.3'])
  await fixture.reconcile()
  fixture.clock.pass(30_001)
  fixture.say(EAST, 'here', ['192.0.2.3'])
  await fixture.reconcile()
  t.notMatch(degraded(fixture), 'clock', 'it does not follow, so it is another site')
})

// The peer's record counts as older by its own clock.
for (const { site, aheadMs, type } of [
  { site: 'zeta', aheadMs: 0, type: 'CNAME' },
  { site: 'zeta', aheadMs: -3600_000, type: 'A' },
  { site: 'zeta', aheadMs: 3600_000, type: 'A' },
  { site: 'east', aheadMs: -3600_000, type: 'CNAME' },
]) {
  t.test(`ages decide only if the clocks agree: ${site}, ${aheadMs} ms ahead`, async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    const endpoints = [
      { recordType: 'CNAME', targets: ['gw.example.org'], createdSeconds: 1_000_000_000 },
    ]
    fixture.peers.clocksMs.set(EAST, aheadMs)
    fixture.peers.say(EAST, site, endpoints, thisMoment(fixture.clock))
    await fixture.reconcile()
    const merged = fixture.field('merged-app', 'spec', 'endpoints') as readonly ApiObject[]
    t.strictSame(
      merged.map(({ recordType }) => recordType),
      [type],
    )
    const side = aheadMs > 0 ? 'ahead of' : 'behind'
    const want = aheadMs === 0 ? '' : `True ClockDiffers: the clock of site ${site} is ${side} ours`
    t.match(degraded(fixture), want)
    const text = JSON.stringify(
      at(fixture.cluster.stored('a/merged-app')!, 'metadata', 'annotations'),
    )
    t.equal(text.includes('undated'), aheadMs !== 0, 'the servers of the cluster decide alike')
  })
}

// The peer's record counts as older by its own clock.
for (const { name, fault, isUndated } of [
  { name: 'our own', fault: 'the clock is wrong', isUndated: undefined },
  { name: 'that of the peer', fault: '', isUndated: true },
] as const) {
  t.test(`ages decide only if the clocks of API servers are right: ${name}`, async (t) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    const say = (about: { readonly isUndated?: true | undefined }): void => {
      const old = {
        recordType: 'CNAME',
        targets: ['gw.example.org'],
        createdSeconds: 1_000_000_000,
      }
      fixture.peers.say(EAST, 'zeta', [{ ...old, ...about }], thisMoment(fixture.clock))
    }
    const served = (): readonly unknown[] => {
      const merged = fixture.field('merged-app', 'spec', 'endpoints') as readonly ApiObject[]
      return merged.map(({ recordType }) => recordType)
    }
    const isExported = (): boolean => {
      return JSON.stringify(fixture.field('local-app', 'spec')).includes('undated=true')
    }
    fixture.apiClock.fault = fault
    say({ isUndated })
    await fixture.reconcile()
    t.strictSame(served(), ['A'])
    const text = JSON.stringify(at(fixture.cluster.stored('a/merged-app')!, 'metadata'))
    t.match(text, 'undated', 'the servers of the cluster decide alike')
    t.equal(isExported(), fault !== '', 'and the peers')
    fixture.start()
    t.strictSame(await fixture.reconcile(), [], 'a restart changes nothing')
    fixture.apiClock.fault = ''
    say({})
    await fixture.reconcile()
    t.strictSame(served(), ['CNAME'], 'it is over')
    t.equal(isExported(), false)
  })
}
