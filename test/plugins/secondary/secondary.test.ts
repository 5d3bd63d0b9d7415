import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import type { Span } from '../../../src/base/telemetry/spans/span.ts'
import { WorkSpans } from '../../../src/base/telemetry/spans/work-spans.ts'
import { keyTag } from '../../../src/dns/dnssec/key-tag.ts'
import { Opcode, printRcode, Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import type { Message, ResourceRecord } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { type RdataField, scanRdata, splitFields } from '../../../src/dns/rdata/index.ts'
import { scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TSIG_KEYS } from '../../../src/dns/tsig/key.ts'
import { WORK_SPANS } from '../../../src/plugin/work-spans.ts'
import { SecondaryZone } from '../../../src/plugins/secondary/secondary-zone.ts'
import { secondary } from '../../../src/plugins/secondary/setup.ts'
import { ZONE_VERSIONS } from '../../../src/xfr/zone-versions.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const APEX = 'example.org.'
const zone = scanName(APEX)!

function rr(text: string): ResourceRecord {
  const [name, typeName, ...rest] = text.split(' ')
  const type = RRType[typeName as keyof typeof RRType]
  const rdata = scanRdata(type, splitFields(rest.join(' ')) as RdataField[], zone)
  if (!(rdata instanceof Uint8Array)) throw new Error(`bad rdata: ${text}`)
  return { owner: scanName(name!, zone)!, type, rrclass: RRClass.IN, ttlSeconds: 60, rdata }
}

/** Refresh 100, retry 10, expire 1000. */
const soa = (serial: number): ResourceRecord => rr(`@ SOA ns host ${serial} 100 10 1000 5`)
const whole = (serial: number, ...extra: string[]): ResourceRecord[] => {
  return [soa(serial), rr('@ NS ns'), ...extra.map(rr), soa(serial)]
}

/** A primary that answers each query as the test says. */
class Primary {
  readonly asked: Message[] = []
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Records of the reply; a number = this rcode; undefined = silence and a closed connection. */
  answer: (query: Message) => readonly ResourceRecord[] | number | undefined = () => undefined

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('data', (chunk: Buffer) => this.#reply(socket, chunk.subarray(2)))
    })
  }

  static async open(t: Test): Promise<Primary> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const primary = new Primary(server)
    t.teardown(() => {
      for (const socket of primary.#sockets) socket.destroy()
      server.close()
    })
    return primary
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  #reply(socket: Socket, packet: Buffer): void {
    const query = parseMessage(packet)!
    this.asked.push(query)
    const answer = this.answer(query)
    if (answer === undefined) return void socket.destroy()
    const rcode = typeof answer === 'number' ? answer : 0
    const records = typeof answer === 'number' ? [] : answer
    const reply = { ...query, flags: 0x8400, rcode, answer: records, authority: [], additional: [] }
    const octets = composeMessage(reply)
    socket.write(Buffer.concat([Buffer.from([octets.length >> 8, octets.length & 0xff]), octets]))
  }

  /** Types that were asked for. */
  types(): number[] {
    return this.asked.map(({ question }) => question!.type)
  }
}

async function setUp(t: Test, lines = '') {
  const primary = await Primary.open(t)
  const timers = new FakeTimers()
  const corefile = `secondary {\ntransfer from 127.0.0.1:${primary.port}\n${lines}\n}`
  const c = new SetUp(secondary, corefile, undefined, { timers })
  t.teardown(() => c.stop())
  /** Moves both clocks, a tick at a time. */
  const pass = async (seconds: number): Promise<void> => {
    for (let ms = 0; ms < seconds * 1000; ms += 250) {
      c.clock.monotonicMs += 250
      await timers.advance(250)
      // Sockets must make progress too.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const serves = async (name = 'www'): Promise<string> => {
    const shown = await show(c.handler(), transaction({ name: `${name}.${APEX}` }))
    return [shown.status, ...shown.answer.map((line) => line.split(' ').at(-1)!)].join(' ')
  }
  return { primary, c, pass, serves }
}

const WWW = 'www A 192.0.2.1'

t.test('the zone is served once it is there', async (t) => {
  const { primary, c, serves } = await setUp(t)
  primary.answer = () => whole(1, WWW)
  t.match(await serves(), 'SERVFAIL')
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  t.match(c.lines.join(), 'zone example.org. transferred (AXFR) from 127.0.0.1:')
  t.equal(await serves('none'), 'NXDOMAIN')
  t.equal(c.block.shared.acquire(ZONE_VERSIONS).find(zone)?.serial, 1, 'others can have it')
})

t.test('records of names outside of the zone are ignored', async (t) => {
  const { primary, c, serves } = await setUp(t)
  primary.answer = () => whole(1, 'www.example.net. A 192.0.2.9', WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  t.match(
    c.lines.join('\n'),
    /WARNING\] plugin\/secondary: transfer from 127\.0\.0\.1:\d+:3: ignored 1 record of names outside of zone example\.org\., the first is www\.example\.net\.; remove it at the primary/,
  )
})

t.test('retries come soon at first, and later each time', async (t) => {
  const primary = await Primary.open(t)
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const clock = new FakeClock()
  const zoneOf = new SecondaryZone({
    resources: new ResourceRegistry(),
    zone,
    primaries: [{ host: '127.0.0.1', port: primary.port }],
    place: 'here',
    sourceFor: () => '',
    key: () => undefined,
    nsInAuthority: true,
    clock,
    timers,
    log,
    random: () => 0,
    onTransfer: () => {},
    onChange: () => {},
    queue: (_, transfer) => transfer(),
  })
  t.teardown(() => zoneOf.stop())
  zoneOf.start()
  const waits: number[] = []
  for (let i = 0; i < 9; i++) {
    let ms = 0
    for (; primary.asked.length === i; ms += 250) {
      clock.monotonicMs += ms === 0 ? 0 : 250
      await timers.advance(ms === 0 ? 0 : 250)
      await zoneOf.settled()
    }
    waits.push(ms - 250)
  }
  t.strictSame(waits, [0, 250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000])
  t.equal(lines.length, 1, 'the same fault is logged once')
})

t.test('each attempt has a span', async (t) => {
  const { primary, c, pass } = await setUp(t)
  const spans: Span[] = []
  c.block.shared.provide(WORK_SPANS, new WorkSpans(c.clock, (span) => spans.push(span)))
  primary.answer = () => 5
  await c.start()
  await until(() => spans.length === 1, 'a refused transfer')
  primary.answer = () => whole(1, WWW)
  await until(async () => {
    await pass(1)
    return spans.at(-1)!.error === ''
  }, 'a transfer')
  const at = { 'sextant/zone': 'example.org.', 'sextant/primary': `127.0.0.1:${primary.port}` }
  t.strictSame(spans[0]!.attributes, at)
  t.match(spans[0], { name: 'transfer', kind: 'internal', error: /REFUSED/ })
  const last = spans.at(-1)!
  t.strictSame(last.attributes, { ...at, 'sextant/serial': '1' })
  t.equal(last.error, '')
  t.not(last.traceId, spans[0]!.traceId)
})

t.test('a zone is refreshed by IXFR at the interval of its SOA', async (t) => {
  const { primary, c, pass, serves } = await setUp(t)
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => [soa(1)]
  await pass(99)
  t.equal(primary.asked.length, 1)
  await pass(2)
  await until(() => primary.asked.length === 2, 'the refresh')
  const { question, authority } = primary.asked[1]!
  t.equal(question?.type, RRType.IXFR)
  t.equal(authority.length, 1)
  await until(
    async () => (await c.metric('coredns_secondary_transfers_total{result="none"}')) === 1,
    'the end',
  )
  const added = [rr('www A 192.0.2.2'), rr('new A 192.0.2.3')]
  primary.answer = () => [soa(2), soa(1), rr(WWW), soa(2), ...added, soa(2)]
  await pass(101)
  await until(async () => (await serves()) === 'NOERROR c0000202', 'the difference')
  t.equal(await serves('new'), 'NOERROR c0000203')
  t.equal(c.block.shared.acquire(ZONE_VERSIONS).find(zone)?.serial, 2)
})

t.test('a signed zone that an IXFR breaks is warned of', async (t) => {
  const { primary, c, pass } = await setUp(t)
  const key = rr(`@ DNSKEY 257 3 13 ${Buffer.alloc(64, 7).toString('base64')}`)
  const signatures = ['SOA', 'NS', 'DNSKEY', 'NSEC'].map((type) => {
    return rr(`@ RRSIG ${type} 13 2 60 20231201000000 20231101000000 ${keyTag(key.rdata)} @ AAAA`)
  })
  const signed = [key, rr('@ NSEC @ NS SOA RRSIG NSEC DNSKEY'), ...signatures]
  primary.answer = () => [soa(1), rr('@ NS ns'), ...signed, soa(1)]
  await c.start()
  await until(() => c.block.shared.acquire(ZONE_VERSIONS).find(zone)?.serial === 1, 'the zone')
  await pass(61)
  t.notMatch(c.lines.join(), /WARNING/)
  primary.answer = () => [soa(2), soa(1), soa(2), rr(WWW), soa(2)]
  await pass(40)
  await until(
    () => c.block.shared.acquire(ZONE_VERSIONS).find(zone)?.serial === 2,
    'the difference',
  )
  await pass(61)
  await until(() => /will not validate as served/.test(c.lines.join()), 'the check')
  t.match(
    c.lines.join(),
    '1 RRset(s) without signature (first: www.example.org. A); 1 name(s) without NSEC (first: www.',
  )
})

t.test('a zone that no primary confirms is served until it expires', async (t) => {
  const { primary, c, pass, serves } = await setUp(t)
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => undefined
  await pass(990)
  t.equal(await serves(), 'NOERROR c0000201')
  await pass(15)
  t.match(await serves(), 'SERVFAIL')
  t.equal(c.block.shared.acquire(ZONE_VERSIONS).find(zone), undefined)
  t.match(c.lines.join(), 'zone example.org. 1 expired')
  primary.answer = () => whole(1, WWW)
  await pass(15)
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone again')
})

const BAD: { name: string; answer: readonly ResourceRecord[] | number; says: RegExp }[] = [
  { name: 'an error', answer: Rcode.REFUSED, says: /the primary answered REFUSED/ },
  {
    name: 'a difference that does not fit',
    answer: [soa(2), soa(1), rr('x A 192.0.2.9'), soa(2), soa(2)],
    says: /removes a missing record/,
  },
  { name: 'a CNAME beside others', answer: whole(2, WWW, 'www CNAME x'), says: /CNAME/ },
]
for (const { name, answer, says } of BAD) {
  t.test(`${name} leaves the zone as it is`, async (t) => {
    const { primary, c, pass, serves } = await setUp(t)
    primary.answer = () => whole(1, WWW)
    await c.start()
    await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
    primary.answer = () => answer
    await pass(101)
    await until(() => says.test(c.lines.join('\n')), 'what it says')
    t.equal(await serves(), 'NOERROR c0000201')
    primary.answer = ({ question }) => {
      return question?.type === RRType.AXFR ? whole(3, 'www A 192.0.2.3') : Rcode.NOTIMP
    }
    await pass(11)
    await until(async () => (await serves()) === 'NOERROR c0000203', 'a good one')
  })
}

const OLDER = [
  { name: 'whole', answer: whole(4, 'www A 192.0.2.4') },
  { name: 'as a SOA alone', answer: [soa(4)] },
]
for (const { name, answer } of OLDER) {
  t.test(`an older version, ${name}, is not taken, and the next primary asked`, async (t) => {
    const second = await Primary.open(t)
    const lines = `transfer from 127.0.0.1:${second.port}`
    const { primary, c, pass, serves } = await setUp(t, lines)
    primary.answer = () => whole(5, WWW)
    await c.start()
    await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
    primary.answer = () => answer
    await pass(101)
    await until(() => /the primary has an older version, 4/.test(c.lines.join()), 'the fault')
    t.equal(await serves(), 'NOERROR c0000201')
    t.equal(primary.asked.length, 2, 'not for all of it at once')
    t.equal(second.asked.length, 1)
    second.answer = () => whole(6, 'www A 192.0.2.6')
    await pass(11)
    await until(async () => (await serves()) === 'NOERROR c0000206', 'the version of the second')
  })
}

t.test('a primary with an older version does not keep a zone from expiring', async (t) => {
  const { primary, c, pass, serves } = await setUp(t)
  primary.answer = () => whole(5, WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => [soa(4)]
  await pass(1005)
  t.match(c.lines.join(), 'zone example.org. 5 expired')
})

t.test('a SOA with timers of zero does not make a zone come and go', async (t) => {
  const { primary, c, pass, serves } = await setUp(t)
  const zero = rr('@ SOA ns host 1 0 0 0 0')
  primary.answer = () => [zero, rr('@ NS ns'), rr(WWW), zero]
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => undefined
  await pass(599)
  t.equal(await serves(), 'NOERROR c0000201')
  await pass(2)
  t.match(c.lines.join(), 'zone example.org. 1 expired')
})

/** A NOTIFY; with `serial` it says what there is. */
async function notify(
  c: SetUp,
  change: { from?: string; name?: string; serial?: number; key?: string } = {},
) {
  const name = scanName(change.name ?? APEX)!
  const packet = composeMessage({
    id: 1,
    opcode: Opcode.NOTIFY,
    flags: 0x0400,
    rcode: 0,
    question: { name, type: RRType.SOA, rrclass: RRClass.IN },
    answer: change.serial === undefined ? [] : [soa(change.serial)],
    authority: [],
    additional: [],
    edns: undefined,
  })
  const tx = transaction({ name: change.name ?? APEX, from: change.from ?? '127.0.0.1' })
  parseQuery(tx.query, packet, packet.length)
  tx.response.reset(tx.query)
  if (change.key !== undefined) {
    tx.tsigKey = createTsigKey(scanName(change.key)!, scanAlgorithm('hmac-sha256')!, zone)
  }
  const status = await c.handler().serve(tx)
  return status === -1 ? 'DROP' : printRcode(status)
}

t.test('a NOTIFY has the primary asked, but not more than once a second', async (t) => {
  const { primary, c, pass, serves } = await setUp(t)
  t.ok(c.block.takesNotify)
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => whole(2, 'www A 192.0.2.2')
  t.equal(await notify(c, { serial: 1 }), 'NOERROR')
  await pass(2)
  t.equal(primary.asked.length, 1, 'nothing new')
  t.equal(await notify(c, { serial: 2 }), 'NOERROR')
  await pass(0.25)
  await until(async () => (await serves()) === 'NOERROR c0000202', 'the new version')
  for (let i = 0; i < 50; i++) await notify(c)
  t.equal(primary.asked.length, 2, 'not at once')
  await pass(1)
  await until(() => primary.asked.length === 3, 'a second later')
  t.equal(await c.metric('coredns_secondary_notifies_total'), 52)
})

t.test('NOTIFYs of other senders and for other zones', async (t) => {
  const { primary, c, pass } = await setUp(t)
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(() => primary.asked.length === 1, 'the first')
  t.equal(await notify(c, { from: '127.0.0.2' }), 'DROP')
  t.equal(await notify(c, { name: 'www.example.org.' }), 'NOTAUTH')
  t.equal(await notify(c, { name: 'example.com.' }), 'NOTAUTH')
  await pass(5)
  t.equal(primary.asked.length, 1)
})

t.test('with a key NOTIFYs must be signed, and so are we', async (t) => {
  const { primary, c } = await setUp(t, 'key k.example.')
  await t.rejects(c.startUp(), { message: /no key k\.example\./ })
  const key = createTsigKey(scanName('k.example.')!, scanAlgorithm('hmac-sha256')!, zone)
  c.block.shared.acquire(TSIG_KEYS).replace([key])
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(() => c.lines.join().includes('the reply is not signed'), 'the fault')
  t.equal(primary.asked[0]?.additional[0]?.type, RRType.TSIG)
  t.equal(await notify(c), 'REFUSED')
  t.equal(await notify(c, { key: 'other.example.' }), 'REFUSED')
  t.equal(await notify(c, { key: 'k.example.' }), 'NOERROR')
})

t.test('after a reload what there was is served on', async (t) => {
  const { primary, c, serves } = await setUp(t)
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => undefined
  const corefile = `secondary {\ntransfer from 127.0.0.1:${primary.port}\n}`
  const next = new SetUp(secondary, corefile)
  await next.start()
  await c.stop()
  t.teardown(() => next.stop())
  const shown = await show(next.handler(), transaction({ name: `www.${APEX}` }))
  t.equal(shown.answer.length, 1)
  await next.stop()
  const later = new SetUp(secondary, corefile)
  t.teardown(() => later.stop())
  await later.start()
  t.match(
    (await show(later.handler(), transaction({ name: APEX }))).status,
    'SERVFAIL',
    'gone with it',
  )
})

t.test('after a reload that failed, the next still has what there is', async (t) => {
  const { primary, c, serves } = await setUp(t)
  primary.answer = () => whole(1, WWW)
  await c.start()
  await until(async () => (await serves()) === 'NOERROR c0000201', 'the zone')
  primary.answer = () => undefined
  const corefile = `secondary {\ntransfer from 127.0.0.1:${primary.port}\n}`
  const again = async (): Promise<SetUp> => {
    const next = new SetUp(secondary, corefile)
    t.teardown(() => next.stop())
    await next.start()
    return next
  }
  const failed = await again()
  await failed.stop()
  const next = await again()
  await c.stop()
  const shown = await show(next.handler(), transaction({ name: `www.${APEX}` }))
  t.equal(shown.answer.length, 1)
})

const FAULTS = [
  { corefile: 'secondary', want: 'missing primary' },
  { corefile: 'secondary {\n transfer to 127.0.0.1\n}', want: 'transfer needs `from`' },
  { corefile: 'secondary {\n transfer from\n}', want: 'transfer needs `from`' },
  { corefile: 'secondary {\n transfer from a.example\n}', want: 'not an IP address' },
  { corefile: 'secondary {\n catalog\n}', want: 'catalog zones are not supported' },
  { corefile: 'secondary a a {\n transfer from ::1\n}', want: 'the zone a. appears twice' },
  { corefile: 'secondary {\n nonsense\n}', want: "unknown property 'nonsense'" },
]
for (const { corefile, want } of FAULTS) {
  t.test(`the Corefile says: ${JSON.stringify(corefile)}`, async (t) => {
    t.match(setupError(secondary, corefile), want)
  })
}
