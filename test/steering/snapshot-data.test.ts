import t from 'tap'
import { scanAddress } from '../../src/dns/text/address.ts'
import { FlatClassTrie } from '../../src/geo/class-trie.ts'
import { buildClasses } from '../../src/geo/classes/build-classes.ts'
import { scanNet } from '../../src/geo/net.ts'
import {
  EMPTY_STEERING_SNAPSHOT,
  Policies,
  type SteeringSnapshot,
} from '../../src/steering/policies.ts'
import { FollowedSteering, steeringSnapshotData } from '../../src/steering/snapshot-data.ts'
import { scanTierKey } from '../../src/steering/tier-key.ts'

const code = (text: string) => scanTierKey(text)!

const NETS = ['10.0.1.0/24 NET-A', '10.0.2.0/24 NET-B', '2001:db8::/32 NET-C'].map((line) => {
  const [cidr, text] = line.split(' ')
  const net = scanNet(cidr!, text!)
  if (typeof net === 'string') throw new Error(net)
  return net
})

function policiesOf(...ladders: readonly (readonly string[])[]): Policies {
  const policies = new Policies()
  for (const ladder of ladders) policies.intern(ladder.map(code))
  const data = buildClasses({ databases: [], nets: NETS, codes: policies.codes })
  policies.adopt(new FlatClassTrie(data))
  return policies
}

/** As it comes to another thread. */
const sent = (snapshot: SteeringSnapshot) => structuredClone(steeringSnapshotData(snapshot))

const ADDRESSES = ['10.0.1.9', '10.0.2.9', '10.0.3.9', '2001:db8::1', '2001:db9::1']

/** Tier and depth for each address and policy. */
function tiers({ trie, tierOf, policyCount }: SteeringSnapshot): string[] {
  return ADDRESSES.flatMap((text) => {
    const { bytes, family } = scanAddress(text)!
    return Array.from({ length: policyCount }, (_, policy) => {
      const found = trie.lookup(bytes, family, bytes.length * 8)
      return `${text} ${policy}: ${tierOf[policy * trie.classCount + found]} at ${trie.depth}`
    })
  })
}

t.test('a snapshot that is followed chooses as the one it was shared from', async (t) => {
  const { snapshot } = policiesOf(['NET-A'], ['NET-A', 'NET-B'], ['NET-B', 'NET-C'])
  const follower = new FollowedSteering(() => {})
  t.equal(follower.snapshot, EMPTY_STEERING_SNAPSHOT)
  follower.follow(sent(snapshot))
  t.strictSame(tiers(follower.snapshot), tiers(snapshot))
  t.equal(follower.snapshot.policyCount, 3)
})

t.test('shared memory is not copied, and a message is small', async (t) => {
  const { snapshot } = policiesOf(['NET-A'])
  const shared = sent(snapshot)
  t.equal(shared.tierOf.buffer instanceof SharedArrayBuffer, true)
  t.equal(shared.words.buffer instanceof SharedArrayBuffer, true)
  t.notOk('codesOf' in shared)
})

t.test('policies that come later are there once their snapshot is followed', async (t) => {
  const policies = policiesOf(['NET-A'])
  const follower = new FollowedSteering(() => follower.follow(sent(policies.snapshot)))
  follower.follow(sent(policies.snapshot))
  const before = tiers(follower.snapshot)
  policies.intern([code('NET-A'), code('NET-B')])
  t.strictSame(tiers(follower.snapshot), before, 'not before')
  follower.catchUp()
  t.equal(follower.snapshot.policyCount, 2)
  t.strictSame(tiers(follower.snapshot), tiers(policies.snapshot))
})
