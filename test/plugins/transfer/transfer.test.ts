import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import type { Message } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { printName, ROOT_NAME, scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TSIG_KEYS } from '../../../src/dns/tsig/key.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { transfer } from '../../../src/plugins/transfer/setup.ts'
import { ZONE_VERSIONS } from '../../../src/xfr/zone-versions.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, type Question, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { imageOf } from '../../support/zone-version.ts'

const STREAMS_MAX = 32
const STREAMS_PER_PEER_MAX = 4
const STALLED_MS_MIN = 5000

const APEX = 'example.org.'
const zone = scanName(APEX)!

/** The plugin below, which has the zone: it answers for the SOA, and refuses the rest. */
const BELOW = answering((tx) => {
  const { query, response } = tx
  response.answeredBy = 'below'
  if (query.qtype !== RRType.SOA) return Rcode.REFUSED
  response.authoritative = true
  const add = (section: 0 | 1, type: number): void => {
    response.add(section, query.qname, 0, type, RRClass.IN, 60, ROOT_NAME, 0, 1)
  }
  add(Section.Answer, RRType.SOA)
  add(Section.Authority, RRType.NS)
  return Rcode.NOERROR
})

function text(serial: number, extra = ''): string {
  return `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns\nwww 60 A 192.0.2.1\n${extra}`
}

/** Enough that differences are smaller than the zone. */
const FILL = Array.from({ length: 50 }, (_, i) => `n${i} 60 A 192.0.2.${i}\n`).join('')

async function started(t: Test, lines: string, args = '') {
  const c = new SetUp(transfer, `transfer ${args} {\n${lines}\n}`)
  t.teardown(() => c.stop())
  const source = c.block.shared.acquire(ZONE_VERSIONS).source()
  await c.start()
  const put = (serial: number, extra = '') => source.put(imageOf(text(serial, extra), APEX).version)
  return { c, source, put }
}

/** A request; with `serial` an IXFR. */
function request(question: Partial<Question> & { serial?: number }): Transaction {
  const { serial, ...rest } = question
  const type = serial === undefined ? RRType.AXFR : RRType.IXFR
  const tx = transaction({ name: APEX, type, tcp: true, ...rest })
  if (serial === undefined) return tx
  const rdata = new Uint8Array(22)
  new DataView(rdata.buffer).setUint32(2, serial)
  const soa = { owner: zone, type: RRType.SOA, rrclass: RRClass.IN, ttlSeconds: 0, rdata }
  const message: Message = {
    id: tx.query.id,
    opcode: 0,
    flags: 0,
    rcode: 0,
    question: { name: zone, type, rrclass: RRClass.IN },
    answer: [],
    authority: [soa],
    additional: [],
    edns: undefined,
  }
  tx.query.packet = composeMessage(message)
  tx.query.packetOctets = tx.query.packet.length
  return tx
}

/** Takes all messages of the stream; records as `owner type rdata`, those of a SOA as its serial. */
function drain(tx: Transaction): { records: string[]; messages: number } {
  const out = new Uint8Array(65535)
  const records: string[] = []
  let messages = 0
  for (let octets = tx.stream!.next(out); octets > 0; octets = tx.stream!.next(out)) {
    const message = parseMessage(out.slice(0, octets))!
    messages++
    for (const { owner, type, rdata } of message.answer) {
      const printed = printRdata(type, rdata)
      records.push(type === RRType.SOA ? printed.split(' ')[2]! : `${printName(owner)} ${printed}`)
    }
  }
  t.notOk(tx.stream!.isBroken)
  tx.stream!.close()
  return { records, messages }
}

async function ask(c: SetUp, tx: Transaction): Promise<{ status: number; by: string }> {
  const status = await c.handler(BELOW).serve(tx)
  return { status, by: tx.response.answeredBy }
}

t.test('the whole zone goes out, as it was when it was asked for', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  put(1)
  const tx = request({})
  t.strictSame(await ask(c, tx), { status: 0, by: 'transfer' })
  put(2, 'new 60 A 192.0.2.9\n')
  const { records } = drain(tx)
  t.equal(records[0], '1')
  t.equal(records.at(-1), '1')
  t.strictSame(records.slice(1, -1).sort(), [
    'example.org. ns.example.org.',
    'www.example.org. 192.0.2.1',
  ])
  t.match(c.lines.join(), /AXFR of example.org. 1 to 127.0.0.1: 4 records, 1 messages, /)
})

t.test('a large zone takes many messages, none of which is too long', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  const many = Array.from({ length: 5000 }, (_, i) => `x${i} 60 TXT "${'x'.repeat(200)}"\n`)
  put(1, many.join(''))
  const tx = request({})
  await ask(c, tx)
  const { records, messages } = drain(tx)
  t.equal(records.length, 5004)
  t.ok(messages > 10, `${messages} messages`)
})

t.test('a stream that fails half-way breaks, and the log says why', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  put(1)
  const tx = request({})
  await ask(c, tx)
  c.clock.monotonic = () => {
    throw new Error('no time left')
  }
  t.equal(tx.stream!.next(new Uint8Array(65535)), 0)
  t.ok(tx.stream!.isBroken)
  tx.stream!.close()
  t.match(c.lines.join(), /ERROR.*AXFR of example.org. 1 to .*not finished: no time left/)
})

const REFUSALS = [
  { name: 'another client', given: { from: '192.0.2.1' }, want: { status: 5, by: 'transfer' } },
  {
    name: 'another client over UDP',
    given: { from: '192.0.2.1', tcp: false },
    want: { status: 5, by: 'transfer' },
  },
  { name: 'a friend', given: { from: '10.1.2.3' }, want: { status: 0, by: 'transfer' } },
  { name: 'a friend by IPv6', given: { from: '2001:db8::1' }, want: { status: 0, by: 'transfer' } },
  {
    name: 'a friend by UDP',
    given: { from: '10.1.2.3', tcp: false },
    want: { status: 5, by: 'transfer' },
  },
  { name: 'a zone of others', given: { name: 'example.com.' }, want: { status: 5, by: 'below' } },
  {
    name: 'a name in the zone',
    given: { name: 'www.example.org.' },
    want: { status: 5, by: 'below' },
  },
  { name: 'another class', given: { class: RRClass.CH }, want: { status: 5, by: 'below' } },
  { name: 'another type', given: { type: RRType.A }, want: { status: 5, by: 'below' } },
]
for (const { name, given, want } of REFUSALS) {
  t.test(`${name} gets what it deserves`, async (t) => {
    const { c, put } = await started(t, 'to 127.0.0.1 10.0.0.0/8\n to [2001:db8::1]:54')
    put(1)
    t.strictSame(await ask(c, request(given)), want)
  })
}

t.test('* allows all clients', async (t) => {
  const { c, put } = await started(t, 'to *')
  put(1)
  t.equal((await ask(c, request({ from: '203.0.113.1' }))).status, 0)
  t.equal((await ask(c, request({ from: '2001:db8::2' }))).status, 0)
})

t.test('a removed zone is no longer transferred', async (t) => {
  const { c, put, source } = await started(t, 'to 127.0.0.1')
  put(1)
  source.remove(zone)
  t.strictSame(await ask(c, request({})), { status: 5, by: 'below' })
})

t.test('with a key only who has it', async (t) => {
  const c = new SetUp(transfer, 'transfer {\nto *\nkey k.example.\n}')
  await t.rejects(c.startUp(), { message: /no key k\.example\./ })
  const key = (name: string) => createTsigKey(scanName(name)!, scanAlgorithm('hmac-sha256')!, zone)
  c.block.shared.acquire(TSIG_KEYS).replace([key('k.example.')])
  await c.start()
  t.teardown(() => c.stop())
  c.block.shared
    .acquire(ZONE_VERSIONS)
    .source()
    .put(imageOf(text(1), APEX).version)
  for (const [name, status] of [
    ['', 5],
    ['other.example.', 5],
    ['k.example.', 0],
  ] as const) {
    const tx = request({})
    if (name !== '') tx.tsigKey = key(name)
    t.equal((await ask(c, tx)).status, status, name)
  }
})

t.test('IXFR: differences where they are known, else the whole zone', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  put(1, FILL)
  for (let serial = 2; serial <= 4; serial++) {
    put(serial, `${FILL}new${serial} 60 A 192.0.2.${serial}\n`)
    const known = async (): Promise<boolean> => {
      const tx = request({ serial: serial - 1 })
      await ask(c, tx)
      const { records } = drain(tx)
      return records.length < 20 && records[0] === String(serial)
    }
    await until(known, `version ${serial}`)
  }
  const difference = request({ serial: 2 })
  await ask(c, difference)
  t.strictSame(drain(difference).records, [
    '4',
    '2',
    'new2.example.org. 192.0.2.2',
    '3',
    'new3.example.org. 192.0.2.3',
    '3',
    'new3.example.org. 192.0.2.3',
    '4',
    'new4.example.org. 192.0.2.4',
    '4',
  ])
  for (const serial of [4, 5]) {
    const current = request({ serial })
    await ask(c, current)
    t.strictSame(drain(current).records, ['4'], `to who has ${serial}`)
  }
  const unknown = request({ serial: 0 })
  await ask(c, unknown)
  t.equal(drain(unknown).records.length, 55)
})

t.test('IXFR: what is not smaller than the zone is not sent as differences', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  put(1, FILL)
  put(2)
  const isKnown = async (): Promise<boolean> => {
    const tx = request({ serial: 2 })
    await ask(c, tx)
    return drain(tx).records.join() === '2'
  }
  await until(isKnown, 'the version')
  const tx = request({ serial: 1 })
  await ask(c, tx)
  t.equal(drain(tx).records.length, 4)
})

t.test('IXFR: no SOA is malformed', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  put(1)
  t.equal((await ask(c, request({ type: RRType.IXFR }))).status, Rcode.FORMERR)
})

t.test('IXFR over UDP: only the SOA, from the plugin that has the zone', async (t) => {
  const { c } = await started(t, 'to 127.0.0.1')
  const tx = request({ serial: 1, tcp: false })
  t.strictSame(await ask(c, tx), { status: 0, by: 'below' })
  t.equal(tx.response.count, 1)
  t.equal(tx.query.qtype, RRType.IXFR)
})

t.test('the number of concurrent transfers is limited', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.0/8')
  put(1)
  const handler = c.handler(BELOW)
  const all = Array.from({ length: STREAMS_MAX }, (_, i) => request({ from: `127.0.0.${i + 1}` }))
  for (const tx of all) t.equal(await handler.serve(tx), 0)
  const more = request({ from: '127.0.1.1' })
  t.equal(await handler.serve(more), Rcode.SERVFAIL)
  t.equal(more.stream, undefined)
  all[0]!.stream!.close()
  t.equal(await handler.serve(more), 0)
  t.equal(await c.metric('coredns_transfer_out_total{kind="AXFR",result="broken"}'), 1)
})

t.test('the transfers of one client are limited, so that others get theirs', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1 127.0.0.2')
  put(1)
  const handler = c.handler(BELOW)
  const all = Array.from({ length: STREAMS_PER_PEER_MAX }, () => request({}))
  for (const tx of all) t.equal(await handler.serve(tx), 0)
  t.equal(await handler.serve(request({})), Rcode.SERVFAIL)
  t.equal(await handler.serve(request({ from: '127.0.0.2' })), 0)
  all[0]!.stream!.close()
  t.equal(await handler.serve(request({})), 0)
  t.equal(await handler.serve(request({})), Rcode.SERVFAIL)
})

t.test('the transfer that has stalled for longest makes room for another', async (t) => {
  const table = [
    { name: 'of the block', count: STREAMS_MAX, from: (i: number) => `127.0.0.${i + 1}` },
    { name: 'of the peer', count: STREAMS_PER_PEER_MAX, from: () => '127.0.1.1' },
  ]
  for (const { name, count, from } of table) {
    const { c, put } = await started(t, 'to 127.0.0.0/8')
    put(1)
    const handler = c.handler(BELOW)
    if (name === 'of the peer') await handler.serve(request({ from: '127.0.0.1' }))
    const all = Array.from({ length: count }, (_, i) => request({ from: from(i) }))
    for (const tx of all) t.equal(await handler.serve(tx), 0)
    const out = new Uint8Array(65535)
    const isBroken = () => all.map(({ stream }) => stream!.isBroken)
    const none = all.map(() => false)
    const more = () => handler.serve(request({ from: '127.0.1.1' }))
    c.clock.pass(STALLED_MS_MIN - 1)
    t.equal(await more(), Rcode.SERVFAIL, name)
    t.strictSame(isBroken(), none)
    // All but the second take something.
    for (const [i, { stream }] of all.entries()) if (i !== 1) stream!.next(out)
    c.clock.pass(1)
    t.equal(await more(), 0, name)
    t.strictSame(isBroken(), none.with(1, true))
    t.equal(all[1]!.stream!.next(out), 0, 'nothing more goes out')
    t.equal(await more(), Rcode.SERVFAIL, 'no other has stalled')
    // Its place is free once only.
    all[1]!.stream!.close()
    t.equal(await more(), Rcode.SERVFAIL, name)
  }
})

t.test('a zone whose content changed without its serial has no history', async (t) => {
  const { c, put } = await started(t, 'to 127.0.0.1')
  put(1, FILL)
  put(2, `${FILL}a 60 A 192.0.2.1\n`)
  put(2, `${FILL}b 60 A 192.0.2.1\n`)
  await until(async () => {
    const tx = request({ serial: 1 })
    await ask(c, tx)
    return drain(tx).records.length > 50
  }, 'the whole zone')
  t.pass()
})

const FAULTS = [
  { corefile: 'transfer', want: "'to' is required" },
  { corefile: 'transfer {\n to\n}', want: 'Wrong argument count' },
  { corefile: 'transfer {\n to host.example\n}', want: 'not an IP address' },
  { corefile: 'transfer {\n to 192.0.2.1:0\n}', want: 'not an IP address' },
  { corefile: 'transfer {\n to 192.0.2.0/33\n}', want: 'not an IP address' },
  { corefile: 'transfer {\n to *\n source here\n}', want: 'invalid source IP address' },
  { corefile: 'transfer {\n to *\n key\n}', want: 'key takes the name of a key' },
  { corefile: 'transfer {\n from *\n}', want: "unknown property 'from'" },
]
for (const { corefile, want } of FAULTS) {
  t.test(`the Corefile says: ${JSON.stringify(corefile)}`, async (t) => {
    t.match(setupError(transfer, corefile), want)
  })
}
