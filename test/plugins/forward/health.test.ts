import t from 'tap'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import { printName } from '../../../src/dns/name/name.ts'
import {
  type Answer,
  type Asked,
  replyTo,
  type ScriptedServer,
} from '../../support/scripted-server.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { forwarding } from './stage.ts'

const plainly: Answer = ({ query, send }) => send(replyTo(query))
const silent: Answer = () => {}
const www = () => transaction({ name: 'www.example.org.' })
const isCheck = ({ query }: Asked) => query.question!.type === RRType.NS

type Parts = Awaited<ReturnType<typeof forwarding>>

const checksOf = (upstream: ScriptedServer) => upstream.asked.filter(isCheck)
const queriesOf = (upstream: ScriptedServer) => upstream.asked.filter((one) => !isCheck(one))

/** Asks while the first upstream is silent, until `fails` checks of it have failed. */
async function failChecks({ handler, timers, first }: Parts, fails: number): Promise<void> {
  const before = queriesOf(first).length
  const asked = handler.serve(www())
  await until(() => queriesOf(first).length > before, 'the query')
  await timers.advance(2000)
  await asked
  for (let i = 1; i <= fails; i++) {
    await until(() => checksOf(first).length === i, `check ${i}`)
    await timers.advance(1000)
    await timers.advance(500)
  }
}

t.test('a failed upstream is checked until it replies, and then no more', async (t) => {
  const parts = await forwarding(t, [silent, plainly])
  const { handler, timers, upstreams, first } = parts
  await failChecks(parts, 2)
  await until(() => checksOf(first).length === 3, 'the third check')
  const [{ query }] = checksOf(first) as [Asked]
  t.equal(printName(query.question!.name), '.')
  t.equal(query.flags, HeaderFlag.RD)
  t.equal(query.edns, undefined)
  const before = queriesOf(first).length
  // Two failed checks are not more than max_fails.
  const asked = handler.serve(www())
  await until(() => queriesOf(first).length > before, 'the query')
  await timers.advance(2000)
  await asked
  await until(() => checksOf(first).length === 4, 'the fourth check')
  t.equal(queriesOf(upstreams[1]!).length, 2)
  await handler.serve(www())
  t.equal(queriesOf(first).length, before + 1, 'down: not asked')
  // Any reply makes it healthy.
  first.answer = ({ query, send }) => send(replyTo(query, { rcode: Rcode.REFUSED, answer: [] }))
  await timers.advance(1000)
  await timers.advance(500)
  await until(() => checksOf(first).length === 5, 'the fifth check')
  await until(async () => {
    await handler.serve(www())
    return queriesOf(first).length > before + 1
  }, 'the upstream to be up')
  await timers.advance(5000)
  t.equal(checksOf(first).length, 5, 'no more checks')
})

t.test('all upstreams are down: one is queried anyway', async (t) => {
  const parts = await forwarding(t, [silent], 'max_fails 1\nmax_connect_attempts 1')
  const { c, handler, timers, first } = parts
  t.equal(c.problemText(), '')
  await failChecks(parts, 2)
  const before = queriesOf(first).length
  const asked = handler.serve(www())
  await until(() => queriesOf(first).length > before, 'the query')
  await timers.advance(2000)
  t.equal(await asked, Rcode.SERVFAIL)
  t.equal(await c.metric('coredns_forward_healthcheck_broken_total'), 1)
  const all = `forward .: all upstreams are down: ${first.address}; each query is sent to one of them`
  t.equal(c.problemText(), all)
  first.answer = plainly
  await timers.advance(1000)
  await until(async () => {
    await timers.advance(500)
    return c.problemText() === ''
  }, 'the upstream to be up')
  const failures = `coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="${first.address}"}`
  t.ok((await c.metric(failures))! >= 2)
})

t.test('failfast_all_unhealthy_upstreams: SERVFAIL at once', async (t) => {
  const properties = 'max_fails 1\nmax_connect_attempts 1\nfailfast_all_unhealthy_upstreams'
  const parts = await forwarding(t, [silent], properties)
  await failChecks(parts, 2)
  const before = queriesOf(parts.first).length
  const tx = www()
  t.equal(await parts.handler.serve(tx), Rcode.SERVFAIL)
  t.equal(tx.response.error, 'no healthy proxies')
  t.equal(queriesOf(parts.first).length, before)
})

t.test('max_fails 0: no checks', async (t) => {
  const { handler, timers, first } = await forwarding(
    t,
    [silent],
    'max_fails 0\nmax_connect_attempts 1',
  )
  const asked = handler.serve(www())
  await until(() => first.asked.length === 1, 'the query')
  await timers.advance(2000)
  t.equal(await asked, Rcode.SERVFAIL)
  await timers.advance(5000)
  t.strictSame(checksOf(first), [])
})

t.test('health_check sets interval, RD and name; force_tcp the protocol', async (t) => {
  const parts = await forwarding(
    t,
    [silent],
    'health_check 3s no_rec domain Check.example\nforce_tcp\nmax_connect_attempts 1',
  )
  const { handler, timers, first } = parts
  const asked = handler.serve(www())
  await until(() => first.asked.length === 1, 'the query')
  await timers.advance(2000)
  await asked
  await until(() => checksOf(first).length === 1, 'the first check')
  const [check] = checksOf(first) as [Asked]
  t.equal(printName(check.query.question!.name), 'check.example.')
  t.equal(check.query.flags, 0)
  t.equal(check.isTcp, true)
  await timers.advance(1000)
  await timers.advance(2900)
  t.equal(checksOf(first).length, 1)
  await timers.advance(100)
  await until(() => checksOf(first).length === 2, 'the second check')
})

t.test('policies', async (t) => {
  const firsts = async (policy: string): Promise<number[]> => {
    const { handler, upstreams } = await forwarding(t, [plainly, plainly, plainly], policy)
    const asked: number[] = []
    for (let i = 0; i < 60; i++) {
      const before = upstreams.map((upstream) => upstream.asked.length)
      await handler.serve(transaction({ name: 'www.example.org.', seed: i + 1 }))
      asked.push(upstreams.findIndex((upstream, k) => upstream.asked.length > before[k]!))
    }
    return asked
  }
  t.strictSame(new Set(await firsts('policy sequential')), new Set([0]))
  const turns = await firsts('policy round_robin')
  for (let i = 3; i < 60; i++) t.equal(turns[i], turns[i - 3])
  t.equal(new Set(turns).size, 3)
  const random = await firsts('policy random')
  for (const k of [0, 1, 2]) t.ok(random.filter((one) => one === k).length > 5)
})
