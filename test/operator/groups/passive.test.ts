import t from 'tap'
import type { GroupDirectory } from '../../../src/operator/groups/group-set.ts'
import type { Membership } from '../../../src/operator/groups/membership.ts'
import {
  AUTHORITATIVE,
  address,
  DelegationFixture,
  HOST,
} from '../../support/delegation-fixture.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import { EAST, OperatorFixture } from '../reconcile/stage.ts'

/** The membership of all records, as a test sets it. */
class ToyGroups implements GroupDirectory {
  readonly ownGroup = 'g1'
  membership: Membership | 'pending' | undefined
  /** Takes precedence. */
  readonly ofKey = new Map<string, Membership>()
  readonly forgotten: string[] = []

  membershipOf(key: string): Membership | 'pending' | undefined {
    return this.ofKey.get(key) ?? this.membership
  }

  forget(key: string): void {
    this.forgotten.push(key)
  }
}

const ACTIVE = { group: 'g1', active: ['g1', 'g2'] }
const PASSIVE = { group: 'g1', active: ['g2'] }
const UNKNOWN = { group: 'g1', active: undefined }
const INACTIVE = 'No further actions to take while in inactive group'

class GroupFixture extends OperatorFixture {
  readonly toyGroups = new ToyGroups()
  override groups = this.toyGroups
  override reconciler = this.start()

  constructor() {
    super()
    this.cluster.put(dnsRecord())
  }

  condition(type: string): unknown {
    const conditions = this.field('app', 'status', 'conditions') as { type: string }[]
    return conditions.find((one) => one.type === type)
  }
}

t.test('the endpoints of a passive cluster leave the merged record, and return', async (t) => {
  const fixture = new GroupFixture()
  const { toyGroups } = fixture
  fixture.say(EAST, 'east', ['192.0.2.2'])
  toyGroups.membership = ACTIVE
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  t.match(fixture.field('app', 'status'), { group: 'g1', activeGroups: 'g1,g2' })
  t.match(fixture.condition('Active'), {
    status: 'True',
    reason: 'MemberOfActiveGroup',
    message: 'Group is included in active groups',
  })

  toyGroups.membership = PASSIVE
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.2']])
  t.match(fixture.field('app', 'status'), { group: 'g1', activeGroups: 'g2' })
  t.match(fixture.condition('Active'), {
    status: 'False',
    reason: 'NotMemberOfActiveGroup',
    message: 'Group is not included in active groups',
  })
  t.strictSame(fixture.ready(), ['False', 'MemberOfInactiveGroup', INACTIVE])
  const exported = JSON.stringify(fixture.field('local-app', 'spec', 'endpoints'))
  t.notMatch(exported, /"targets":\["192\.0\.2\.1"\]/, 'v1 peers get none')
  t.match(exported, /health=down/, 'peers of generation v2 get it as down')

  toyGroups.membership = ACTIVE
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  t.strictSame(fixture.ready(), ['True', 'ProviderSuccess', 'Provider ensured the dns record'])
})

t.test('a passive cluster serves its endpoints where no other site has any', async (t) => {
  const fixture = new GroupFixture()
  fixture.toyGroups.membership = PASSIVE
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1']])
})

t.test('active groups that are not known do not make a cluster passive', async (t) => {
  const fixture = new GroupFixture()
  fixture.say(EAST, 'east', ['192.0.2.2'])
  fixture.toyGroups.membership = 'pending'
  t.strictSame(await fixture.reconcile(), [], 'the first lookup has not ended')
  fixture.toyGroups.membership = UNKNOWN
  await fixture.reconcile()
  t.strictSame(fixture.served(), [['192.0.2.1', '192.0.2.2']])
  t.match(fixture.condition('Active'), { status: 'True', reason: 'MemberOfActiveGroup' })
  t.equal(fixture.field('app', 'status', 'activeGroups'), undefined)
})

t.test('an operator without a group removes what the one before wrote', async (t) => {
  const fixture = new GroupFixture()
  fixture.toyGroups.membership = ACTIVE
  await fixture.reconcile()
  fixture.toyGroups.membership = undefined
  await fixture.reconcile()
  t.equal(fixture.condition('Active'), undefined)
  t.equal(fixture.field('app', 'status', 'group'), undefined)
  t.equal(fixture.field('app', 'status', 'activeGroups'), undefined)
})

t.test('a record that is gone needs no groups', async (t) => {
  const fixture = new GroupFixture()
  fixture.toyGroups.membership = ACTIVE
  await fixture.reconcile()
  fixture.cluster.markDeleted('a/app')
  await fixture.reconcile()
  t.ok(fixture.toyGroups.forgotten.includes('a/app'))
})

t.test('a passive cluster leaves an authoritative record to an active one', async (t) => {
  const groups = new ToyGroups()
  const fixture = new DelegationFixture(undefined, groups)
  const setActive = (...active: string[]): void => {
    groups.ofKey.set('a/one', { group: 'g1', active })
    groups.ofKey.set('a/two', { group: 'g2', active })
  }
  setActive('g1')
  fixture.delegate('one', [address(HOST, '192.0.2.1')])
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
  fixture.delegate('two', [address(HOST, '192.0.2.2')])
  await fixture.settleLater()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
  t.equal(fixture.condition('two'), `False MemberOfInactiveGroup: ${INACTIVE}`)
  t.match(fixture.condition('two', 'Active'), /^False NotMemberOfActiveGroup: /)
  t.match(JSON.stringify(fixture.field(AUTHORITATIVE, 'spec')), /external-dns\/group=g1,/)

  setActive('g2')
  await fixture.settleLater()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.2`])
  setActive('g1', 'g2')
  await fixture.settleLater()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1,192.0.2.2`])
  setActive()
  await fixture.settleLater()
  t.ok(fixture.served().length > 0, 'the last one stays, although no group is active')
})
