import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { DROP, type Handler } from '../../../src/plugin/handler.ts'
import { SEARCH_PATHS } from '../../../src/plugin/search-paths.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { autopath } from '../../../src/plugins/autopath/setup.ts'
import { followerOf, SetUp, setupError } from '../../support/setup.ts'
import { lonelyServer, type Question, show, transaction } from '../../support/transaction.ts'
import { wire } from '../../support/zone-names.ts'

const SEARCH =
  'nameserver 192.0.2.1\nsearch ns.svc.cluster.local svc.cluster.local cluster.local.\n'
const NAME = 'ns.svc.cluster.local.'

/** A chain with these names; all others do not exist. Notes the names that it is asked for. */
function chainOf(outcomes: Readonly<Record<string, number>>, isLate: boolean) {
  const asked: string[] = []
  const serve = (tx: Transaction): number => {
    const { query, response } = tx
    const name = printName(query.qname)
    asked.push(name)
    const outcome = outcomes[name] ?? Rcode.NXDOMAIN
    if (outcome < 0 || outcome === Rcode.SERVFAIL || outcome === Rcode.REFUSED) return outcome
    response.rcode = outcome
    response.authoritative = true
    if (outcome === Rcode.NXDOMAIN || query.qtype !== RRType.A) {
      const soa = new Uint8Array([...wire('ns.'), ...wire('a.'), ...new Uint8Array(20)])
      const at = query.labelOffset[query.labelCount - 1]!
      response.add(Section.Authority, query.qname, at, RRType.SOA, 1, 5, soa, 0, soa.length)
      return outcome
    }
    response.add(Section.Answer, query.qname, 0, RRType.A, 1, 30, Uint8Array.of(192, 0, 2, 1), 0, 4)
    return outcome
  }
  const handler: Handler = {
    name: 'next',
    serve: (tx) => (isLate ? Promise.resolve().then(() => serve(tx)) : serve(tx)),
  }
  return { asked, handler }
}

async function place(t: Test, text = SEARCH) {
  const file = join(t.testdir({}), 'resolv.conf')
  writeFileSync(file, text)
  const corefile = `autopath ${file}`
  const c = new SetUp(autopath, corefile, ['.'])
  await c.start()
  t.teardown(() => c.stop())
  return { c, corefile }
}

const hex = (name: string) => Buffer.from(wire(name)).toString('hex')

t.test('the first name of the search path that exists answers the first query', async (t) => {
  const table = [
    {
      name: 'a name outside of the cluster',
      query: `www.example.org.${NAME}`,
      outcomes: { 'www.example.org.': 0 },
      asked: [
        `www.example.org.${NAME}`,
        'www.example.org.svc.cluster.local.',
        'www.example.org.cluster.local.',
        'www.example.org.',
      ],
      answer: [
        `www.example.org.${NAME} 30 IN CNAME ${hex('www.example.org.')}`,
        'www.example.org. 30 IN A c0000201',
      ],
    },
    {
      name: 'the first name',
      query: `web.${NAME}`,
      outcomes: { [`web.${NAME}`]: 0 },
      asked: [`web.${NAME}`],
      answer: [`web.${NAME} 30 IN A c0000201`],
    },
    {
      name: 'the second, after a REFUSED',
      query: `web.other.${NAME}`,
      outcomes: { [`web.other.${NAME}`]: Rcode.REFUSED, 'web.other.svc.cluster.local.': 0 },
      asked: [`web.other.${NAME}`, 'web.other.svc.cluster.local.'],
      answer: [
        `web.other.${NAME} 30 IN CNAME ${hex('web.other.svc.cluster.local.')}`,
        'web.other.svc.cluster.local. 30 IN A c0000201',
      ],
    },
    {
      name: 'not in the path',
      query: 'www.example.org.',
      outcomes: {},
      asked: ['www.example.org.'],
    },
    { name: 'the first domain itself', query: NAME, outcomes: {}, asked: [NAME] },
    {
      name: 'beside it',
      query: 'a.svc.cluster.local.',
      outcomes: {},
      asked: ['a.svc.cluster.local.'],
    },
  ]
  for (const isLate of [false, true]) {
    const { c } = await place(t)
    for (const { name, query, outcomes, asked, answer = [] } of table) {
      const below = chainOf(outcomes, isLate)
      const tx = transaction({ name: query })
      const shown = await show(c.handler(below.handler), tx)
      t.strictSame(below.asked, asked, name)
      t.strictSame(shown.answer, answer, name)
      t.equal(printName(tx.query.qname), query, 'the query is the client’s again')
    }
    t.equal(await c.metric('coredns_autopath_success_total{server="dns://:53"}'), 3)
  }
})

t.test('replies that end the search', async (t) => {
  const { c } = await place(t)
  const ask = async (outcomes: Readonly<Record<string, number>>, over: Partial<Question> = {}) => {
    const below = chainOf(outcomes, false)
    const tx = transaction({ name: `a.b.${NAME}`, ...over })
    return { ...(await show(c.handler(below.handler), tx)), asked: below.asked.length }
  }
  t.match(await ask({}), { status: 'NXDOMAIN', authority: { length: 1 }, asked: 5 })
  t.match((await ask({})).authority[0], /^local\./, 'the reply to its own query')
  t.match(await ask({ [`a.b.${NAME}`]: Rcode.SERVFAIL }), { status: /SERVFAIL/, asked: 1 })
  t.match(await ask({ 'a.b.': Rcode.SERVFAIL, 'a.b.cluster.local.': DROP }), { status: 'DROP' })
  const noData = await ask({ 'a.b.': 0 }, { type: RRType.AAAA })
  t.match(noData, { status: 'NOERROR', answer: { length: 0 }, asked: 4 })
  t.match(await ask({}, { class: RRClass.CH }), { asked: 1 })
  t.match(await ask({}, { type: RRType.AXFR }), { asked: 1 })
  const label = 'x'.repeat(60)
  const long = `${label}.${label}.${label}.${'y'.repeat(40)}.${NAME}`
  t.match(await ask({}, { name: long }), { status: 'NXDOMAIN', asked: 5 })
})

t.test('a name that is too long with a later domain is left out', async (t) => {
  const { c } = await place(t, `search a ${'b'.repeat(63)}.${'c'.repeat(63)}\n`)
  const below = chainOf({}, false)
  const base = `${'x'.repeat(63)}.${'x'.repeat(63)}.${'x'.repeat(20)}.`
  await show(c.handler(below.handler), transaction({ name: `${base}a.` }))
  t.strictSame(below.asked, [`${base}a.`, base, `${base}a.`])
})

t.test('a query that another thread must answer is not changed', async (t) => {
  const { c, corefile } = await place(t)
  const follower = followerOf(c, autopath, corefile, ['.'])
  let isHandingOver = false
  const server = {
    ...lonelyServer,
    get isHandingOver() {
      return isHandingOver
    },
  }
  const below: Handler = {
    name: 'next',
    serve: (tx) => {
      if (printName(tx.query.qname) !== 'a.b.') {
        tx.response.rcode = Rcode.NXDOMAIN
        return Rcode.NXDOMAIN
      }
      isHandingOver = true
      return DROP
    },
  }
  const tx = transaction({ name: `a.b.${NAME}` }, server)
  t.equal(await follower.handler(below).serve(tx), DROP)
  t.equal(printName(tx.query.qname), `a.b.${NAME}`)
})

t.test('an error below reaches the server with the client’s query', async (t) => {
  const { c } = await place(t)
  const below: Handler = { name: 'next', serve: () => Promise.reject(new Error('bug')) }
  const tx = transaction({ name: `a.b.${NAME}` })
  await t.rejects(Promise.resolve(c.handler(below).serve(tx)), { message: 'bug' })
  t.equal(printName(tx.query.qname), `a.b.${NAME}`)
})

t.test('search paths of another directive', async (t) => {
  const path = [wire(NAME), wire('.')]
  const c = new SetUp(autopath, 'autopath cluster.local @kubernetes')
  c.block.shared.acquire(SEARCH_PATHS).set('kubernetes', { reason: '', find: () => path })
  const below = chainOf({ 'a.b.': 0 }, false)
  const { answer } = await show(c.handler(below.handler), transaction({ name: `a.b.${NAME}` }))
  t.equal(answer.length, 2)
  await c.start()
  t.strictSame(c.warnings, [])
  t.strictSame((await c.check()).faults, [])
  const idle = new SetUp(autopath, 'autopath @kubernetes')
  idle.block.shared
    .acquire(SEARCH_PATHS)
    .set('kubernetes', { reason: 'it sleeps', find: () => undefined })
  await idle.start()
  t.strictSame(idle.warnings, ['1: @kubernetes finds no search paths: it sleeps'])
})

t.test('a file without a search path has no effect, and causes a warning', async (t) => {
  const { c } = await place(t, '# search a\nnameserver 192.0.2.1\n')
  const { asked, handler } = chainOf({}, false)
  await show(c.handler(handler), transaction({ name: `x.${NAME}` }))
  t.strictSame(asked, [`x.${NAME}`])
  t.match(c.lines, [/resolv.conf has no search domains, so autopath has no effect/])
  const { faults, warnings } = await c.check()
  t.strictSame(faults, [])
  t.match(warnings, [/Corefile:1: plugin\/autopath: .*has no search domains/])
})

t.test('invalid options', async (t) => {
  const table: [string, RegExp][] = [
    ['autopath', /Corefile:1 .*no resolv-conf specified/],
    ['autopath @', /Corefile:1 .*needs the name of a directive/],
    ['autopath a..b resolv.conf', /Corefile:1 /],
    ['autopath @x {\n a b\n}', /Corefile:2 .*unknown property 'a'/],
    ['autopath @x\nautopath @y', /Corefile:2 .*only be used once/],
  ]
  for (const [text, want] of table) t.match(setupError(autopath, text), want, text)
  for (const [text, want] of [
    ['autopath @x', /no directive x with search paths in this server block/],
    ['autopath none', /failed to parse .*none: ENOENT/],
  ] as const) {
    const c = new SetUp(autopath, text)
    c.handler()
    t.match((await c.check()).faults, [new RegExp(`Corefile:1: .*${want.source}`)], text)
    await t.rejects(c.start(), { name: 'InputError', message: want }, text)
  }
})
