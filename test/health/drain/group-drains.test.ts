import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { acquireGroupLookup } from '../../../src/health/drain/acquire-groups.ts'
import { isGroup, scanActiveGroups } from '../../../src/health/drain/active-groups.ts'
import { askGroups } from '../../../src/health/drain/ask-groups.ts'
import { GroupDrains } from '../../../src/health/drain/group-drains.ts'
import { scanHost } from '../../../src/records/validate/names.ts'
import { freePort } from '../../support/free-port.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { recordOf, TestSource } from '../stage.ts'

const ZONE = scanHost('k.test')!
const OWNER = 'kuadrant-active-groups.k.test'

const HUNDRED = Array.from({ length: 100 }, (_, i) => `g${i}`)

t.test('the text of the TXT record', async (t) => {
  const table: readonly (readonly [text: string, groups: readonly string[] | undefined])[] = [
    ['version=1;groups=g1', ['g1']],
    ['version=1;groups=g1&&g2', ['g1', 'g2']],
    ['"version=1;groups=g1"', ['g1']],
    ['groups=g1; version=1', ['g1']],
    ['version=1;groups=', []],
    ['version=2;groups=g1', undefined],
    ['groups=g1', undefined],
    ['version=1', undefined],
    ['version=1;groups=g1&g2', undefined],
    ['', undefined],
    [`version=1;groups=${HUNDRED.join('&&')}`, HUNDRED],
    [`version=1;groups=${HUNDRED.join('&&')}&&g`, undefined],
    ['version=1;groups=g1\u001b[2J', undefined],
  ]
  for (const [text, groups] of table) t.strictSame(scanActiveGroups(text), groups, text)
  for (const good of ['g', 'eu-west-1', 'x'.repeat(16)]) t.ok(isGroup(good), good)
  for (const bad of ['', 'x'.repeat(17), 'a;b', 'a&b', 'a,b', 'a"b', "a'b", 'a b', 'a\u009bb']) {
    t.notOk(isGroup(bad), bad)
  }
})

/** A DNS server whose answer is large over UDP, so that it is asked over TCP. */
async function nameserver(t: Test) {
  const state = { text: '' as string | undefined, rcode: Rcode.NOERROR as number, asked: 0, tcp: 0 }
  const reply = (octets: Uint8Array, isTcp: boolean): Uint8Array => {
    const query = parseMessage(octets)!
    state.asked++
    if (isTcp) state.tcp++
    const flags = HeaderFlag.QR | (isTcp ? 0 : HeaderFlag.TC)
    const text = Buffer.from(state.text ?? '')
    const rdata = Buffer.concat([Buffer.from([text.length]), text])
    const { name } = query.question!
    const record = { owner: name, type: RRType.TXT, rrclass: RRClass.IN, ttlSeconds: 30, rdata }
    const answer = isTcp && state.text !== undefined ? [record] : []
    return composeMessage({ ...query, flags, rcode: state.rcode, answer })
  }
  const port = await freePort()
  const udp = createSocket('udp4', (octets, from) =>
    udp.send(reply(octets, false), from.port, from.address),
  )
  await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve))
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (octets) => {
      const message = reply(octets.subarray(2), true)
      const length = Buffer.from([message.length >> 8, message.length & 255])
      socket.end(Buffer.concat([length, message]))
    })
  })
  await new Promise<void>((resolve) => tcp.listen(port, '127.0.0.1', resolve))
  t.teardown(() => {
    udp.close()
    tcp.close()
  })
  return { state, server: { host: '127.0.0.1', port } }
}

function stage(t: Test, server: { readonly host: string; readonly port: number }) {
  const source = new TestSource()
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const lines: string[] = []
  const info = (line: string): void => void lines.push(line)
  const log = { debug: info, info, warning: info, error: info }
  const resources = new ResourceRegistry()
  const acquire = () => {
    const options = { zone: ZONE, servers: () => [server], timers, log }
    return acquireGroupLookup(options, String(server.port), resources)
  }
  const drainsOf = (followed: TestSource): GroupDrains => {
    const how = { group: 'g2', site: 'paris', lookups: [acquire()] }
    const made = new GroupDrains({ ...how, clock, log })
    t.teardown(() => made.close())
    made.follow(followed)
    return made
  }
  const drains = drainsOf(source)
  const changes: string[] = []
  drains.subscribe(({ begun, ended }) => changes.push(`+${begun.length} -${ended.length}`))
  const isPassive = () => drains.drains.length > 0
  return { source, drains, drainsOf, acquire, timers, lines, changes, isPassive }
}

t.test('a site whose group is not active is drained', async (t) => {
  const { state, server } = await nameserver(t)
  state.text = 'version=1;groups=g1&&g2'
  const { drains, timers, lines, isPassive } = stage(t, server)
  await drains.start()
  t.notOk(isPassive())
  t.equal(state.tcp, 1, 'a truncated reply is asked for again over TCP')
  state.text = 'version=1;groups=g1'
  await timers.advance(29_000)
  t.equal(state.asked, 2, 'not before the TTL ends')
  await timers.advance(1000)
  await until(isPassive, 'the drain')
  t.match(drains.drains, [
    { selector: { text: 'site:paris zone:k.test' }, reason: 'group g2 is not active' },
  ])
  t.strictSame(lines.splice(0), [
    'active groups of k.test.: g1, g2',
    'active groups of k.test.: g1',
    'drain begins: site:paris zone:k.test by kuadrant-active-groups.k.test.: group g2 is not active',
  ])
  for (const [text, rcode] of [
    ['nonsense', Rcode.NOERROR],
    [undefined, Rcode.NOERROR],
    [undefined, Rcode.NXDOMAIN],
    ['version=1;groups=g2', Rcode.SERVFAIL],
  ] as const) {
    Object.assign(state, { text, rcode })
    const seen = lines.length
    await timers.advance(60_000)
    await until(() => lines.length > seen, 'the fault')
    t.ok(isPassive(), 'the last known groups count')
    const reason = /^active groups of k\.test\.: .*; the last known groups count$/
    t.match(drains.problems, [{ place: '', object: 'zone k.test.', reason }])
  }
  Object.assign(state, { text: 'version=1;groups=g2', rcode: Rcode.NOERROR })
  await timers.advance(15_000)
  await until(() => !isPassive(), 'the end of the drain')
  t.strictSame(drains.problems, [])
  t.match(lines.at(-1), /^drain ends: site:paris zone:k\.test by /)
})

t.test('a site is active until a group is known', async (t) => {
  const { state, server } = await nameserver(t)
  state.rcode = Rcode.REFUSED
  const { drains, isPassive, lines } = stage(t, server)
  await drains.start()
  t.notOk(isPassive())
  t.match(lines, [
    /^active groups of k\.test\.: 127\.0\.0\.1:\d+ answered REFUSED; the group counts as active$/,
  ])
})

t.test('a record of this server decides, and is followed at once', async (t) => {
  const { state, server } = await nameserver(t)
  state.text = 'version=1;groups=g2'
  const { source, drains, isPassive, changes, timers } = stage(t, server)
  await drains.start()
  const put = (...targets: string[]): void => {
    const endpoint = { dnsName: OWNER, recordType: 'TXT', targets }
    source.put(recordOf('groups', [], { rootHost: OWNER, endpoints: [endpoint] }))
  }
  put('version=1;groups=g1')
  t.ok(isPassive())
  put('version=1;groups=g1&&g2')
  t.notOk(isPassive())
  put('version=1;groups=')
  t.ok(isPassive(), 'no group is active')
  const { asked } = state
  await timers.advance(120_000)
  t.equal(state.asked, asked, 'nothing is asked')
  source.remove('default/groups')
  await until(() => !isPassive(), 'the answer of DNS')
  t.strictSame(changes, ['+1 -0', '+0 -1', '+1 -0', '+0 -1'])
})

t.test('two sources with the same zone and servers share one lookup', async (t) => {
  const { state, server } = await nameserver(t)
  state.text = 'version=1;groups=g1'
  const { drains, drainsOf, timers, lines, source } = stage(t, server)
  const other = new TestSource()
  const others = drainsOf(other)
  await Promise.all([drains.start(), others.start()])
  t.equal(state.asked, 2, 'one query, and its repetition over TCP')
  t.equal(others.drains.length, 1)
  t.strictSame(
    lines.filter((line) => line.startsWith('active groups')),
    ['active groups of k.test.: g1'],
  )
  const endpoint = { dnsName: OWNER, recordType: 'TXT', targets: ['version=1;groups=g2'] }
  other.put(recordOf('groups', [], { rootHost: OWNER, endpoints: [endpoint] }))
  t.equal(drains.drains.length, 0, 'the record of either source counts for both')
  others.close()
  const { asked } = state
  source.put(recordOf('a', ['192.0.2.1']))
  await timers.advance(120_000)
  t.equal(state.asked, asked, 'nothing is asked while a source has the record')
})

t.test('a source that is no longer followed does not count', async (t) => {
  const { state, server } = await nameserver(t)
  state.text = 'version=1;groups=g2'
  const { acquire, lines } = stage(t, server)
  const { item: lookup, release } = acquire()
  const source = new TestSource()
  const endpoint = { dnsName: OWNER, recordType: 'TXT', targets: ['version=1;groups=g1'] }
  source.put(recordOf('groups', [], { rootHost: OWNER, endpoints: [endpoint] }))
  const unfollow = lookup.follow(source)
  await lookup.start()
  t.strictSame(lookup.groups, ['g1'])
  unfollow()
  await until(() => lookup.groups?.[0] === 'g2', 'the answer of DNS')
  const read = lines.filter((line) => line.startsWith('active groups'))
  t.strictSame(read, ['active groups of k.test.: g1', 'active groups of k.test.: g2'])
  release()
})

t.test('groups from before the start count until others are known', async (t) => {
  const { state, server } = await nameserver(t)
  state.rcode = Rcode.SERVFAIL
  const { drains, acquire, lines, isPassive, timers } = stage(t, server)
  const { item: lookup, release } = acquire()
  t.teardown(release)
  lookup.recall(['g1'])
  t.ok(isPassive())
  await drains.start()
  t.match(lines.at(-1), /answered SERVFAIL; the last known groups count$/)
  Object.assign(state, { text: 'version=1;groups=g2', rcode: Rcode.NOERROR })
  await timers.advance(15_000)
  await until(() => !isPassive(), 'the answer')
  lookup.recall(['g1'])
  t.strictSame(lookup.groups, ['g2'])
})

const ALIAS = { type: RRType.CNAME, rrclass: RRClass.IN, ttlSeconds: 20 }
const TEXT = { type: RRType.TXT, rrclass: RRClass.IN, ttlSeconds: 30 }
const textOf = (text: string) => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
const GROUPS = textOf('version=1;groups=g1')
const NAME = scanHost(OWNER)!
const OTHER = scanHost('groups.other.test')!

for (const [what, answer, want] of [
  ['the name itself', [{ ...TEXT, owner: NAME, rdata: GROUPS }], ['g1']],
  [
    'the second of two texts',
    [
      { ...TEXT, owner: NAME, rdata: textOf('v=spf1 -all') },
      { ...TEXT, owner: NAME, rdata: GROUPS },
    ],
    ['g1'],
  ],
  [
    'an alias',
    [
      { ...TEXT, owner: OTHER, rdata: GROUPS },
      { ...ALIAS, owner: NAME, rdata: OTHER },
    ],
    ['g1'],
  ],
  ['another owner', [{ ...TEXT, owner: OTHER, rdata: GROUPS }], undefined],
  ['an alias of itself', [{ ...ALIAS, owner: NAME, rdata: NAME }], undefined],
  ['no record', [], undefined],
] as const) {
  t.test(`the TXT record of ${what}`, async (t) => {
    const server = await ScriptedServer.open(t, () => answer)
    const found = await askGroups(NAME, [server], new AbortController().signal)
    if (want !== undefined) t.match(found, { groups: want })
    else t.match(found, { fault: / answered no TXT record$/ })
  })
}

t.test('the next server is asked if one has no valid record', async (t) => {
  const silent = { host: '127.0.0.1', port: await freePort() }
  const refusing = await ScriptedServer.open(t, () => Rcode.REFUSED)
  const wrong = await ScriptedServer.open(t, () => [
    { ...TEXT, owner: NAME, rdata: textOf('groups=g1') },
  ])
  const right = await ScriptedServer.open(t, () => [{ ...TEXT, owner: NAME, rdata: GROUPS }])
  const servers = [silent, refusing, wrong]
  const { signal } = new AbortController()
  t.match(await askGroups(NAME, servers, signal), { fault: /has no text of the form version=1/ })
  t.match(await askGroups(NAME, [...servers, right], signal), { groups: ['g1'] })
  t.strictSame(await askGroups(NAME, [], signal), { fault: 'no server to query' })
})
