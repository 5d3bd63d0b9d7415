import t from 'tap'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { DROP } from '../../../src/plugin/handler.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { ZONE_SIGNING } from '../../../src/signing/registry.ts'
import { followerOf, SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { answering, type Question } from '../../support/transaction.ts'
import { wire } from '../../support/zone-names.ts'
import { SOA, source } from './source.ts'
import { ask, FLAGS_ZSK, printSigned, start, writeKey } from './stage.ts'

t.test('queries that get no signatures', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const c = await start(t, [key])
  const below = source({ answer: ['www.example.org. 60 IN A 192.0.2.1'] })
  const plain = ['answer www.example.org. A 60 192.0.2.1 unsigned']
  const { response } = ask(c.handler(below), { name: 'www.example.org.', dnssecOk: false })
  t.strictSame(printSigned(response, [key.key]), plain, 'no DO')
  for (const status of [DROP, Rcode.SERVFAIL, Rcode.REFUSED]) {
    const failing = answering((tx) => {
      tx.response.rcode = Rcode.NOERROR
      return status
    })
    const reply = ask(c.handler(failing), { name: 'www.example.org.' })
    t.equal(reply.status, status)
    t.equal(reply.response.count, 0, `status ${status}`)
  }
  const broken = source({
    answer: ['www.example.org. 60 IN CNAME a.example.org.'],
    rcode: Rcode.SERVFAIL,
  })
  t.equal(ask(c.handler(broken), { name: 'www.example.org.' }).response.count, 1, 'a broken chain')
})

t.test('the keys of a zone', async (t) => {
  const directory = temporaryDirectory(t)
  const csk = await writeKey(directory, 'example.org.')
  const zsk = await writeKey(directory, 'example.org.', { flags: FLAGS_ZSK })
  const name = 'example.org.'
  const c = await start(t, [csk])
  const handler = c.handler(source({ authority: [SOA] }))
  for (const dnssecOk of [false, true]) {
    const { response, tx } = ask(handler, { name, type: RRType.DNSKEY, dnssecOk })
    const state = dnssecOk ? '' : ' unsigned'
    t.strictSame(printSigned(response, [csk.key]), [`answer example.org. DNSKEY 3600${state}`])
    t.equal(tx.response.authoritative, true)
    t.equal(tx.response.answeredBy, 'dnssec')
  }
  const elsewhere = ask(handler, { name: 'a.example.org.', type: RRType.DNSKEY })
  t.match(printSigned(elsewhere.response, [csk.key]), ['authority example.org. SOA 300', /NSEC/])

  const split = await start(t, [csk, zsk])
  const below = source({ answer: ['www.example.org. 60 IN A 192.0.2.1'] })
  const answer = ask(split.handler(below), { name: 'www.example.org.' }).response
  t.strictSame(printSigned(answer, [zsk.key]), ['answer www.example.org. A 60 192.0.2.1'])
  t.equal(answer.count, 2, 'the ZSK alone signs it')
  const keys = ask(split.handler(), { name, type: RRType.DNSKEY }).response
  t.strictSame(printSigned(keys, [csk.key]), ['answer example.org. DNSKEY 3600'])
  t.equal(keys.count, 3, 'two keys, which the KSK alone signs')

  const meta = ask(handler, { name: 'www.example.org.', type: RRType.NXNAME })
  t.equal(meta.status, Rcode.FORMERR)
  t.equal(meta.response.edeCode, 30)
})

t.test('signatures are cached by content, and made again before they expire', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const c = await start(t, [key], 'cache_capacity 16')
  let addresses = ['192.0.2.1', '192.0.2.2']
  const below = answering((tx) => {
    const answer = addresses.map((address) => `www.example.org. 60 IN A ${address}`)
    return source({ answer }).serve(tx) as number
  })
  const handler = c.handler(below)
  const signature = (): string => {
    const { response } = ask(handler, { name: 'www.example.org.' })
    t.notMatch(printSigned(response, [key.key]).join(), /bogus|unsigned/)
    return Buffer.from(response.rdataBytes[response.count - 1]!).toString('hex')
  }
  const first = signature()
  t.equal(signature(), first)
  addresses = addresses.toReversed()
  t.equal(signature(), first, 'the order does not count')
  addresses = ['192.0.2.1', '192.0.2.1', '192.0.2.2']
  t.not(signature(), first, 'a record that occurs twice is another set')
  addresses = ['192.0.2.3']
  t.not(signature(), first)
  addresses = ['192.0.2.1', '192.0.2.2']
  t.equal(signature(), first, 'an earlier set')
  c.clock.pass(8 * 86_400_000)
  t.equal(signature(), first, 'five days are left')
  c.clock.pass(2 * 86_400_000)
  t.not(signature(), first, 'less than five days are left')
  const server = '{server="dns://:53"}'
  t.equal(await c.metric('coredns_dnssec_cache_entries{server="dns://:53",type="signature"}'), 3)
  t.equal(await c.metric(`coredns_dnssec_cache_hits_total${server}`), 4)
  t.equal(await c.metric(`coredns_dnssec_cache_misses_total${server}`), 4)
  t.equal(await c.metric(`sextant_dnssec_signatures_total${server}`), 4)
})

t.test('a wrong clock: no new signatures, but those that exist', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const day = 86_400_000
  for (const [text, jumpMs] of [
    ['forward', 60 * day],
    ['back', -2 * day],
    ['the time of a computer without a battery', -1_700_000_000_000],
  ] as const) {
    const c = await start(t, [key])
    const handler = c.handler(source({ answer: ['www.example.org. 60 IN A 192.0.2.1'] }))
    const other = c.handler(source({ answer: ['new.example.org. 60 IN A 192.0.2.2'] }))
    const before = printSigned(ask(handler, { name: 'www.example.org.' }).response, [key.key])
    c.clock.nowMs += jumpMs
    const { response } = ask(handler, { name: 'www.example.org.' })
    t.strictSame(printSigned(response, [key.key]), before, `${text}: cached`)
    for (const question of [
      { name: 'new.example.org.' },
      { name: 'example.org.', type: RRType.DNSKEY },
    ]) {
      const { status, response } = ask(other, question)
      t.equal(status, Rcode.SERVFAIL, text)
      t.match(Buffer.from(response.edeText).toString(), 'the clock of the server is wrong')
      t.match(response.error, /the system's time/)
    }
    t.match(c.problemText(), /no new signatures on demand/, text)
    c.clock.nowMs -= jumpMs
    t.equal(ask(other, { name: 'new.example.org.' }).status, Rcode.NOERROR, `${text}: it is right`)
    t.equal(c.problemText(), '', text)
    const events = c.lines.filter((line) => line.includes('signatures'))
    t.match(events, [/no new signatures on demand: the system's time/, /are made on demand again/])
  }
})

t.test('the TTL of a set of another server falls without new signatures', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const c = await start(t, [key])
  for (let ttl = 100; ttl > 0; ttl--) {
    const answer = [`www.example.org. ${ttl} IN A 192.0.2.1`]
    const { response } = ask(c.handler(source({ answer, foreign: true })), {
      name: 'www.example.org.',
    })
    t.strictSame(printSigned(response, [key.key]), [`answer www.example.org. A ${ttl} 192.0.2.1`])
  }
  t.equal(await c.metric('sextant_dnssec_signatures_total{server="dns://:53"}'), 8)
})

t.test(
  'random names: the number of new signatures is limited, and what is cached stays',
  async (t) => {
    const key = await writeKey(temporaryDirectory(t), 'example.org.')
    const c = await start(t, [key], 'signatures_per_second 50 20\n cache_capacity 64')
    const handler = c.handler(source({ authority: [SOA], rcode: Rcode.NXDOMAIN }))
    const outcomes = (question: Partial<Question>, count: number, prefix: string): string => {
      const counts = new Map<string, number>()
      for (let i = 0; i < count; i++) {
        const name = `${prefix}${i}.example.org.`
        const { status, response } = ask(handler, { name, startedMs: 1000, ...question })
        const isSigned = response.count === 4
        const outcome = isSigned ? 'signed' : response.truncated ? 'truncated' : `rcode ${status}`
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
      }
      return [...counts].map(([outcome, count]) => `${outcome} ${count}`).join(', ')
    }
    // The SOA has one signature, for the first client.
    t.equal(outcomes({}, 100, 'a'), 'signed 19, truncated 81')
    t.equal(outcomes({}, 1, 'a'), 'signed 1', 'from the cache')
    t.equal(outcomes({ from: '127.0.0.200' }, 10, 'b'), 'truncated 10', 'the same network')
    t.equal(outcomes({ from: '192.0.2.1' }, 100, 'c'), 'signed 20, truncated 80')
    t.equal(outcomes({ from: '2001:db8::1' }, 100, 'd'), 'signed 10, truncated 90', 'all together')
    t.equal(outcomes({ tcp: true }, 100, 'e'), 'signed 20, rcode 2 80', 'TCP has its own limit')
    t.equal(outcomes({}, 1, 'a'), 'signed 1', 'from the cache')
    t.equal(
      outcomes({ startedMs: 1500 }, 100, 'f'),
      'signed 10, truncated 90',
      'half a second later',
    )
    t.equal(await c.metric('sextant_dnssec_refused_total{server="dns://:53"}'), 431)
    const series = 'coredns_dnssec_cache_entries{server="dns://:53",type="signature"}'
    const entries = (await c.metric(series)) ?? 0
    t.ok(entries > 32 && entries <= 64, `${entries} entries of 90 signatures`)
  },
)

t.test('zones that a source signs', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const answer = ['www.example.org. 60 IN A 192.0.2.1']
  const authority = [SOA]
  const unsigned = ['answer www.example.org. A 60 192.0.2.1 unsigned']
  for (const { denial, want, proof } of [
    { denial: 'nsec', want: unsigned, proof: ['authority example.org. SOA 300 unsigned'] },
    {
      denial: 'compact',
      want: ['answer www.example.org. A 60 192.0.2.1'],
      proof: [/SOA 300/, /NSEC 60 .* NXNAME/],
    },
  ]) {
    const corefile = `dnssec {\n key file ${key.path}\n denial ${denial}\n}`
    const c = new SetUp(dnssec, corefile)
    const { of } = { of: (zone: string) => c.block.shared.find(ZONE_SIGNING)!.of(wire(zone)) }
    t.equal(of('example.net.'), undefined)
    t.equal(of('sub.example.org.')?.policy.denial, denial)
    of('example.org.')!.claim()
    await c.start()
    t.teardown(() => c.stop())
    const next = source({ answer })
    t.equal(c.handler(next) === next, denial !== 'compact', `${denial}: no link is needed`)
    t.strictSame(
      printSigned(ask(c.handler(next), { name: 'www.example.org.' }).response, [key.key]),
      want,
    )
    const missing = source({ authority, rcode: Rcode.NXDOMAIN })
    const { response } = ask(c.handler(missing), { name: 'nope.example.org.' })
    t.match(printSigned(response, [key.key]), proof)
    t.strictSame(of('example.org.')!.keys.find(wire('example.org.'))!.dnskeys, [key.key.dnskey])
  }
})

t.test('a zone that a source finds while the server runs', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const corefile = `dnssec . {\n key file ${key.path}\n denial compact\n}`
  const c = new SetUp(dnssec, corefile)
  t.teardown(() => c.stop())
  await c.start()
  const handler = c.handler(source({ authority: [SOA], rcode: Rcode.NXDOMAIN }))
  const follower = followerOf(c, dnssec, corefile)
  const followerHandler = follower.handler(source({ authority: [SOA], rcode: Rcode.NXDOMAIN }))
  const question = { name: 'nope.example.org.' }
  t.equal(ask(handler, question).status, Rcode.SERVFAIL, 'the root has no key')
  for (const one of [c, follower]) {
    one.block.shared.find(ZONE_SIGNING)!.of(wire('example.org.'))!.claim()
    one.block.shared.find(ZONE_SIGNING)!.of(wire('example.org.'))!.claim()
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (const one of [handler, followerHandler]) {
    const lines = printSigned(ask(one, question).response, [key.key])
    t.match(lines, [/SOA 300 unsigned/, /NSEC 60 .* NXNAME$/])
  }
})

t.test('data threads get the keys', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const c = await start(t, [key])
  const follower = followerOf(c, dnssec, `dnssec {\n key file ${key.path}\n}`)
  const below = source({ answer: ['www.example.org. 60 IN A 192.0.2.1'] })
  const { response } = ask(follower.handler(below), { name: 'www.example.org.' })
  t.strictSame(printSigned(response, [key.key]), ['answer www.example.org. A 60 192.0.2.1'])
})

t.test('without keys, a query with DO fails', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'example.org.')
  const c = new SetUp(dnssec, `dnssec {\n key file ${key.path}\n}`)
  const below = source({ answer: ['www.example.org. 60 IN A 192.0.2.1'] })
  t.equal(ask(c.handler(below), { name: 'www.example.org.' }).status, Rcode.SERVFAIL)
  t.equal(
    ask(c.handler(below), { name: 'example.org.', type: RRType.DNSKEY }).status,
    Rcode.SERVFAIL,
  )
  t.equal(ask(c.handler(below), { name: 'www.example.org.', dnssecOk: false }).status, 0)
})
