import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { forward } from '../../../src/plugins/forward/setup.ts'
import { selfSigned } from '../../support/certificate.ts'
import {
  type Answer,
  type Asked,
  addressRecord,
  framed,
  replyTo,
  ScriptedServer,
} from '../../support/scripted-server.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const ADDRESS = 'www.example.org. 60 IN A c0000201'
const plainly: Answer = ({ query, send }) => send(replyTo(query))
const www = () => transaction({ name: 'www.example.org.', tcp: true })
/** Another question each time, because equal ones share a query. */
const numbered = (_: unknown, i: number) => transaction({ name: `n${i}.example.org.`, tcp: true })

async function started(t: Test, to: string, properties: string) {
  const timers = new FakeTimers()
  const c = new SetUp(forward, `forward . ${to} {\nmax_fails 0\n${properties}\n}`, undefined, {
    timers,
  })
  await c.start()
  t.teardown(async () => {
    await c.stop()
    await timers.advance(1000)
  })
  return { c, timers, handler: c.handler(answering(() => Rcode.REFUSED)) }
}

/** Forwards to an upstream that answers so, over TCP. */
async function overTcp(t: Test, answer: Answer, properties = '') {
  const upstream = await ScriptedServer.openRaw(t, answer)
  return { upstream, ...(await started(t, upstream.address, properties)) }
}

t.test('queries share a connection, and replies may come in any order', async (t) => {
  const waiting: Asked[] = []
  const { handler, upstream } = await overTcp(t, (received) => void waiting.push(received))
  const names = Array.from({ length: 10 }, (_, i) => `n${i}.example.`)
  const replies = names.map((name) => show(handler, transaction({ name, tcp: true })))
  await until(() => waiting.length === 10, 'the queries')
  t.equal(upstream.connections, 1)
  t.equal(new Set(waiting.map(({ query }) => query.id)).size, 10)
  for (const { query, send } of waiting.reverse()) {
    const last = query.question!.name[2]! - 0x30
    send(replyTo(query, { answer: [addressRecord(query, `192.0.2.${last}`)] }))
  }
  const shown = await Promise.all(replies)
  t.strictSame(
    shown.map(({ answer }) => answer[0]),
    names.map((name, i) => `${name} 60 IN A c000020${i}`),
  )
})

t.test('many queries at once use several connections', async (t) => {
  const { handler, upstream } = await overTcp(t, plainly)
  const replies = Array.from({ length: 40 }, numbered).map((tx) => handler.serve(tx))
  for (const status of await Promise.all(replies)) t.equal(status, Rcode.NOERROR)
  t.equal(upstream.connections, 3)
})

t.test('replies that wait for their turn are not lost when the server ends', async (t) => {
  const waiting: Asked[] = []
  const { handler } = await overTcp(t, (received) => void waiting.push(received))
  const count = 60
  const replies = Array.from({ length: count }, numbered).map((tx) => show(handler, tx))
  await until(() => waiting.length === count, 'the queries')
  for (const { query, send } of waiting) {
    const records = Array.from({ length: 200 }, (_, i) => {
      return addressRecord(query, `192.0.${i >> 8}.${i & 255}`)
    })
    send(replyTo(query, { answer: records }))
  }
  for (const socket of new Set(waiting.map(({ socket }) => socket))) socket!.end()
  for (const { answer } of await Promise.all(replies)) t.equal(answer.length, 200)
})

t.test('an idle connection is closed after `expire`', async (t) => {
  const { handler, timers, upstream } = await overTcp(t, plainly, 'expire 10s')
  await handler.serve(www())
  await timers.advance(9000)
  await handler.serve(www())
  await timers.advance(9000)
  await handler.serve(www())
  t.equal(upstream.connections, 1)
  await timers.advance(10_000)
  await handler.serve(www())
  t.equal(upstream.connections, 2)
})

t.test('max_age and max_idle_conns', async (t) => {
  const aged = await overTcp(t, plainly, 'max_age 30s\nexpire 30s')
  await aged.handler.serve(www())
  aged.c.clock.pass(29_000)
  await aged.handler.serve(www())
  t.equal(aged.upstream.connections, 1)
  aged.c.clock.pass(1000)
  await aged.handler.serve(www())
  t.equal(aged.upstream.connections, 2)

  const few = await overTcp(t, plainly, 'max_idle_conns 1')
  await Promise.all(Array.from({ length: 40 }, numbered).map((tx) => few.handler.serve(tx)))
  t.equal(few.upstream.connections, 3)
  await Promise.all(Array.from({ length: 40 }, numbered).map((tx) => few.handler.serve(tx)))
  t.equal(few.upstream.connections, 5, 'one of three was kept')
})

t.test('a kept connection that the server closed is replaced', async (t) => {
  const { handler, upstream } = await overTcp(t, plainly)
  await handler.serve(www())
  upstream.answer = ({ socket }) => {
    socket!.destroy()
    upstream.answer = plainly
  }
  t.strictSame((await show(handler, www())).answer, [ADDRESS])
  t.equal(upstream.connections, 2)
})

t.test('attacks over TCP: SERVFAIL with a reason, and the next query is answered', async (t) => {
  const table: readonly { name: string; answer: Answer; want: RegExp; waits?: true }[] = [
    { name: 'silence', answer: () => {}, want: /timed out$/, waits: true },
    {
      name: 'the server dies',
      answer: ({ socket }) => socket!.destroy(),
      want: /the server closed|ECONNRESET/,
    },
    {
      name: 'the server dies in mid-reply',
      answer: ({ query, socket }) => socket!.end(framed(replyTo(query)).subarray(0, 20)),
      want: /the server closed/,
    },
    {
      name: 'a length above the message',
      answer: ({ query, socket }) => {
        socket!.write(Buffer.concat([Buffer.from([0xff, 0xff]), replyTo(query)]))
      },
      want: /timed out$/,
      waits: true,
    },
    {
      name: 'a length below a header',
      answer: ({ query, socket }) => {
        socket!.write(Buffer.concat([Buffer.from([0, 11]), replyTo(query)]))
      },
      want: /a message is shorter than a header/,
    },
    {
      name: 'a wrong id',
      answer: ({ query, send }) => send(replyTo({ ...query, id: query.id ^ 1 })),
      want: /timed out$/,
      waits: true,
    },
    {
      name: 'many messages with wrong ids',
      answer: ({ query, send }) => {
        for (let i = 1; i < 100; i++) send(replyTo({ ...query, id: query.id ^ i }))
      },
      want: /too many messages answer no query/,
    },
    {
      name: 'a wrong question',
      answer: ({ query, send }) => {
        send(replyTo(query, { question: { ...query.question!, type: 28 } }))
      },
      want: /timed out$/,
      waits: true,
    },
    {
      name: 'a malformed record',
      answer: ({ query, send }) => send(replyTo(query).subarray(0, -1)),
      want: /the reply is malformed/,
    },
  ]
  for (const { name, answer, want, waits } of table) {
    const parts = await overTcp(t, answer, 'max_connect_attempts 1')
    const { handler, timers, upstream } = parts
    const tx = www()
    const status = handler.serve(tx)
    await until(() => upstream.asked.length === 1, name)
    if (waits === true) await timers.advance(2000)
    t.equal(await status, Rcode.SERVFAIL, name)
    t.match(tx.response.error, want, name)
    upstream.answer = plainly
    t.strictSame((await show(handler, www())).answer, [ADDRESS], name)
  }
})

t.test('a reply in single octets, in time, is accepted', async (t) => {
  const { handler } = await overTcp(t, async ({ query, socket }) => {
    socket!.setNoDelay(true)
    for (const octet of framed(replyTo(query))) {
      await new Promise((resolve) => socket!.write(Buffer.from([octet]), resolve))
    }
  })
  t.strictSame((await show(handler, www())).answer, [ADDRESS])
})

const HOST = 'dns.example.net'

/** An upstream that speaks DNS over TLS with a certificate for `HOST`. */
async function tlsUpstream(t: Test, requestCert = false) {
  const { key, cert } = selfSigned(HOST)
  const upstream = await ScriptedServer.openRaw(t, plainly)
  const secure = createServer({ key, cert, ca: cert, requestCert }, (socket) => {
    upstream.serve(socket)
  })
  secure.on('tlsClientError', () => {})
  secure.listen(0, '127.0.0.1')
  await once(secure, 'listening')
  t.teardown(() => secure.close())
  const { port } = secure.address() as AddressInfo
  const directory = t.testdir({ 'ca.pem': cert, 'cert.pem': cert, 'key.pem': key })
  return { upstream, port, file: (name: string) => join(directory, name) }
}

t.test('DNS over TLS', async (t) => {
  const { upstream, port, file } = await tlsUpstream(t)
  const ca = `tls ${file('ca.pem')}`
  const table = [
    { to: `127.0.0.1:${port}`, properties: `${ca}\ntls_servername ${HOST}`, want: '' },
    { to: `127.0.0.1%${HOST}:${port}`, properties: ca, want: '' },
    { to: `127.0.0.1:${port}`, properties: ca, want: /does not match certificate|IP/ },
    { to: `127.0.0.1%other.example:${port}`, properties: ca, want: /does not match|altnames/ },
    { to: `127.0.0.1:${port}`, properties: `tls_servername ${HOST}`, want: /self-signed/ },
  ]
  for (const { to, properties, want } of table) {
    upstream.asked.length = 0
    const { handler } = await started(t, `tls://${to}`, properties)
    const tx = transaction({ name: 'www.example.org.' })
    await handler.serve(tx)
    t.match(tx.response.error, want, `${to} ${properties}`)
    t.equal(upstream.asked.length, want === '' ? 1 : 0, 'no query reaches another server')
    if (want !== '') continue
    await Promise.all([1, 2].map((i) => handler.serve(numbered(undefined, i))))
    t.equal(upstream.asked.length, 3)
  }
})

t.test('DNS over TLS with a certificate of the client', async (t) => {
  const { port, file } = await tlsUpstream(t, true)
  const tls = `tls ${file('cert.pem')} ${file('key.pem')} ${file('ca.pem')}`
  const { c, handler } = await started(
    t,
    `tls://127.0.0.1:${port}`,
    `${tls}\ntls_servername ${HOST}`,
  )
  t.strictSame((await show(handler, www())).answer, [ADDRESS])
  const to = `proxy_name="forward",to="127.0.0.1:${port}"`
  const text = await c.metrics.print()
  t.match(text, `coredns_proxy_conn_cache_misses_total{${to},proto="tcp-tls"} 1`)
  t.notMatch(text, 'proto="udp"')
})
