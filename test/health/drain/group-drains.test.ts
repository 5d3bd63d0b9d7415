import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage, HeaderFlag, parseMessage } from '../../../src/dns/message/message.ts'
import { scanHost } from '../../../src/dnsrecord/validate/names.ts'
import { isGroup, scanActiveGroups } from '../../../src/health/drain/active-groups.ts'
import { GroupDrains } from '../../../src/health/drain/group-drains.ts'
import { freePort } from '../../support/free-port.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { recordOf, TestSource } from '../stage.ts'

const ZONE = scanHost('k.test')!
const OWNER = 'kuadrant-active-groups.k.test'

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
  ]
  for (const [text, groups] of table) t.strictSame(scanActiveGroups(text), groups, text)
  for (const good of ['g', 'eu-west-1', 'x'.repeat(16)]) t.ok(isGroup(good), good)
  for (const bad of ['', 'x'.repeat(17), 'a;b', 'a&b', 'a,b', 'a"b', "a'b", 'a b']) {
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
  const how = { group: 'g2', site: 'paris', zones: [ZONE], servers: [server] }
  const drains = new GroupDrains({ source, ...how, clock, timers, log })
  t.teardown(() => drains.close())
  const changes: string[] = []
  drains.subscribe(({ begun, ended }) => changes.push(`+${begun.length} -${ended.length}`))
  const isPassive = () => drains.drains.length > 0
  return { source, drains, timers, lines, changes, isPassive }
}

t.test('a site whose group is not active is drained', async (t) => {
  const { state, server } = await nameserver(t)
  state.text = 'version=1;groups=g1&&g2'
  const { drains, timers, lines, isPassive } = stage(t, server)
  await drains.firstAttempt
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
    t.match(drains.fault, /^active groups of k\.test\.: .*; the last known groups count$/)
  }
  Object.assign(state, { text: 'version=1;groups=g2', rcode: Rcode.NOERROR })
  await timers.advance(15_000)
  await until(() => !isPassive(), 'the end of the drain')
  t.equal(drains.fault, '')
  t.match(lines.at(-1), /^drain ends: site:paris zone:k\.test by /)
})

t.test('a site is active until a group is known', async (t) => {
  const { state, server } = await nameserver(t)
  state.rcode = Rcode.REFUSED
  const { drains, isPassive, lines } = stage(t, server)
  await drains.firstAttempt
  t.notOk(isPassive())
  t.match(lines, [
    /^active groups of k\.test\.: 127\.0\.0\.1:\d+ answered REFUSED; the group counts as active$/,
  ])
})

t.test('a record of this server decides, and is followed at once', async (t) => {
  const { state, server } = await nameserver(t)
  state.text = 'version=1;groups=g2'
  const { source, drains, isPassive, changes, timers } = stage(t, server)
  await drains.firstAttempt
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
