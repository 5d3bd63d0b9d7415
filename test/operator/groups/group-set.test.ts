import t, { type Test } from 'tap'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import type { ResourceRecord } from '../../../src/dns/message/message.ts'
import { GroupLookup } from '../../../src/health/drain/group-lookup.ts'
import { GroupSet } from '../../../src/operator/groups/group-set.ts'
import { decide, type Publishing } from '../../../src/operator/plan/decide.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { scanHost } from '../../../src/records/validate/names.ts'
import { ToyCluster } from '../../support/operator-cluster.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const NAME = scanHost('kuadrant-active-groups.k.example.com')!
const KEY = 'a/app'

function groupsRecord(groups: string): ResourceRecord {
  const text = Buffer.from(`version=1;groups=${groups}`)
  const rdata = Buffer.concat([Buffer.from([text.length]), text])
  return { owner: NAME, type: RRType.TXT, rrclass: RRClass.IN, ttlSeconds: 30, rdata }
}

interface PublishingOptions {
  /** Of the provider Secret, beside its zone. */
  readonly data: Readonly<Record<string, string>>
  /** `status.activeGroups` of the record; absent = it has no status. */
  readonly stored?: string
}

function publishingOf({ data, stored }: PublishingOptions): Publishing {
  const cluster = new ToyCluster()
  cluster.put(secret('a', 'coredns', { ZONES: 'k.example.com', ...data }))
  const parts = stored === undefined ? {} : { status: { activeGroups: stored } }
  const action = decide(new DnsRecordView(dnsRecord(parts)), cluster.secretsOf('a'))
  if (action.kind !== 'publish') throw new Error(JSON.stringify(action))
  return action.publishing
}

/** A set, and a nameserver whose answer is `state`: groups, or an rcode. */
async function stage(t: Test, systemServers: () => readonly ScriptedServer[] = () => []) {
  const state: { answer: string | number } = { answer: 'g1&&g2' }
  const server = await ScriptedServer.open(t, () => {
    return typeof state.answer === 'number' ? state.answer : [groupsRecord(state.answer)]
  })
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const events: string[] = []
  const resources = new ResourceRegistry()
  const onEvent = (key: string): void => void events.push(key)
  const set = new GroupSet({ ownGroup: 'g1', resources, timers, log, onEvent, systemServers })
  t.teardown(() => set.close())
  const publishing = publishingOf({ data: { NAMESERVERS: server.address } })
  const membership = (group = 'g1', of = publishing) => set.membershipOf(KEY, group, of)
  const lookups = () => resources.withPrefix(GroupLookup, '').length
  return { state, server, timers, lines, events, set, membership, lookups }
}

t.test('a membership follows the TXT record of the zone', async (t) => {
  const { state, timers, events, membership } = await stage(t)
  t.equal(membership(), 'pending')
  await until(() => events.length > 0, 'the first result')
  t.strictSame(membership(), { group: 'g1', active: ['g1', 'g2'] })
  state.answer = 'g2'
  events.length = 0
  await timers.advance(30_000)
  await until(() => events.length > 0, 'the change')
  t.strictSame(events, [KEY])
  t.strictSame(membership(), { group: 'g1', active: ['g2'] })
})

t.test('a failed query keeps the last groups', async (t) => {
  const { state, timers, events, lines, membership } = await stage(t)
  membership()
  await until(() => events.length > 0, 'the first result')
  for (const [rcode, text] of [
    [Rcode.SERVFAIL, 'SERVFAIL'],
    [Rcode.NXDOMAIN, 'NXDOMAIN'],
  ] as const) {
    state.answer = rcode
    const seen = lines.length
    await timers.advance(30_000)
    await until(() => lines.length > seen, 'the fault')
    t.match(lines.at(-1), new RegExp(`answered ${text}; the last known groups count$`))
    t.strictSame(membership(), { group: 'g1', active: ['g1', 'g2'] })
  }
})

t.test(
  'without any answer, the group counts as active, and the record does not wait',
  async (t) => {
    const { state, events, membership } = await stage(t)
    state.answer = Rcode.REFUSED
    t.equal(membership(), 'pending')
    await until(() => events.length > 0, 'the end of the first query')
    t.strictSame(membership(), { group: 'g1', active: undefined })
  },
)

t.test('after a restart, the groups in the status count until others are known', async (t) => {
  const { state, server, timers, events, membership } = await stage(t)
  state.answer = Rcode.SERVFAIL
  const recorded = publishingOf({ data: { NAMESERVERS: server.address }, stored: 'g2,g3' })
  t.strictSame(membership('g1', recorded), { group: 'g1', active: ['g2', 'g3'] })
  await until(() => events.length > 0, 'the end of the first query')
  t.strictSame(membership('g1', recorded), { group: 'g1', active: ['g2', 'g3'] })
  state.answer = 'g1'
  await timers.advance(15_000)
  await until(() => JSON.stringify(membership('g1', recorded)).includes('["g1"]'), 'the answer')
})

t.test('records with the same zone and servers share a lookup, others do not', async (t) => {
  const { server, set, events, membership, lookups } = await stage(t)
  membership()
  await until(() => events.length > 0, 'the first result')
  const publishing = publishingOf({ data: { NAMESERVERS: server.address } })
  t.strictSame(set.membershipOf('a/other', 'g3', publishing), {
    group: 'g3',
    active: ['g1', 'g2'],
  })
  t.equal(server.asked.length, 1)
  t.equal(lookups(), 1)
  const other = await ScriptedServer.open(t, () => [groupsRecord('g9')])
  t.equal(membership('g1', publishingOf({ data: { NAMESERVERS: other.address } })), 'pending')
  t.equal(lookups(), 2)
  set.forget('a/other')
  t.equal(lookups(), 1, 'no record uses the first server any more')
  t.equal(membership(''), undefined)
  t.equal(lookups(), 0, 'a record without a group needs no lookup')
})

t.test('a nameserver with a key must sign its reply', async (t) => {
  const { server, events, membership, lookups } = await stage(t)
  membership()
  await until(() => events.length > 0, 'the first result')
  events.length = 0
  const key = { TSIG_NAME: 'k', TSIG_SECRET: Buffer.alloc(32, 1).toString('base64') }
  const signed = publishingOf({ data: { NAMESERVERS: server.address, ...key } })
  t.equal(membership('g1', signed), 'pending')
  t.equal(lookups(), 1)
  await until(() => events.length > 0, 'the end of the first query')
  t.strictSame(membership('g1', signed), { group: 'g1', active: undefined })
})

t.test('the resolvers of the system are asked last', async (t) => {
  const resolver = await ScriptedServer.open(t, () => [groupsRecord('g3')])
  const { state, server, events, membership } = await stage(t, () => [resolver])
  state.answer = Rcode.REFUSED
  membership()
  await until(() => events.length > 0, 'the first result')
  t.strictSame(membership(), { group: 'g1', active: ['g3'] })
  t.ok(server.asked.length > 0)
})

t.test('no lookup is left after the end', async (t) => {
  const { set, membership, lookups } = await stage(t)
  membership()
  set.close()
  t.equal(lookups(), 0)
})
