import t, { type Test } from 'tap'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import { type Answer, addressRecord, replyTo } from '../../support/scripted-server.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ADDRESS, forwarding, WWW } from './stage.ts'

const silently: Answer = () => {}

/** `forward` to one upstream that answers so. */
async function forwardingTo(t: Test, answer: Answer, properties = '') {
  const { first: upstream, ...parts } = await forwarding(t, [answer], `max_fails 0\n${properties}`)
  return { ...parts, upstream }
}

/** A query with a client subnet of 24 bits: 198.51.`octet`.0. */
function subnetQuery(octet: number) {
  const tx = transaction({ ...WWW, payloadOctets: 1232 })
  Object.assign(tx.query, { hasEcs: true, ecsFamily: 1, ecsSourceBits: 24 })
  tx.query.ecsAddress.set([198, 51, octet])
  return tx
}

t.test('equal questions in flight are one query to the upstream', async (t) => {
  const { handler, upstream } = await forwardingTo(t, silently)
  const flagged = (flag: number) => () => {
    const tx = transaction(WWW)
    tx.query.flags ^= flag
    return tx
  }
  const kinds = [
    () => transaction(WWW),
    () => transaction({ ...WWW, type: RRType.AAAA }),
    () => transaction({ ...WWW, dnssecOk: true, payloadOctets: 1232 }),
    () => transaction({ ...WWW, name: 'w.example.org.' }),
    flagged(HeaderFlag.RD),
    flagged(HeaderFlag.AD),
    flagged(HeaderFlag.CD),
    () => subnetQuery(1),
    () => subnetQuery(2),
  ]
  const shown = kinds.flatMap((make) => {
    return Array.from({ length: 30 }, (_, i) => {
      const tx = make()
      tx.query.id = i
      return show(handler, tx)
    })
  })
  await until(() => upstream.asked.length >= kinds.length, 'the queries')
  t.equal(upstream.asked.length, kinds.length)
  for (const { query, send } of upstream.asked) send(replyTo(query))
  const answers = await Promise.all(shown)
  t.ok(answers.every(({ status, answer }) => status === 'NOERROR' && answer.length === 1))
  t.strictSame(answers[0]?.answer, [ADDRESS])
  upstream.answer = ({ query, send }) => send(replyTo(query))
  t.strictSame((await show(handler, transaction(WWW))).answer, [ADDRESS])
  t.equal(upstream.asked.length, kinds.length + 1, 'a later question is asked again')
})

t.test('a client that varies its query has 16 queries over UDP; the others use TCP', async (t) => {
  const { handler, upstream } = await forwardingTo(t, silently)
  const shown = Array.from({ length: 40 }, (_, i) => show(handler, subnetQuery(i)))
  await until(() => upstream.asked.length === shown.length, 'the queries')
  t.equal(upstream.asked.filter(({ isTcp }) => !isTcp).length, 16)
  for (const { query, send } of upstream.asked) send(replyTo(query))
  for (const { answer } of await Promise.all(shown)) t.strictSame(answer, [ADDRESS])
  upstream.answer = ({ query, send }) => send(replyTo(query))
  await show(handler, subnetQuery(1))
  t.equal(upstream.asked.at(-1)?.isTcp, false, 'a later question uses UDP again')
})

t.test(
  'wrong replies count per question: after three of them, all its queries use TCP',
  async (t) => {
    const { handler, upstream } = await forwardingTo(t, ({ query, isTcp, send }) => {
      if (isTcp) send(replyTo(query))
      else
        send(replyTo({ ...query, id: query.id ^ 1 }, { answer: [addressRecord(query, '1.1.1.1')] }))
    })
    const shown = [1, 2, 3].map((octet) => show(handler, subnetQuery(octet)))
    for (const { answer } of await Promise.all(shown)) t.strictSame(answer, [ADDRESS])
    const count = (isTcp: boolean) => upstream.asked.filter((one) => one.isTcp === isTcp).length
    t.strictSame([count(false), count(true)], [3, 3])
    t.strictSame((await show(handler, subnetQuery(4))).answer, [ADDRESS])
    t.strictSame([count(false), count(true)], [3, 4], 'for a while also later queries')
    upstream.answer = ({ query, send }) => send(replyTo(query))
    await show(handler, transaction({ ...WWW, name: 'w.example.org.' }))
    t.strictSame([count(false), count(true)], [4, 4], 'another question is not concerned')
  },
)

t.test('wrong replies are forgotten after a while', async (t) => {
  const { handler, timers, upstream } = await forwardingTo(t, ({ query, isTcp, send }) => {
    for (let i = 1; i <= 3; i++) send(replyTo({ ...query, id: query.id ^ (isTcp ? 0 : i) }))
  })
  await show(handler, transaction(WWW))
  upstream.answer = ({ query, send }) => send(replyTo(query))
  await timers.advance(10_000)
  await show(handler, transaction(WWW))
  t.strictSame(
    upstream.asked.map(({ isTcp }) => isTcp),
    [false, true, false],
  )
})

t.test('each of equal queries has its own deadline', async (t) => {
  const { handler, timers, upstream } = await forwardingTo(t, silently)
  const patient = show(handler, transaction(WWW))
  const hasty = transaction(WWW)
  hasty.deadlineMs = 100
  const status = handler.serve(hasty)
  await until(() => upstream.asked.length === 1, 'the query')
  await timers.advance(100)
  t.equal(await status, Rcode.SERVFAIL)
  t.equal(hasty.response.error, 'no upstream replied in time')
  for (const { query, send } of upstream.asked) send(replyTo(query))
  t.strictSame((await patient).answer, [ADDRESS])
})

/** Serves a query and returns its status, `waits` while it has none. */
function serving(handler: { serve: (tx: ReturnType<typeof transaction>) => unknown }) {
  const open = new Map<string, string>()
  let startedMs = 0
  return {
    /** The status of the last query of each client. */
    open,
    send: (from: string): void => {
      const name = `n${startedMs}.example.org.`
      open.set(from, 'waits')
      const end = (status: unknown): void => void open.set(from, status === 0 ? 'ok' : `${status}`)
      const status = handler.serve(transaction({ ...WWW, name, from, startedMs: startedMs++ }))
      if (status instanceof Promise) void status.then(end)
      else end(status)
    },
  }
}

t.test('a client with many slots loses one to a client with few', async (t) => {
  const { handler, upstream } = await forwardingTo(t, silently, 'max_concurrent 4')
  const { open, send } = serving(handler)
  for (const last of [1, 2, 3, 4]) send(`192.0.2.${last}`)
  await until(() => upstream.asked.length === 4, 'the first queries')
  send('192.0.2.5')
  t.equal(open.get('192.0.2.5'), '5', 'a new client of the network that has all')
  send('198.51.100.1')
  await until(() => open.get('192.0.2.1') === '5', 'the oldest query of the network to end')
  send('2001:db8::1')
  await until(() => open.get('192.0.2.2') === '5', 'the next one to end')
  send('192.0.2.6')
  t.equal(open.get('192.0.2.6'), '5')
  await until(() => upstream.asked.length === 6, 'the queries')
  for (const { query, send } of upstream.asked) send(replyTo(query))
  await until(() => [...open.values()].every((status) => status !== 'waits'), 'the replies')
  t.strictSame(Object.fromEntries(open), {
    ...{ '192.0.2.1': '5', '192.0.2.2': '5', '192.0.2.3': 'ok', '192.0.2.4': 'ok' },
    ...{ '192.0.2.5': '5', '192.0.2.6': '5', '198.51.100.1': 'ok', '2001:db8::1': 'ok' },
  })
})

for (const transport of ['', 'force_tcp']) {
  t.test(`without max_concurrent, a client has no more slots than others: ${transport}`, (t) => {
    return floodOneClient(t, transport)
  })
}

t.test('the address has room for the queries that wait', async (t) => {
  for (const [properties, room] of [
    ['', 0],
    ['max_concurrent 1500', 1500],
  ] as const) {
    const { c } = await forwardingTo(t, silently, properties)
    t.equal(c.block.waitingMax, room)
  }
})

async function floodOneClient(t: Test, transport: string): Promise<void> {
  const { handler, upstream } = await forwardingTo(t, silently, transport)
  const flood = Array.from({ length: 1000 }, () => handler.serve(transaction(WWW)))
  const refused = handler.serve(transaction(WWW))
  t.equal(refused, Rcode.REFUSED)
  const other = show(handler, transaction({ ...WWW, name: 'w.example.org.', from: '192.0.2.1' }))
  await until(() => upstream.asked.length === 2, 'the queries')
  for (const { query, send } of upstream.asked) send(replyTo(query))
  t.equal((await other).status, 'NOERROR')
  const ended = await Promise.all(flood)
  t.equal(ended.filter((status) => status === Rcode.REFUSED).length, 1)
}

for (const [transport, wrap] of [
  ['', 'UDPWrap'],
  ['force_tcp', 'TCPSocketWrap'],
] as const) {
  t.test(`a query that lost its slot takes no socket any more: ${transport}`, async (t) => {
    const properties = `max_concurrent 40\n${transport}`
    const { c, handler, upstream } = await forwardingTo(t, silently, properties)
    const { open, send } = serving(handler)
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === wrap).length
    const count = (wanted: string) => [...open.values()].filter((one) => one === wanted).length
    const before = sockets()
    for (let i = 0; i < 40; i++) send('192.0.2.1')
    await until(() => upstream.asked.length === 40, 'the queries of one client')
    const most = sockets() - before
    for (let i = 0; i < 20; i++) {
      send(`198.51.${i}.1`)
      await until(() => upstream.asked.length === 41 + i, 'those of the others')
    }
    await until(() => sockets() - before <= most, 'the sockets to be closed')
    // Replies that come too late do no harm.
    for (const { query, send } of upstream.asked) send(replyTo(query))
    await until(() => count('ok') === 21, 'the replies')
    if (transport !== '') t.equal(upstream.connections, most / 2)
    t.match(await c.metrics.print(), /max_concurrent_rejects_total\S* 20$/m)
  })
}
