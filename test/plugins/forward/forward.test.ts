import { createSocket } from 'node:dgram'
import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { Message } from '../../../src/dns/message/message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import {
  type Answer,
  addressRecord,
  replyTo,
  ScriptedServer,
} from '../../support/scripted-server.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ADDRESS, forwarding, started, WWW } from './stage.ts'

const plainly: Answer = ({ query, send }) => send(replyTo(query))

t.test('a query is passed on in substance, and so is its reply', async (t) => {
  const { handler, first } = await forwarding(t, [
    ({ query, send }) => {
      const flags = HeaderFlag.QR | HeaderFlag.RD | HeaderFlag.RA | HeaderFlag.AA | HeaderFlag.AD
      const soa = { ...addressRecord(query, '192.0.2.9'), owner: scanName('example.org.')! }
      send(replyTo(query, { flags, authority: [soa], additional: [soa] }))
    },
  ])
  const tx = transaction({ ...WWW, name: 'WWW.example.org.', dnssecOk: true, payloadOctets: 4096 })
  tx.query.flags |= HeaderFlag.CD | HeaderFlag.AD
  tx.query.nsidRequested = true
  tx.query.hasEcs = true
  tx.query.ecsFamily = 1
  tx.query.ecsSourceBits = 20
  tx.query.ecsAddress.set([198, 51, 96])
  const shown = await show(handler, tx)
  t.match(shown, { status: 'NOERROR', flags: 'aa ad rd ra', answer: [ADDRESS] })
  t.equal(shown.authority.length + shown.additional.length, 2)
  t.equal(tx.response.authenticData, true)
  t.equal(tx.response.answeredBy, 'forward')
  t.equal(tx.response.ownerBytes[0], tx.query.qname)
  const { query, octets } = first.asked[0]!
  t.equal(query.flags, HeaderFlag.RD | HeaderFlag.CD | HeaderFlag.AD)
  t.equal(printName(query.question!.name), 'www.example.org.')
  t.same(query.edns, {
    payloadOctets: 1232,
    version: 0,
    flags: 0x8000,
    options: [{ code: 8, data: Buffer.from([0, 1, 20, 0, 198, 51, 96]) }],
  })
  t.equal(octets.length, 12 + 21 + 11 + 4 + 7)
})

t.test('the scope of the client subnet is passed on; another subnet is not', async (t) => {
  const ecs = (data: readonly number[]): Answer => {
    return ({ query, send }) => {
      const options = [
        { code: 8, data: new Uint8Array(data) },
        { code: 15, data: new Uint8Array([0, 3, 0x6f, 0x6b]) },
      ]
      const edns = { payloadOctets: 1232, version: 0, flags: 0, options }
      send(replyTo(query, { edns }))
    }
  }
  const good = ecs([0, 1, 24, 17, 198, 51, 100])
  const other = ecs([0, 1, 24, 17, 198, 51, 101])
  const { handler, first } = await forwarding(t, [good], 'max_connect_attempts 1')
  const asked = () => {
    const tx = transaction({ ...WWW, payloadOctets: 1232 })
    tx.query.hasEcs = true
    tx.query.ecsFamily = 1
    tx.query.ecsSourceBits = 24
    tx.query.ecsAddress.set([198, 51, 100])
    return tx
  }
  const tx = asked()
  t.equal(await handler.serve(tx), Rcode.NOERROR)
  t.equal(tx.response.scopeBits, 17)
  t.equal(tx.response.edeCode, 3)
  t.equal(Buffer.from(tx.response.edeText).toString(), 'ok')
  first.answer = ecs([0, 1, 24, 200, 198, 51, 100])
  const excessive = asked()
  t.equal(await handler.serve(excessive), Rcode.NOERROR)
  t.equal(excessive.response.scopeBits, 32, 'no more than an address has')
  first.answer = other
  const refused = asked()
  t.equal(await handler.serve(refused), Rcode.SERVFAIL)
  t.match(refused.response.error, /the client subnet of the reply is not that of the query/)
})

t.test('rcodes are passed on with their records and flags', async (t) => {
  for (const rcode of [Rcode.NXDOMAIN, Rcode.SERVFAIL, Rcode.REFUSED, Rcode.YXDOMAIN]) {
    const { handler } = await forwarding(t, [
      ({ query, send }) => send(replyTo(query, { rcode, answer: [] })),
    ])
    const tx = transaction(WWW)
    await handler.serve(tx)
    t.equal(tx.response.rcode, rcode)
    t.equal(tx.response.recursionAvailable, true)
  }
})

t.test('rate limits see the zone that denies a name', async (t) => {
  const { handler } = await forwarding(t, [
    ({ query, send }) => {
      const owner = scanName('example.org.')!
      const soa = { ...addressRecord(query, '0.0.0.0'), owner, type: RRType.SOA }
      const rdata = new Uint8Array([0, 0, ...new Uint8Array(20)])
      send(replyTo(query, { rcode: Rcode.NXDOMAIN, answer: [], authority: [{ ...soa, rdata }] }))
    },
  ])
  const tx = transaction({ name: 'a.b.example.org.' })
  t.equal(await handler.serve(tx), Rcode.NXDOMAIN)
  t.equal(tx.response.imputedLabel, 2)
})

t.test('FROM and except choose the queries', async (t) => {
  const { handler } = await (async () => {
    const upstream = await ScriptedServer.openRaw(t, plainly)
    const block = `{\nexcept example.net sub.example.org\nexcept x.example.org\n}`
    const corefile = `forward example.org ${upstream.address} ${block}`
    return started(t, corefile)
  })()
  const table = [
    { name: 'example.org.', want: 'NOERROR' },
    { name: 'www.example.org.', want: 'NOERROR' },
    { name: 'a.sub.example.org.', want: 'REFUSED' },
    { name: 'x.example.org.', want: 'REFUSED' },
    { name: 'example.net.', want: 'REFUSED' },
    { name: 'org.', want: 'REFUSED' },
  ]
  for (const { name, want } of table) {
    const { status } = await show(handler, transaction({ name }))
    t.equal(status.split(' ')[0], want, name)
  }
})

t.test('zone transfers are refused', async (t) => {
  const { handler, first } = await forwarding(t, [plainly])
  const tx = transaction({ ...WWW, type: RRType.AXFR, tcp: true })
  t.equal(await handler.serve(tx), Rcode.REFUSED)
  t.equal(tx.response.error, 'zone transfers are not forwarded')
  t.strictSame(first.asked, [])
})

t.test('the protocol follows the query and the options', async (t) => {
  const table = [
    { tcp: false, properties: '', want: false },
    { tcp: true, properties: '', want: true },
    { tcp: true, properties: 'prefer_udp', want: false },
    { tcp: false, properties: 'force_tcp', want: true },
    { tcp: true, properties: 'force_tcp\nprefer_udp', want: true },
  ]
  for (const { tcp, properties, want } of table) {
    const { handler, first } = await forwarding(t, [plainly], properties)
    t.strictSame((await show(handler, transaction({ ...WWW, tcp }))).answer, [ADDRESS])
    t.equal(first.asked[0]?.isTcp, want, `${tcp} ${properties}`)
  }
})

t.test('a truncated or too long reply over UDP is requested again over TCP', async (t) => {
  const truncated = (query: Message) => {
    return replyTo(query, { flags: HeaderFlag.QR | HeaderFlag.TC, answer: [] })
  }
  const long = (query: Message) => {
    const record = addressRecord(query, '192.0.2.1')
    return replyTo(query, { answer: Array.from({ length: 100 }, () => record) })
  }
  for (const overUdp of [truncated, long]) {
    const { handler, first } = await forwarding(t, [
      ({ query, isTcp, send }) => send(isTcp ? replyTo(query) : overUdp(query)),
    ])
    const tx = transaction(WWW)
    t.strictSame((await show(handler, tx)).answer, [ADDRESS])
    t.equal(tx.response.truncated, false)
    t.strictSame(
      first.asked.map(({ isTcp }) => isTcp),
      [false, true],
    )
  }
})

t.test('a server that rejects EDNS is asked without it', async (t) => {
  const { handler, first } = await forwarding(t, [
    ({ query, send }) => {
      const isOld = query.edns !== undefined
      send(replyTo(query, isOld ? { rcode: Rcode.FORMERR, answer: [] } : {}))
    },
  ])
  t.strictSame((await show(handler, transaction(WWW))).answer, [ADDRESS])
  t.equal(first.asked.length, 2)
})

t.test('packets that are not the reply are ignored', async (t) => {
  const wrong: readonly ((query: Message) => Uint8Array)[] = [
    (query) => replyTo({ ...query, id: query.id ^ 1 }),
    (query) => replyTo(query, { question: { ...query.question!, type: RRType.AAAA } }),
    (query) => replyTo(query, { question: { ...query.question!, rrclass: RRClass.CH } }),
    (query) => replyTo(query, { question: { ...query.question!, name: scanName('a.b.')! } }),
    (query) => replyTo(query, { question: undefined }),
    (query) => replyTo(query, { question: undefined, rcode: Rcode.NXDOMAIN, answer: [] }),
    (query) => replyTo(query, { question: undefined, rcode: Rcode.REFUSED }),
    (query) => replyTo(query, { flags: 0 }),
    (query) => replyTo(query, { opcode: 4 }),
    () => new Uint8Array(5),
    () => new Uint8Array(0),
  ]
  const { handler, timers, first } = await forwarding(
    t,
    [
      ({ query, send }) => {
        send(wrong[first.asked.length - 1]!(query))
        send(replyTo(query))
      },
    ],
    'max_fails 0',
  )
  for (const [i] of wrong.entries()) {
    const shown = await show(handler, transaction({ name: `w${i}.example.org.` }))
    t.strictSame(shown.answer, [`w${i}.example.org. 60 IN A c0000201`])
  }
  t.equal(first.asked.filter(({ isTcp }) => isTcp).length, 0)
  first.asked.length = 0
  first.answer = ({ query, send }) => send(wrong[0]!(query))
  const tx = transaction(WWW)
  const status = handler.serve(tx)
  for (const attempts of [1, 2]) {
    await until(() => first.asked.length === attempts, 'an attempt')
    await timers.advance(2000)
  }
  t.equal(await status, Rcode.SERVFAIL)
  t.match(tx.response.error, /^127\.0\.0\.1:\d+: timed out/)
})

t.test('while ids are guessed, the reply comes over TCP', async (t) => {
  const { handler, first } = await forwarding(t, [
    ({ query, isTcp, send }) => {
      if (isTcp) return send(replyTo(query))
      const forged = { answer: [addressRecord(query, '203.0.113.66')] }
      for (let i = 1; i <= 200; i++) send(replyTo({ ...query, id: query.id ^ i }, forged))
    },
  ])
  t.strictSame((await show(handler, transaction(WWW))).answer, [ADDRESS])
  t.strictSame(
    first.asked.map(({ isTcp }) => isTcp),
    [false, true],
  )
})

t.test('a packet from another port does not arrive', async (t) => {
  const forger = createSocket('udp4')
  t.teardown(() => forger.close())
  const { handler } = await forwarding(t, [
    ({ query, from, send }) => {
      const forged = replyTo(query, { answer: [addressRecord(query, '203.0.113.66')] })
      forger.send(forged, from, '127.0.0.1', () => send(replyTo(query)))
    },
  ])
  t.strictSame((await show(handler, transaction(WWW))).answer, [ADDRESS])
})

t.test('malformed and oversized replies: SERVFAIL with a reason', async (t) => {
  const many = (query: Message) => {
    const root = { ...addressRecord(query, '1.1.1.1'), owner: new Uint8Array(1) }
    const records = Array.from({ length: 4000 }, () => ({
      ...root,
      rdata: new Uint8Array(0),
      type: 9999,
    }))
    return replyTo(query, {
      answer: records,
      authority: records.slice(0, 1900),
      additional: records.slice(0, 50),
    })
  }
  const table: readonly { make: (query: Message) => Uint8Array; want: RegExp }[] = [
    { make: (query) => replyTo(query).subarray(0, -3), want: /the reply is malformed/ },
    { make: (query) => Buffer.concat([replyTo(query), Buffer.from('x')]), want: /malformed/ },
    {
      make: (query) => {
        const octets = replyTo(query)
        // The owner of the record becomes a pointer to itself.
        octets[octets.length - 15] = octets.length - 16
        return octets
      },
      want: /malformed/,
    },
    {
      make: (query) => replyTo(query, { rcode: Rcode.BADVERS, edns: query.edns }),
      want: /BADVERS/,
    },
    { make: many, want: /./ },
  ]
  for (const { make, want } of table) {
    const { handler } = await forwarding(
      t,
      [({ query, send }) => send(make(query))],
      'force_tcp\nmax_connect_attempts 1',
    )
    const tx = transaction(WWW)
    const status = await handler.serve(tx)
    if (make === many) {
      t.equal(tx.response.count, 5950)
      continue
    }
    t.equal(status, Rcode.SERVFAIL)
    t.match(tx.response.error, want)
  }
})

t.test('use_caps_for_id: the reply must repeat the case', async (t) => {
  const { handler, timers, first } = await forwarding(
    t,
    [plainly],
    'use_caps_for_id\nmax_connect_attempts 1',
  )
  const name = 'abcdefghijklmnopqrstuvwxyz.abcdefghijklmnopqrstuvwxyz.example.'
  const tx = transaction({ name })
  t.strictSame((await show(handler, tx)).answer, [`${name} 60 IN A c0000201`])
  const [sent] = first.asked
  t.not(printName(sent!.query.question!.name), name)
  t.equal(printName(sent!.query.question!.name).toLowerCase(), name)
  first.answer = ({ query, send }) => {
    const question = { ...query.question!, name: scanName(name)! }
    send(replyTo(query, { question }))
  }
  const status = handler.serve(transaction({ name }))
  await until(() => first.asked.length === 2, 'the query')
  await timers.advance(2000)
  t.equal(await status, Rcode.SERVFAIL)
})

t.test('the next upstream answers if one is silent, dead or broken', async (t) => {
  const broken: readonly Answer[] = [
    () => {},
    ({ query, send }) => send(replyTo(query).subarray(0, -3)),
    // A health check comes without EDNS, for which there is no such rcode.
    ({ query, send }) =>
      send(replyTo(query, query.edns && { rcode: Rcode.BADVERS, edns: query.edns })),
  ]
  for (const answer of broken) {
    const { handler, timers, upstreams } = await forwarding(t, [answer, plainly])
    const shown = show(handler, transaction(WWW))
    await until(() => upstreams[0]!.asked.length > 0, 'the first attempt')
    await timers.advance(2000)
    t.strictSame((await shown).answer, [ADDRESS])
  }
  const { handler, upstreams } = await forwarding(t, [plainly, plainly])
  await upstreams[0]!.stop()
  t.strictSame((await show(handler, transaction(WWW))).answer, [ADDRESS])
})

t.test('no upstream is left: SERVFAIL with the last reason', async (t) => {
  const { handler, first } = await forwarding(t, [plainly])
  await first.stop()
  const tx = transaction(WWW)
  t.equal(await handler.serve(tx), Rcode.SERVFAIL)
  t.equal(tx.response.error, `${first.address}: connection refused`)
})

t.test('a query ends after 5 s', async (t) => {
  const { c, handler, timers, first } = await forwarding(
    t,
    [() => {}],
    'max_connect_attempts 9\nmax_fails 0',
  )
  const status = handler.serve(transaction(WWW))
  for (const wait of [2000, 2000, 1000]) {
    const before = first.asked.length
    await until(() => first.asked.length > before || before > 0, 'an attempt')
    c.clock.pass(wait)
    await timers.advance(wait)
    if (wait !== 1000) await until(() => first.asked.length > before, 'the next attempt')
  }
  t.equal(await status, Rcode.SERVFAIL)
  t.equal(first.asked.length, 3)
})

t.test('failover: the next upstream is asked for these rcodes', async (t) => {
  const failing: Answer = ({ query, send }) => {
    send(replyTo(query, { rcode: Rcode.SERVFAIL, answer: [] }))
  }
  const one = await forwarding(t, [failing, plainly], 'failover SERVFAIL REFUSED')
  t.strictSame((await show(one.handler, transaction(WWW))).answer, [ADDRESS])
  const all = await forwarding(t, [failing, failing], 'failover SERVFAIL REFUSED')
  const tx = transaction(WWW)
  t.equal(await all.handler.serve(tx), Rcode.NOERROR)
  t.equal(tx.response.rcode, Rcode.SERVFAIL)
  t.strictSame(
    all.upstreams.map((upstream) => upstream.asked.length),
    [1, 1],
  )
})

t.test('next and next_on_nodata: the next forward answers', async (t) => {
  const empty = (rcode: number): Answer => {
    return ({ query, send }) => send(replyTo(query, { rcode, answer: [] }))
  }
  const table = [
    { rcode: Rcode.NXDOMAIN, property: 'next NXDOMAIN', want: 'NOERROR' },
    { rcode: Rcode.NXDOMAIN, property: 'next SERVFAIL', want: 'NXDOMAIN' },
    { rcode: Rcode.NOERROR, property: 'next_on_nodata', want: 'NOERROR' },
  ]
  for (const { rcode, property, want } of table) {
    const first = await ScriptedServer.openRaw(t, empty(rcode))
    const second = await ScriptedServer.openRaw(t, plainly)
    const { handler } = await started(
      t,
      `forward . ${first.address} {\n${property}\n}\nforward . ${second.address}\n`,
    )
    const shown = await show(handler, transaction(WWW))
    t.equal(shown.status, want, property)
    t.equal(second.asked.length, want === 'NOERROR' ? 1 : 0)
  }
  const { handler } = await forwarding(t, [empty(Rcode.NXDOMAIN)], 'next NXDOMAIN')
  t.equal((await show(handler, transaction(WWW))).status, 'NXDOMAIN', 'no forward follows')
})

t.test('max_concurrent: REFUSED', async (t) => {
  const { c, handler, first } = await forwarding(t, [() => {}], 'max_concurrent 2')
  const other = { ...WWW, name: 'w.example.org.' }
  const waiting = [handler.serve(transaction(WWW)), handler.serve(transaction(other))]
  const tx = transaction(WWW)
  t.equal(handler.serve(tx), Rcode.REFUSED)
  t.equal(tx.response.error, 'concurrent queries exceeded maximum 2')
  await until(() => first.asked.length === 2, 'the queries')
  for (const { query, send } of first.asked) send(replyTo(query))
  t.strictSame(await Promise.all(waiting), [0, 0])
  first.answer = plainly
  t.equal(await handler.serve(transaction(WWW)), 0)
  t.equal(await c.metric('coredns_forward_max_concurrent_rejects_total'), 1)
})

t.test('ids and ports are random, and a port is used for few queries', async (t) => {
  const { handler, first } = await forwarding(t, [plainly])
  for (let i = 0; i < 600; i++) await handler.serve(transaction(WWW))
  const ids = new Set(first.asked.map(({ query }) => query.id))
  t.ok(ids.size > 580)
  const uses = new Map<number, number>()
  for (const { from } of first.asked) uses.set(from, (uses.get(from) ?? 0) + 1)
  t.ok(uses.size >= 16, `${uses.size} ports`)
  t.ok(Math.max(...uses.values()) <= 64)
})

t.test('forward/upstream is the upstream of this query', async (t) => {
  const { c, handler, first } = await forwarding(t, [plainly])
  const { metadata } = c.block
  c.block.metadata.isEnabled = true
  c.block.metadata.read.add('forward/upstream')
  const tx = transaction({ ...WWW, startedMs: 5 })
  t.equal(metadata.find('forward/upstream')!(tx), '')
  await handler.serve(tx)
  t.equal(metadata.find('forward/upstream')!(tx), first.address)
  tx.startedMs = 6
  t.equal(metadata.find('forward/upstream')!(tx), '', 'the transaction is used again')
})

t.test('metrics', async (t) => {
  const { c, handler, first } = await forwarding(t, [plainly])
  for (let i = 0; i < 20; i++) await handler.serve(transaction(WWW))
  await handler.serve(transaction({ ...WWW, tcp: true }))
  await handler.serve(transaction({ ...WWW, tcp: true }))
  const text = await c.metrics.print()
  const to = `proxy_name="forward",to="${first.address}"`
  t.match(text, `coredns_proxy_request_duration_seconds_count{${to},rcode="NOERROR"} 22`)
  t.match(text, `coredns_proxy_conn_cache_misses_total{${to},proto="udp"} 16`)
  t.match(text, `coredns_proxy_conn_cache_hits_total{${to},proto="udp"} 4`)
  t.match(text, `coredns_proxy_conn_cache_misses_total{${to},proto="tcp"} 1`)
  t.match(text, `coredns_proxy_conn_cache_hits_total{${to},proto="tcp"} 1`)
  t.match(text, `coredns_proxy_healthcheck_failures_total{${to}} 0`)
})

t.test('metrics of an upstream that is named twice', async (t) => {
  const { address } = await ScriptedServer.openRaw(t, plainly)
  const { c, handler } = await started(t, `forward . ${address} ${address} {\npolicy sequential\n}`)
  for (let i = 0; i < 20; i++) await handler.serve(transaction(WWW))
  const line = `misses_total{proxy_name="forward",to="${address}",proto="udp"} 16`
  for (let scrape = 0; scrape < 2; scrape++) t.match(await c.metrics.print(), line)
})
