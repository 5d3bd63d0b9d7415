import t from 'tap'
import type { Observation } from '../../../../src/client/resolver/observation.ts'
import {
  type LookupState,
  lookupDue,
  NEVER_ASKED,
  NOT_ASKED,
  noteLookup,
  planRemoval,
} from '../../../../src/egress/policies/openshift/removal.ts'

const NOW = 1_700_000_000_000
/** Of the monotonic clock to the wall clock. */
const OFFSET = NOW - 1000
const NAME = new Uint8Array([1, 0x61, 0])

/** An address whose lookup was `age` seconds ago. */
const address = (ip: string, ttl: number, age: number) => ({ ip, endMs: NOW + (ttl - age) * 1000 })
const base = (atMs: number, family: 1 | 2) => ({
  name: NAME,
  family,
  atMs: atMs - OFFSET,
  server: '',
})
const nodata = (atMs: number, family: 1 | 2): Observation => ({
  ...base(atMs, family),
  kind: 'nodata',
})
const failed = (atMs: number, family: 1 | 2, isReply: boolean): Observation => ({
  ...base(atMs, family),
  kind: 'failed',
  reason: isReply ? 'NXDOMAIN' : 'timed out',
  isReply,
})
const answer = (atMs: number, ip: string, ttlSeconds: number): Observation => {
  const family = ip.includes(':') ? 2 : 1
  const fact = { family: family as 1 | 2, address: ip, chain: [], ttlSeconds }
  return { ...base(atMs, family), kind: 'answer', facts: [fact] }
}
const after = (...rounds: readonly (readonly Observation[])[]): LookupState =>
  rounds.reduce(
    (state, found) => noteLookup(state, found, [], { nowMs: NOW, offsetMs: OFFSET }),
    NEVER_ASKED as LookupState,
  )
/** Both families were answered just now, without addresses. */
const ANSWERED = after([nodata(NOW, 1), nodata(NOW, 2)])

/** When an address that nothing renews is removed; `left`: seconds until then, 0 = now. */
const DEATHS: { name: string; ttl: number; age: number; state: LookupState; left: number }[] = [
  { name: 'its TTL has not ended', ttl: 10, age: 5, state: ANSWERED, left: 10 },
  { name: '2 s after the end', ttl: 10, age: 12, state: ANSWERED, left: 3 },
  { name: '4 s after the end', ttl: 10, age: 14, state: ANSWERED, left: 1 },
  { name: '4 s after the end of a short TTL', ttl: 8, age: 12, state: ANSWERED, left: 1 },
  { name: '5 s after the end', ttl: 8, age: 13, state: ANSWERED, left: 0 },
  { name: '6 s after the end', ttl: 8, age: 14, state: ANSWERED, left: 0 },
  { name: 'TTL 4, 5 s old', ttl: 4, age: 5, state: ANSWERED, left: 4 },
  { name: 'an invalid name', ttl: 8, age: 14, state: NOT_ASKED, left: 24 },
  { name: 'an invalid name, later', ttl: 8, age: 38, state: NOT_ASKED, left: 0 },
  { name: 'no server was asked yet', ttl: 8, age: 3600, state: NEVER_ASKED, left: Infinity },
  {
    name: 'the first lookup since the process stood still',
    ttl: 8,
    age: 3600,
    state: after([answer(NOW - 3_600_000, '192.0.2.1', 8)], [failed(NOW, 1, false)]),
    left: 20,
  },
  {
    name: 'lookups fail for 20 s since then',
    ttl: 8,
    age: 3600,
    state: after([failed(NOW - 20_000, 1, false)], [failed(NOW, 1, true)]),
    left: 0,
  },
  {
    name: 'lookups fail for 19 s, the other family was answered',
    ttl: 8,
    age: 3600,
    state: after([failed(NOW - 19_000, 1, false)], [failed(NOW, 1, true), nodata(NOW, 2)]),
    left: 1,
  },
  {
    name: 'only the other family was answered',
    ttl: 8,
    age: 14,
    state: after([failed(NOW, 1, false), nodata(NOW, 2)]),
    left: 24,
  },
  {
    name: 'errors',
    ttl: 8,
    age: 14,
    state: after([failed(NOW, 1, true), failed(NOW, 2, true)]),
    left: 24,
  },
  {
    name: 'the answer came before the end',
    ttl: 8,
    age: 14,
    state: after([nodata(NOW - 7000, 1)]),
    left: Infinity,
  },
  {
    name: 'our own answer has it',
    ttl: 8,
    age: 14,
    state: after([answer(NOW - 2000, '192.0.2.1', 10)]),
    left: 13,
  },
  {
    name: 'our own answer has it, with TTL 0',
    ttl: 8,
    age: 14,
    state: after([answer(NOW - 2000, '192.0.2.1', 0)]),
    left: 8,
  },
  {
    name: 'our own answer has another one',
    ttl: 8,
    age: 14,
    state: after([answer(NOW - 2000, '192.0.2.2', 10)]),
    left: 0,
  },
]

t.test('when an address dies', async (t) => {
  for (const { name, ttl, age, state, left } of DEATHS) {
    const names = [{ dnsName: 'a.', addresses: [address('192.0.2.1', ttl, age)] }]
    const plan = planRemoval(names, () => state, NOW, NOW - 1e6)
    t.equal(plan.addresses.size, left === 0 ? 1 : 0, name)
    t.equal(plan.nextMs, left === 0 ? Number.POSITIVE_INFINITY : NOW + left * 1000, name)
    t.equal(plan.names.size, 0, name)
  }
})

t.test('after a start, stored addresses have time to be asked for', async (t) => {
  const names = [{ dnsName: 'a.', addresses: [address('2001:DB8::1', 30, 3600)] }]
  t.equal(planRemoval(names, () => NEVER_ASKED, NOW, NOW - 1e6).addresses.size, 0)
  const silent = after([failed(NOW, 2, false)])
  const { addresses, nextMs } = planRemoval(names, () => silent, NOW, NOW - 1000)
  t.equal(addresses.size, 0)
  t.equal(nextMs, NOW + 29_000)
  const answered = after([nodata(NOW, 2)])
  const { addresses: dead, unanswered } = planRemoval(names, () => answered, NOW, NOW - 1000)
  t.strictSame([...dead.get('a.')!], ['2001:DB8::1'], 'as written')
  t.equal(unanswered, 0)
  const kept = after([answer(NOW, '2001:db8::1', 30)])
  t.equal(planRemoval(names, () => kept, NOW, NOW - 1000).addresses.size, 0, 'another text of it')
})

t.test('of several addresses, the dead ones are removed, and the next one decides', async (t) => {
  const addresses = [
    address('192.0.2.1', 10, 20),
    address('192.0.2.2', 18, 20),
    address('192.0.2.3', 30, 20),
    address('2001:db8::1', 10, 20),
  ]
  const other = { dnsName: 'b.', addresses: [address('192.0.2.1', 16, 20)] }
  const plan = planRemoval([{ dnsName: 'a.', addresses }, other], () => ANSWERED, NOW, 0)
  t.strictSame([...plan.addresses.keys()], ['a.'])
  t.strictSame([...plan.addresses.get('a.')!], ['192.0.2.1', '2001:db8::1'])
  t.equal(plan.nextMs, NOW + 1000)
})

t.test('a name dies after six failed lookups, if it has no address', async (t) => {
  const error = [failed(NOW - 30_000, 1, true), failed(NOW - 30_000, 2, true)]
  const silence = [failed(NOW, 1, false), failed(NOW, 2, false)]
  const isGone = (state: LookupState, ...addresses: readonly { ip: string; endMs: number }[]) =>
    planRemoval([{ dnsName: 'a.', addresses }], () => state, NOW, 0).names.has('a.')
  const errors = (count: number) => Array.from({ length: count }, () => error)
  t.notOk(isGone(after(...errors(5))))
  t.ok(isGone(after(...errors(6))))
  t.ok(isGone(after(...errors(6)), address('192.0.2.1', 10, 60)))
  t.notOk(isGone(after(...errors(6)), address('192.0.2.1', 100, 60)))
  t.ok(isGone(after(...errors(3), silence, ...errors(3))), 'silence does not count')
  t.notOk(isGone(after(...Array.from({ length: 20 }, () => silence))))
  t.notOk(isGone(after(...errors(5), [nodata(NOW, 1), failed(NOW, 2, true)], ...errors(5))))
})

t.test('a lookup is due when a TTL ends that none has followed', async (t) => {
  const START = NOW - 100_000
  const due = (state: LookupState, ...addresses: readonly { ip: string; endMs: number }[]) => {
    const dueMs = lookupDue(addresses, state, START)
    return dueMs === undefined ? undefined : (dueMs - NOW) / 1000
  }
  const asked = (agoSeconds: number) => after([nodata(NOW - agoSeconds * 1000, 1)])
  t.equal(due(NEVER_ASKED), undefined)
  t.equal(due(NEVER_ASKED, address('192.0.2.1', 30, 10), address('192.0.2.2', 25, 10)), 16)
  t.equal(due(NEVER_ASKED, address('192.0.2.1', 10, 60)), -49, 'at once')
  t.equal(due(asked(5), address('192.0.2.1', 10, 60)), undefined, 'asked since')
  t.equal(due(asked(5), address('192.0.2.1', 10, 60), address('192.0.2.2', 30, 10)), 21)
  t.equal(due(asked(1), address('192.0.2.1', 10, 9)), 4, 'at least 5 s after the last one')
  t.equal(due(asked(10), address('192.0.2.1', 86_400, 10)), 1790, 'at most 30 min after it')
  const renewed = after([answer(NOW, '192.0.2.1', 60)])
  t.equal(due(renewed, address('192.0.2.1', 10, 60)), 61, 'our own answer counts')
})

t.test('a lookup whose answer the status lacks is repeated, each time later', async (t) => {
  const due = (state: LookupState, ...addresses: readonly { ip: string; endMs: number }[]) =>
    (lookupDue(addresses, state, NOW - 100_000)! - NOW) / 1000
  const found = [answer(NOW, '192.0.2.1', 86_400), answer(NOW, '2001:db8::1', 86_400)]
  const rounds = (count: number) => after(...Array.from({ length: count }, () => found))
  t.strictSame(
    [1, 2, 3, 4, 9, 10, 11].map((count) => due(rounds(count))),
    [5, 10, 20, 40, 1280, 1800, 1800],
    'at most 30 min after the last one',
  )
  const shown = [address('192.0.2.1', 86_400, 0), address('2001:DB8:0::1', 86_400, 0)]
  t.equal(due(rounds(1), shown[0]!), 5, 'one of two addresses')
  t.equal(due(rounds(1), ...shown), 1800, 'the status has both')
  const seen = noteLookup(rounds(3), found, shown, { nowMs: NOW, offsetMs: OFFSET })
  t.equal(due(seen), 5, 'the wait starts anew')
})
