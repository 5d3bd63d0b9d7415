import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { HostPort } from '../../../src/dns/host-port.ts'
import { Opcode, OptionCode } from '../../../src/dns/iana/index.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../../src/dns/tsig/key.ts'
import { PassNotify } from '../../../src/plugins/kuadrant/pass-notify.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { scanSender } from '../../../src/plugins/kuadrant/takes-notify.ts'
import { createLogger } from '../../../src/telemetry/log.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeClock, FakeTimers, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const PEER = '192.0.2.53'
const KEY = createTsigKey(scanName('peers.example.')!, HMAC_SHA256, Buffer.from('secret'))

/** One from a network of `pass-notify-from`, unsigned. */
const HEARD = { host: PEER, isSigned: false, isPassedOn: false }

const block = (lines: string, zone = 'kdrnt'): string =>
  `kuadrant ${zone} {\nmanifests zones\n${lines}\n}`

const FAULTS = [
  {
    name: 'nobody to pass to',
    lines: 'pass-notify-from ::/0',
    want: 'say whom NOTIFYs are passed',
  },
  { name: 'pass-notify alone', lines: 'pass-notify', want: 'argument' },
  { name: 'a bad address', lines: 'pass-notify 192.0.2.1:0', want: 'port number expected' },
  { name: 'an address twice', lines: 'pass-notify a.example a.example:53', want: 'is there twice' },
  {
    name: 'too many',
    lines: `pass-notify ${Array.from({ length: 9 }, (_, i) => `192.0.2.${i}`).join(' ')}`,
    want: 'up to 8 addresses',
  },
  { name: 'a host for a network', lines: 'pass-notify-from 192.0.2.1', want: 'not a network' },
  { name: 'no network', lines: 'pass-notify-from', want: 'argument' },
  { name: 'two keys', lines: 'pass-notify-key a.\npass-notify-key b.', want: 'given twice' },
]
for (const { name, lines, want } of FAULTS) {
  t.test(`${name} is refused, with the cure`, async (t) => {
    t.match(setupError(kuadrant, block(lines)), want)
  })
}

t.test('only the zone kdrnt has NOTIFYs to pass on', async (t) => {
  const lines = 'pass-notify 192.0.2.1\npass-notify-from ::/0'
  t.match(setupError(kuadrant, block(lines, 'k.example.com')), 'into the block that serves that')
  t.equal(setupError(kuadrant, block(lines)), '')
})

async function setUp(t: Test, more: Partial<ConstructorParameters<typeof PassNotify>[0]> = {}) {
  const operator = await ScriptedServer.open(t, () => [])
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const lines: string[] = []
  const counts = { passed: 0, refused: 0, failed: 0 }
  const passing = new PassNotify({
    options: {
      targets: [{ host: '127.0.0.1', port: operator.port }],
      from: [scanCidr('192.0.2.0/24')!],
      keyName: undefined,
      position: undefined,
    },
    key: () => undefined,
    sourceFor: () => '',
    count: (outcome) => counts[outcome]++,
    clock,
    timers,
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
    ...more,
  })
  t.teardown(() => passing.close())
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(ms)
  }
  return { operator, clock, lines, counts, passing, pass }
}

t.test('a NOTIFY of a peer goes on, as one of our own', async (t) => {
  const { operator, passing, pass, counts, lines } = await setUp(t)
  passing.take(HEARD)
  await pass(0)
  await until(() => operator.asked.length >= 1, 'the NOTIFY')
  const { query } = operator.asked[0]!
  t.equal(query.opcode, Opcode.NOTIFY)
  t.equal(printName(query.question!.name), 'kdrnt.')
  t.strictSame(query.answer, [])
  t.match(query.edns?.options, [{ code: OptionCode.PASSED_ON }])
  t.match(counts, { passed: 1, refused: 0 })
  t.strictSame(lines, [])
})

t.test('whose NOTIFYs go on', async (t) => {
  const table = [
    { name: 'those of its networks', sender: {}, want: 'passed' },
    {
      name: 'signed ones of anybody',
      sender: { host: '2001:db8::9', isSigned: true },
      want: 'passed',
    },
    { name: 'not those of strangers', sender: { host: '203.0.113.1' }, want: 'refused' },
    { name: 'nor of their IPv6 likes', sender: { host: '2001:db8::9' }, want: 'refused' },
    { name: 'nor what was passed on before', sender: { isPassedOn: true }, want: 'refused' },
    {
      name: 'be it signed or not',
      sender: { isSigned: true, isPassedOn: true },
      want: 'refused',
    },
  ]
  for (const { name, sender, want } of table) {
    const { passing, counts, lines } = await setUp(t)
    passing.take({ ...HEARD, ...sender })
    t.match(counts, { [want]: 1 }, name)
    t.equal(lines.length, want === 'passed' ? 0 : 1, name)
  }
})

t.test('a sender is as it was reported', async (t) => {
  const table = [
    { text: '192.0.2.53', want: { isSigned: false, isPassedOn: false } },
    { text: '192.0.2.53 signed', want: { isSigned: true, isPassedOn: false } },
    { text: '192.0.2.53 passed-on', want: { isSigned: false, isPassedOn: true } },
    { text: '192.0.2.53 signed passed-on', want: { isSigned: true, isPassedOn: true } },
  ]
  for (const { text, want } of table) {
    t.strictSame(scanSender(text), { host: PEER, ...want }, text)
  }
})

t.test('strangers cost a line in ten seconds', async (t) => {
  const { passing, pass, lines, counts } = await setUp(t)
  for (let i = 0; i < 1000; i++) passing.take({ ...HEARD, host: `203.0.113.${i % 256}` })
  t.equal(lines.length, 1)
  t.equal(counts.refused, 1000)
  await pass(10_000)
  passing.take({ ...HEARD, host: '203.0.113.1' })
  t.equal(lines.length, 2)
})

t.test('however many come, ten a second go on', async (t) => {
  const { operator, passing, pass } = await setUp(t)
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 50; i++) passing.take(HEARD)
    await pass(50)
  }
  await until(() => operator.asked.length > 0, 'a NOTIFY')
  await pass(100)
  t.ok(operator.asked.length <= 12, `${operator.asked.length}`)
})

t.test('behind a host name all get it, those that are new as well', async (t) => {
  const answers: HostPort[][] = [[]]
  const resolve = async () => answers.at(-1)!
  const { operator, passing, pass, lines, counts } = await setUp(t, { resolve })
  const { port } = operator
  const other = createSocket('udp4').bind(port, '127.0.0.2')
  let heard = 0
  other.on('message', () => heard++)
  await once(other, 'listening')
  t.teardown(() => other.close())
  passing.take(HEARD)
  await pass(0)
  await until(() => lines.length > 0, 'the fault to be told')
  t.match(lines, [/was not passed on to 127\.0\.0\.1: there is no such host/])
  t.equal(counts.failed, 1)
  answers.push([{ host: '127.0.0.1', port }])
  await pass(1000)
  passing.take(HEARD)
  await pass(0)
  await until(() => operator.asked.length >= 1, 'the first')
  const before = operator.asked.length
  answers.push([
    { host: '127.0.0.1', port },
    { host: '127.0.0.2', port },
  ])
  await pass(10_000)
  passing.take(HEARD)
  await pass(0)
  await until(() => operator.asked.length > before, 'the first again')
  await until(() => heard > 0, 'the second')
  t.match(lines[1], /again/)
})

t.test('an operator that does not take it is told of once', async (t) => {
  const { operator, passing, pass, lines, counts } = await setUp(t)
  operator.script = () => 5
  for (let i = 1; i <= 3; i++) {
    passing.take(HEARD)
    await pass(100)
    await until(() => counts.failed === i, 'the failure')
  }
  t.match(lines, [/was not passed on to 127\.0\.0\.1:\d+: it answers REFUSED/])
  t.equal(lines.length, 1)
  operator.script = () => []
  passing.take(HEARD)
  await pass(100)
  await until(() => lines.length === 2, 'it to be well again')
})

t.test('with a key it is signed, and an answer that is not counts for nothing', async (t) => {
  const { operator, passing, pass, lines } = await setUp(t, { key: () => KEY })
  passing.take(HEARD)
  await pass(0)
  await until(() => lines.length > 0, 'the fault')
  t.match(lines, [/the reply is not signed/])
  t.equal(operator.asked[0]!.query.additional.length, 1)
})

t.test('two that pass to each other come to rest', async (t) => {
  const { operator, passing, pass, counts } = await setUp(t)
  passing.take(HEARD)
  await pass(0)
  await until(() => operator.asked.length >= 1, 'the NOTIFY')
  passing.take({ ...HEARD, host: '127.0.0.1', isSigned: true })
  t.match(counts, { passed: 1, refused: 1 })
})

t.test('once closed nothing goes on', async (t) => {
  const { operator, passing, pass, lines } = await setUp(t)
  operator.script = () => undefined
  passing.take(HEARD)
  await pass(0)
  await until(() => operator.asked.length > 0, 'the NOTIFY')
  passing.close()
  passing.take(HEARD)
  const { length } = operator.asked
  await pass(1000)
  t.equal(operator.asked.length, length)
  t.strictSame(lines, [])
})
