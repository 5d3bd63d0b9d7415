import t from 'tap'
import { EdeCode, Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { compose, replyLimit } from '../../../src/dns/message/compose.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import type { GateResult } from '../../../src/egress/gate.ts'
import { CounterSlots } from '../../../src/plugin/counter-slots.ts'
import { DROP, type Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { Concurrency } from '../../../src/plugins/egress/concurrency.ts'
import {
  type ClientSource,
  Egress,
  type EgressOptions,
} from '../../../src/plugins/egress/egress.ts'
import { ReplyTimes } from '../../../src/plugins/egress/reply-times.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'
import { answering, type Question, transaction } from '../../support/transaction.ts'
import { FakeGate } from './fake-gate.ts'

const POD = '10.0.0.5'

/** A directive over a fake agent with one client. */
function place({
  below = answering((tx) => address(tx, '192.0.2.1')) as Handler,
  options = {} as Partial<EgressOptions>,
  limits = { total: 0, perClient: 0 },
} = {}) {
  const gate = new FakeGate()
  gate.set('a/web', POD)
  const clock = new FakeClock()
  const { lines, log } = recordLog()
  const slots = new CounterSlots()
  const source: ClientSource = { addresses: { has: () => false }, gate }
  const egress = new Egress(below, {
    source,
    options: { denyRcode: Rcode.REFUSED, onTimeout: 'release', ...options },
    block: { bufsizeOctets: 1232 },
    concurrency: new Concurrency(limits, log),
    clock,
    slots,
    times: new ReplyTimes(),
    logDecision: log.info,
  })
  const ask = async (question: Partial<Question> = {}) => {
    const tx = transaction({ name: 'www.example.com.', from: POD, ...question })
    return { tx, status: await egress.serve(tx) }
  }
  const counts = (): readonly number[] => {
    let sums: readonly number[] = [0, 0, 0, 0]
    slots.forEach((one) => {
      sums = sums.map((sum, i) => sum + one.take(i))
    })
    return sums
  }
  return { gate, egress, source, clock, lines, ask, counts }
}

function add(tx: Transaction, owner: string, type: number, ttl: number, rdata: Uint8Array): void {
  const { response } = tx
  response.add(Section.Answer, scanName(owner)!, 0, type, RRClass.IN, ttl, rdata, 0, rdata.length)
}

function address(tx: Transaction, text: string, ttl = 60, owner = 'www.example.com.'): number {
  const { family, bytes } = scanAddress(text)!
  add(tx, owner, family === 1 ? RRType.A : RRType.AAAA, ttl, bytes)
  return Rcode.NOERROR
}

t.test('a client gets its answer after the addresses are in force', async (t) => {
  const { gate, ask, egress } = place()
  let finish: (result: GateResult) => void = () => {}
  gate.wait = () =>
    new Promise((resolve) => {
      finish = resolve
    })
  let isSent = false
  const reply = ask().then((result) => {
    isSent = true
    return result
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(isSent, 'the reply waits')
  t.strictSame(gate.learned, ['a/web www.example.com. 192.0.2.1/60'])
  finish('acknowledged')
  t.equal((await reply).status, Rcode.NOERROR)
  gate.wait = () => undefined
  const status = egress.serve(transaction({ name: 'www.example.com.', from: POD }))
  t.equal(status, Rcode.NOERROR, 'without a wait there is no promise')
})

t.test('what a wait leads to', async (t) => {
  const table: [GateResult, EgressOptions['onTimeout'], number, string][] = [
    ['acknowledged', 'servfail', Rcode.NOERROR, '0 0 0 0'],
    ['timed out', 'release', Rcode.NOERROR, '0 0 1 0'],
    ['timed out', 'servfail', Rcode.SERVFAIL, '0 0 1 0'],
    ['failed', 'release', Rcode.SERVFAIL, '0 0 0 1'],
    ['failed', 'servfail', Rcode.SERVFAIL, '0 0 0 1'],
  ]
  for (const [result, onTimeout, want, counted] of table) {
    const { gate, ask, counts } = place({ options: { onTimeout } })
    gate.wait = async () => result
    const { status, tx } = await ask()
    t.equal(status, want, `${result}, ${onTimeout}`)
    t.equal(counts().join(' '), counted)
    if (want === Rcode.SERVFAIL) t.match(tx.response.error, `a/web are not in force: ${result}`)
  }
})

t.test('queries that pass by', async (t) => {
  const { gate, ask, egress } = place()
  gate.denied.add('www.example.com.')
  t.equal((await ask({ from: '10.0.0.6' })).status, Rcode.NOERROR, 'of others')
  const tx = transaction({ name: 'www.example.com.', from: POD })
  tx.chainDepth = 1
  t.equal(await egress.serve(tx), Rcode.NOERROR, 'a lookup of the server itself')
  tx.chainDepth = 0
  tx.query.opcode = 4
  t.equal(await egress.serve(tx), Rcode.NOERROR, 'NOTIFY')
  t.strictSame([gate.asked, gate.learned], [[], []])
})

t.test('a data thread hands over the queries of clients', async (t) => {
  const { source, egress } = place()
  source.gate = undefined
  source.addresses = { has: (bytes, offset) => bytes[offset + 3] === 5 }
  const selects = (from: string) => egress.only.selects!(transaction({ name: 'x.', from }))
  t.strictSame([selects(POD), selects('10.0.0.6')], [true, false])
})

t.test('DNS rules', async (t) => {
  for (const denyRcode of [Rcode.REFUSED, Rcode.NXDOMAIN]) {
    let isAsked = false
    const below = answering((tx) => {
      isAsked = true
      return address(tx, '192.0.2.1')
    })
    const { gate, ask, counts, lines } = place({ below, options: { denyRcode } })
    gate.denied.add('www.example.com.')
    const { tx, status } = await ask({ type: RRType.TXT, tcp: true })
    t.equal(status, denyRcode)
    t.strictSame([tx.response.rcode, tx.response.count], [denyRcode, 0])
    t.equal(tx.response.edeCode, EdeCode.BLOCKED)
    t.notOk(isAsked, 'nothing is asked upstream')
    t.strictSame(gate.asked, ['a/web tcp www.example.com.'])
    t.equal(counts().join(' '), '1 0 0 0')
    t.match(lines, [/decision: a\/web, www\.example\.com\. TXT, denied with (REFUSED|NXDOMAIN)$/])
    t.equal((await ask({ name: 'ok.example.com.' })).status, Rcode.NOERROR)
  }
})

/** `status`, after something else was done. */
const after = (_: unknown, status: number): number => status

/** `priority target params` of HTTPS. */
const hints = (...params: readonly (readonly [number, readonly number[]])[]): Uint8Array =>
  Uint8Array.from([0, 1, 0, ...params.flatMap(([key, v]) => [0, key, 0, v.length, ...v])])

t.test('what is learned', async (t) => {
  const cname = (tx: Transaction) =>
    add(tx, 'www.example.com.', RRType.CNAME, 30, scanName('web.example.net.')!)
  const six = [0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 1]
  const table: [string, number, (tx: Transaction) => number, readonly string[]][] = [
    [
      'a chain',
      RRType.A,
      (tx) => after(cname(tx), address(tx, '192.0.2.1', 60, 'web.example.net.')),
      ['192.0.2.1/60'],
    ],
    ['a detached address', RRType.A, (tx) => address(tx, '192.0.2.1', 60, 'other.'), []],
    ['a mapped address', RRType.AAAA, (tx) => address(tx, '::ffff:10.0.0.1'), ['10.0.0.1/60']],
    ['NAT64', RRType.AAAA, (tx) => address(tx, '64:ff9b::c000:201'), ['64:ff9b::c000:201/60']],
    ['another type', RRType.TXT, (tx) => address(tx, '192.0.2.1'), []],
    ['ANY', RRType.ANY, (tx) => address(tx, '192.0.2.1'), []],
    ['no reply', RRType.A, (tx) => after(address(tx, '192.0.2.1'), DROP), []],
    ['an error', RRType.A, (tx) => after(address(tx, '192.0.2.1'), Rcode.SERVFAIL), []],
    [
      'HTTPS hints',
      RRType.HTTPS,
      (tx) => {
        cname(tx)
        add(
          tx,
          'web.example.net.',
          RRType.HTTPS,
          60,
          hints([1, [2, 104, 50]], [4, [192, 0, 2, 1, 192, 0, 2, 2]], [6, six]),
        )
        add(tx, 'other.', RRType.HTTPS, 60, hints([4, [192, 0, 2, 9]]))
        return Rcode.NOERROR
      },
      ['192.0.2.1/60 192.0.2.2/60', '2001:db8::1/60'],
    ],
    [
      'SVCB hints',
      RRType.SVCB,
      (tx) =>
        after(
          add(tx, 'www.example.com.', RRType.SVCB, 5, hints([4, [192, 0, 2, 1]])),
          Rcode.NOERROR,
        ),
      ['192.0.2.1/5'],
    ],
    [
      'invalid hints',
      RRType.HTTPS,
      (tx) =>
        after(add(tx, 'www.example.com.', RRType.HTTPS, 5, hints([4, [192, 0, 2]])), Rcode.NOERROR),
      [],
    ],
  ]
  for (const [what, type, fill, want] of table) {
    const { gate, ask } = place({ below: answering(fill) })
    await ask({ type })
    t.strictSame(
      gate.learned,
      want.map((texts) => `a/web www.example.com. ${texts}`),
      what,
    )
  }
})

t.test('a name that the search path led to counts as asked', async (t) => {
  const asked = 'www.example.com.default.svc.cluster.local.'
  const table = [
    { to: 'www.example.com.', want: ['www.example.com.'] },
    { to: 'www.example.com.', denied: 'www.example.com.', want: [] },
    { to: 'www.', want: ['www.'] },
    { to: 'ww.', want: [] },
    { to: 'other.example.', want: [] },
    { to: 'www.example.com.svc.cluster.local.', want: [] },
    { to: 'www.corp.example.', isSearched: true, want: ['www.corp.example.'] },
    // Only the first step.
    { via: 'x.example.', to: 'www.example.com.', isSearched: true, want: ['x.example.'] },
    { via: 'x.example.', to: 'www.example.com.', want: [] },
  ]
  for (const { via, to, denied = '', isSearched = false, want } of table) {
    const below = answering((tx) => {
      const alias = (owner: string, target: string) =>
        add(tx, owner, RRType.CNAME, 60, scanName(target)!)
      alias(asked, via ?? to)
      if (via !== undefined) alias(via, to)
      tx.response.isSearched = isSearched
      return address(tx, '192.0.2.1', 60, to)
    })
    const { gate, ask } = place({ below })
    gate.denied.add(denied)
    await ask({ name: asked })
    const names = [asked, ...want]
    t.strictSame(
      gate.learned,
      names.map((name) => `a/web ${name} 192.0.2.1/60`),
      `${via ?? ''} ${to} ${isSearched}`,
    )
  }
})

t.test('only what fits into the reply is learned', async (t) => {
  const all = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`)
  const fill = (tx: Transaction) => {
    add(tx, 'www.example.com.', RRType.CNAME, 60, scanName('web.example.net.')!)
    for (const text of all) address(tx, text, 60, 'web.example.net.')
    return Rcode.NOERROR
  }
  const table: [string, Partial<Question>, number][] = [
    ['UDP', {}, 0],
    ['a large payload size', { payloadOctets: 4096 }, 0],
    ['TCP', { tcp: true }, 100],
  ]
  for (const [what, question, want] of table) {
    const { gate, ask } = place({ below: answering(fill) })
    const { tx } = await ask(question)
    const [learned = ''] = gate.learned
    t.equal(learned.split('/60').length - 1, want, what)
    // The reply itself is composed later.
    t.equal(tx.response.truncated, false)
    const packet = new Uint8Array(65_535)
    const limit = replyLimit(tx.query, 1232)
    const octets = compose(tx.query, tx.response, packet, limit)
    t.ok(octets <= limit)
    t.equal(tx.response.truncated, want === 0, what)
    // Its answer has the CNAME record and the addresses.
    t.equal((packet[6]! << 8) | packet[7]!, 1 + want, what)
  }
  for (const [count, want] of [
    [29, 29],
    [30, 0],
  ] as const) {
    const some = all.slice(0, count)
    const below = answering((tx) => {
      for (const text of some) address(tx, text)
      return Rcode.NOERROR
    })
    const { gate, ask } = place({ below })
    await ask()
    const learned = gate.learned.join(' ').split('/60').length - 1
    t.equal(learned, want, `${count} addresses in 512 octets, with compressed names`)
  }
})

t.test('an address that changes hands during the query learns nothing', async (t) => {
  for (const next of ['b/other', undefined]) {
    const { gate, ask } = place({
      below: answering((tx) => {
        if (next === undefined) gate.remove(POD)
        else gate.set(next, POD)
        return address(tx, '192.0.2.1')
      }, true),
    })
    t.equal((await ask()).status, Rcode.NOERROR)
    t.strictSame(gate.learned, [])
  }
})

t.test('limits of concurrency', async (t) => {
  const waiting: (() => void)[] = []
  const below: Handler = {
    name: 'below',
    serve: (tx) => new Promise((resolve) => waiting.push(() => resolve(address(tx, '192.0.2.1')))),
  }
  const { gate, ask, counts, lines, clock } = place({ below, limits: { total: 3, perClient: 2 } })
  gate.set('a/db', '10.0.0.6')
  const first = [ask(), ask()]
  t.equal((await ask()).status, Rcode.SERVFAIL, 'the limit of a client')
  const other = ask({ from: '10.0.0.6' })
  t.equal((await ask({ from: '10.0.0.6' })).status, Rcode.SERVFAIL, 'the limit of all')
  t.equal(counts()[1], 2)
  const warnings = () => lines.filter((line) => line.startsWith('[WARNING]'))
  t.match(warnings(), [/limit of 2 of a\/web reached, new ones get SERVFAIL/])
  clock.pass(10_000)
  t.equal((await ask()).status, Rcode.SERVFAIL)
  t.equal(warnings().length, 2, 'one line in 10 s')
  for (const finish of waiting.splice(0)) finish()
  const statuses = (await Promise.all([...first, other])).map(({ status }) => status)
  t.strictSame(statuses, [Rcode.NOERROR, Rcode.NOERROR, Rcode.NOERROR])
  const again = ask()
  waiting.pop()!()
  t.equal((await again).status, Rcode.NOERROR)
})

t.test('a fault of a plugin leaves no query in progress', async (t) => {
  let isLate = false
  const below: Handler = {
    name: 'below',
    serve: () => {
      if (isLate) return Promise.reject(new Error('late'))
      throw new Error('at once')
    },
  }
  const { ask } = place({ below, limits: { total: 1, perClient: 1 } })
  for (let i = 0; i < 4; i++) {
    isLate = i % 2 === 1
    await t.rejects(ask(), isLate ? /late/ : /at once/)
  }
})
