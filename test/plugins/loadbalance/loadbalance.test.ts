import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { Reorder } from '../../../src/plugins/loadbalance/reorder.ts'
import { loadbalance } from '../../../src/plugins/loadbalance/setup.ts'
import { copyWeights, findWeight, scanWeights } from '../../../src/plugins/loadbalance/weights.ts'
import { FakeTimers, followerOf, SetUp, setupError } from '../../support/setup.ts'
import { answering, type Question, show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const { Answer, Authority, Additional } = Section
type Record = readonly [Section, number, ...number[]]

const A = (last: number): Record => [Answer, RRType.A, 192, 0, 2, last]
const MX = (preference: number): Record => [Answer, RRType.MX, 0, preference, 0]
const CNAME: Record = [Answer, RRType.CNAME, 0]
const TXT: Record = [Answer, RRType.TXT, 0]

function add(tx: Transaction, [section, type, ...octets]: Record): void {
  const rdata = Uint8Array.from(octets)
  tx.response.add(section, tx.query.qname, 0, type, RRClass.IN, 60, rdata, 0, rdata.length)
}

function replying(records: readonly Record[], rcode: number = Rcode.NOERROR) {
  return answering((tx) => {
    for (const record of records) add(tx, record)
    tx.response.rcode = rcode
    return rcode
  })
}

/** What the answer section is after each of many queries: order, and how often it came. */
async function orders(
  setUp: SetUp,
  records: readonly Record[],
  question: Partial<Question> = {},
): Promise<Map<string, number>> {
  const handler = setUp.handler(replying(records))
  const seen = new Map<string, number>()
  for (let seed = 0; seed < 600; seed++) {
    const tx = transaction({ name: 'www.example.org.', seed, ...question })
    const { answer, additional } = await show(handler, tx)
    const order = [...answer, ...additional]
      .map((line) => line.split(' ')[3] + line.slice(-2))
      .join(' ')
    seen.set(order, (seen.get(order) ?? 0) + 1)
  }
  return seen
}

t.test('addresses come in every order, equally often', async (t) => {
  const seen = await orders(new SetUp(loadbalance, 'loadbalance'), [A(1), A(2), A(3)])
  t.equal(seen.size, 6)
  for (const [order, count] of seen) t.ok(count > 60 && count < 140, `${order}: ${count}`)
})

t.test('aliases first, then others, addresses, mail exchanges', async (t) => {
  const seen = await orders(new SetUp(loadbalance, 'loadbalance round_robin'), [
    MX(1),
    A(1),
    TXT,
    A(2),
    CNAME,
    MX(2),
  ])
  t.strictSame([...seen.keys()].sort(), [
    'CNAME00 TXT00 A01 A02 MX00 MX00',
    'CNAME00 TXT00 A02 A01 MX00 MX00',
  ])
})

t.test('a DNAME stays before the CNAME that it makes', async (t) => {
  const dname: Record = [Answer, RRType.DNAME, 0]
  for (const policy of ['loadbalance', 'loadbalance {\n prefer 192.0.2.2/32\n}']) {
    const seen = await orders(new SetUp(loadbalance, policy), [dname, CNAME, A(1)])
    t.strictSame([...seen.keys()], ['DNAME00 CNAME00 A01'])
  }
})

t.test('every section is balanced for itself', async (t) => {
  const setUp = new SetUp(loadbalance, 'loadbalance')
  const extra = (last: number): Record => [Additional, RRType.A, 192, 0, 2, last]
  const seen = await orders(setUp, [extra(3), A(1), [Authority, RRType.NS, 0], A(2), extra(4)])
  t.strictSame([...seen.keys()].sort(), [
    'A01 A02 A03 A04',
    'A01 A02 A04 A03',
    'A02 A01 A03 A04',
    'A02 A01 A04 A03',
  ])
})

t.test('errors are left alone', async (t) => {
  const handler = new SetUp(loadbalance, 'loadbalance').handler(
    replying([MX(1), A(1)], Rcode.NXDOMAIN),
  )
  const { answer } = await show(handler, transaction({ name: 'www.example.org.' }))
  t.match(answer, [/ MX /, / A /])
})

t.test('preferred networks first, in their order', async (t) => {
  const options = 'prefer 192.0.2.4/31 192.0.2.1/32\n prefer 2001:db8::/32'
  const six: Record = [Answer, RRType.AAAA, 0x20, 1, 0x0d, 0xb8, ...new Array(11).fill(0), 9]
  const seen = await orders(new SetUp(loadbalance, `loadbalance {\n ${options}\n}`), [
    TXT,
    A(2),
    six,
    A(1),
    A(5),
    MX(1),
    CNAME,
  ])
  t.strictSame([...seen.keys()], ['CNAME00 A05 A01 AAAA09 A02 MX00 TXT00'])
})

t.test('one address is drawn by weight', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'weights-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'weights')
  const timers = new FakeTimers()
  writeFileSync(file, '# shares\nWWW.example.org\n192.0.2.1 3\n')
  const setUp = new SetUp(loadbalance, `loadbalance weighted ${file} {\n reload 5s\n}`, undefined, {
    timers,
  })
  await setUp.start()
  t.match(setUp.lines, [`[INFO] plugin/loadbalance: Successfully reloaded weight file ${file}`])
  const first = (seen: Map<string, number>, address: string) =>
    [...seen].reduce((sum, [order, count]) => sum + (order.startsWith(address) ? count : 0), 0)
  const seen = await orders(setUp, [A(2), A(1)])
  t.strictSame([...seen.keys()].sort(), ['A01 A02', 'A02 A01'])
  t.ok(Math.abs(first(seen, 'A01') - 450) < 50, `three in four: ${first(seen, 'A01')} of 600`)
  const text = await orders(setUp, [A(2), A(1)], { type: RRType.MX })
  t.strictSame([...text.keys()], ['A02 A01'], 'only for queries that lead to addresses')

  writeFileSync(file, 'www.example.org\n192.0.2.1 0\n')
  await timers.advance(5000)
  await setUp.stop()
  t.match((await orders(setUp, [A(2), A(1)])).size, 2, 'a bad file leaves the good weights')
})

t.test('data threads follow the weights', async (t) => {
  const file = join(t.testdir({ weights: 'www.example.org\n192.0.2.1 255\n' }), 'weights')
  const timers = new FakeTimers()
  const corefile = `loadbalance weighted ${file} {\n reload 5s\n}`
  const setUp = new SetUp(loadbalance, corefile, undefined, { timers })
  const follower = followerOf(setUp, loadbalance, corefile)
  const leads = async (side: SetUp): Promise<number> => {
    return (await orders(side, [A(2), A(1)])).get('A01 A02') ?? 0
  }
  t.ok(Math.abs((await leads(follower)) - 300) < 60, 'nothing is known yet')
  await setUp.start()
  t.ok((await leads(follower)) > 590)
  t.equal(await leads(follower), await leads(setUp), 'the same draws')
  writeFileSync(file, 'www.example.org\n192.0.2.2 255\n')
  await timers.advance(5000)
  await until(async () => (await leads(follower)) < 10, 'the new weights')
  writeFileSync(file, 'this is bad')
  await timers.advance(5000)
  await until(() => setUp.lines.some((line) => line.includes('could not parse')), 'the fault')
  t.ok((await leads(follower)) < 10, 'a bad file leaves the good weights')
  await setUp.stop()
})

t.test('a missing weight file', async (t) => {
  const timers = new FakeTimers()
  const retried = new SetUp(loadbalance, 'loadbalance weighted /no/weights', undefined, { timers })
  await retried.start()
  t.match(retried.lines[0], /Failed to open weight file:.* Will try again in 30s/)
  await retried.stop()
  t.equal(timers.count, 0)
  const { faults, warnings } = await retried.check()
  t.strictSame(faults, [], 'a check says what a start does')
  t.match(warnings, [/^Corefile:1: Failed to open weight file:.* Will try again in 30s/])
  const once = new SetUp(loadbalance, 'loadbalance weighted /no/f {\n reload 0s\n}', undefined, {
    timers,
  })
  await t.rejects(once.start(), /no such file/)
  t.match(await once.check(), { faults: [/^Corefile:1: .*no such file/], warnings: [] })
})

t.test('a fault of ours in a reload of weights costs that reload alone', async (t) => {
  const path = join(t.testdir({ weights: 'a\n192.0.2.1 1\n' }), 'weights')
  const timers = new FakeTimers()
  const c = new SetUp(loadbalance, `loadbalance weighted ${path}`, undefined, { timers })
  t.teardown(() => c.stop())
  await c.start()
  let isBroken = true
  Object.assign(c.log, {
    info(text: string) {
      if (isBroken) throw new Error('boom')
      c.lines.push(text)
    },
  })
  writeFileSync(path, 'a\n192.0.2.1 2\n')
  const turnUntil = (done: () => boolean, what: string) =>
    until(async () => {
      await timers.advance(30_000)
      return done()
    }, what)
  const errors = () => c.lines.filter((line) => line.startsWith('[ERROR]'))
  await turnUntil(() => errors().length > 0, 'the fault')
  t.match(
    errors()[0],
    `plugin/loadbalance: Reloading ${path} failed, the last valid state is kept: boom`,
  )
  isBroken = false
  writeFileSync(path, 'a\n192.0.2.1 3\n')
  await turnUntil(
    () => c.lines.at(-1) === `Successfully reloaded weight file ${path}`,
    'the new one',
  )
})

t.test('weight files', async (t) => {
  const table = [
    { given: '192.0.2.1', want: 'wrong domain name:"192.0.2.1" in weight file f, line 1' },
    { given: 'a\n192.0.2.1 256', want: 'wrong weight value:"256" in weight file f, line 2' },
    { given: 'a\n192.0.2.1 0', want: 'wrong weight value:"0"' },
    { given: 'a\nb 1', want: 'wrong IP address:"b"' },
    { given: '192.0.2.1 1', want: 'missing domain name' },
    { given: 'a b c', want: 'could not parse weight line:"a b c"' },
  ]
  for (const { given, want } of table) t.match(scanWeights(given, 'f'), want, given)
  const weights = scanWeights('a.b\n192.0.2.1 7\n192.0.2.1 9\n2001:db8::1 8\n', 'f')
  if (typeof weights === 'string') return t.fail(weights)
  const shared = copyWeights(weights)
  const find = (name: string, ...address: number[]) =>
    findWeight(shared, scanName(name)!, 0, Uint8Array.from(address), 0, address.length)
  t.equal(find('A.b.', 192, 0, 2, 1), 7, 'any case, first of two')
  t.equal(find('a.b.', 192, 0, 2, 2), 0)
  t.equal(find('b.', 192, 0, 2, 1), 0)
  t.equal(find('a.b.', 0x20, 1, 0x0d, 0xb8, ...new Array(11).fill(0), 1), 8)
})

t.test('reordering keeps every record whole', async () => {
  const ranks = fc.array(fc.tuple(fc.constantFrom(0, 1, 2), fc.nat(3)), { maxLength: 40 })
  const reorder = new Reorder()
  fc.assert(
    fc.property(ranks, (records) => {
      const tx = transaction({ name: 'example.org.' })
      for (const [i, [section]] of records.entries()) add(tx, [section as Section, i + 1, i])
      const { response } = tx
      reorder.gather(response, Answer)
      for (let i = 0; i < reorder.count; i++) {
        reorder.rank[i] = records[reorder.position[i]!]![1]
      }
      reorder.sort(4)
      reorder.apply(response)
      const of = (section: Section) =>
        [...records.keys()].filter((i) => response.section[i] === section)
      const types = (section: Section) => of(section).map((i) => response.type[i]! - 1)
      const given = [...records.keys()].filter((i) => records[i]![0] === Answer)
      const want = given.toSorted((a, b) => records[a]![1] - records[b]![1])
      const whole = [...records.keys()].every((i) => {
        return response.rdataBytes[i]![0] === response.type[i]! - 1
      })
      const untouched = of(Additional).every((i) => response.type[i] === i + 1)
      return whole && untouched && types(Answer).join() === want.join()
    }),
    { seed: 8, numRuns: 1000 },
  )
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'loadbalance fast', want: 'unknown policy: fast' },
    { given: 'loadbalance round_robin a', want: 'unknown property for round_robin' },
    { given: 'loadbalance weighted', want: 'missing weight file argument' },
    { given: 'loadbalance weighted a b', want: 'unexpected argument(s)' },
    { given: 'loadbalance {\n reload 1s\n}', want: "unknown property 'reload'" },
    { given: 'loadbalance {\n prefer 10.0.0.1\n}', want: 'invalid CIDR "10.0.0.1"' },
    { given: 'loadbalance weighted f {\n reload\n}', want: 'reload duration value is missing' },
    { given: 'loadbalance weighted f {\n reload 1s 2s\n}', want: 'unexpected argument' },
    { given: 'loadbalance weighted f {\n reload x\n}', want: "invalid reload duration 'x'" },
  ]
  for (const { given, want } of table) t.match(setupError(loadbalance, given), want, given)
})
