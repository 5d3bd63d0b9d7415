import fc from 'fast-check'
import t from 'tap'
import { thisMoment } from '../../../src/base/moment.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { ClusterServer } from '../../support/cluster-server.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import type { PeerText } from '../../support/peer-text.ts'
import { runs } from '../../support/runs.ts'
import { EAST, OperatorFixture, WEST } from './stage.ts'

/*
 * A site of two nameservers. After a change of health, they report the new version one after the other, and its operator may
 * date several changes in one second.
 */

const TARGETS = ['192.0.2.2', '192.0.2.3', '192.0.2.4'] as const
const ID = 'east-1'
/** Nameservers that differ for longer, 30 s, count as two sites with one name. */
const APART_S_MAX = 25

interface Change {
  /** Targets that are down from now on. */
  readonly down: readonly string[]
  /** Seconds since the change before. */
  readonly seconds: number
  /** The nameserver that has the change first, and whether the other one has it before the next change. */
  readonly first: string
  readonly isFollowed: boolean
}

const change: fc.Arbitrary<Change> = fc.record({
  down: fc.subarray([...TARGETS]),
  seconds: fc.constantFrom(0, 1, 20),
  first: fc.constantFrom(EAST, WEST),
  isFollowed: fc.boolean(),
})

/** As `toPeerEndpoints` exports it. */
function versionOf(down: readonly string[], sinceSeconds: number): Partial<PeerText> {
  const working = TARGETS.filter((one) => !down.includes(one))
  const health = working.length === 0 ? 'down' : 'up'
  const targets = working.length === 0 ? [...TARGETS] : working
  const about = { createdSeconds: 1_600_000_000, recordId: '01234567', weight: 10 }
  return { ...about, setIdentifier: ID, targets, health, sinceSeconds }
}

t.test('no change of health is a conflict while nameservers of a site converge', async (t) => {
  const property = fc.asyncProperty(fc.array(change, { maxLength: 6 }), async (changes) => {
    const fixture = new OperatorFixture()
    fixture.cluster.put(dnsRecord())
    const say = (address: string, version: Partial<PeerText>): void => {
      fixture.peers.say(address, 'east', [version], thisMoment(fixture.clock))
    }
    const check = async (): Promise<void> => {
      await fixture.reconciler.reconcile('a/app')
      const conditions = fixture.field('app', 'status', 'conditions') as readonly ApiObject[]
      const accepted = conditions.find(({ type }) => type === 'PeersAccepted')
      const names = conditions.find(({ type }) => type === 'PeersDegraded')
      for (const one of [accepted, names]) {
        const isFalse = one?.reason === 'EndpointConflict' || one?.reason === 'SiteNameConflict'
        if (isFalse) throw new Error(`${one.reason}: ${one.message}`)
      }
    }
    const nowSeconds = () => Math.floor(fixture.clock.now() / 1000)
    let version = versionOf([], nowSeconds())
    for (const address of [EAST, WEST]) say(address, version)
    await check()
    let apartS = 0
    for (const { down, seconds, first, isFollowed } of changes) {
      if (apartS + seconds > APART_S_MAX) {
        for (const address of [EAST, WEST]) say(address, version)
        apartS = 0
      }
      fixture.clock.pass(seconds * 1000)
      version = versionOf(down, nowSeconds())
      say(first, version)
      await check()
      fixture.clock.pass(500)
      if (isFollowed) say(first === EAST ? WEST : EAST, version)
      apartS = isFollowed ? 0 : apartS + seconds + 0.5
      await check()
    }
  })
  await fc.assert(property, { numRuns: runs(200) })
  t.pass()
})

t.test('a failover list is judged once all nameservers were heard', async (t) => {
  for (const { theirs, warning } of [
    { theirs: 'eu', warning: [] },
    {
      theirs: 'ea',
      warning: [
        'k.example.com.: failover names "eu", which no endpoint has; correct the annotation (here: record of k.example.com)',
      ],
    },
  ]) {
    const fixture = new OperatorFixture()
    const code = [{ name: 'geo-code', value: 'GEO-NA' }]
    const about = { dnsName: 'k.example.com', recordType: 'A', recordTTL: 60 }
    const own = { ...about, targets: ['192.0.2.1'], setIdentifier: 'us', providerSpecific: code }
    const annotations = { 'sextant.io/failover': 'GEO-NA: eu' }
    const record = dnsRecord({ spec: { endpoints: [own] }, metadata: { annotations } })
    fixture.cluster.put(record)
    const server = new ClusterServer()
    let isReported = false
    /** Returns what the server logs, and checks that the operator's condition says it from then on. */
    const serve = async (): Promise<readonly string[]> => {
      await fixture.reconcile()
      server.apply(fixture.cluster.records.values())
      const logged = server.conflicts.splice(0)
      const [, , message] = fixture.ready()
      isReported ||= logged.length > 0
      t.equal(/failover names/.test(String(message)), isReported, String(message))
      return logged
    }
    const say = (address: string, site: string, setIdentifier: string): void => {
      const endpoint = { targets: ['192.0.2.9'], setIdentifier, geoCodes: ['GEO-EU'] }
      fixture.peers.say(address, site, [endpoint], thisMoment(fixture.clock))
    }
    t.strictSame(await serve(), [], 'no nameserver was heard')
    say(WEST, 'west', 'we')
    t.strictSame(await serve(), [], 'one of two was heard')
    fixture.peers.fallSilent(EAST)
    t.strictSame(await serve(), [], 'the other one is silent')
    say(EAST, 'east', theirs)
    t.strictSame(await serve(), warning, theirs)
    fixture.start()
    fixture.peers.fallSilent(EAST)
    t.strictSame(await serve(), [], 'the report is known after a restart')
  }
})
