import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { NAT64_PREFIX } from '../../../src/plugin/translation-prefix.ts'
import { dns64 } from '../../../src/plugins/dns64/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'
import { type Below, chainOf, printReply } from '../translated-replies.ts'

const ADDRESSES = ['192.0.2.42 60', '192.0.2.43 5000']

// The cases of CoreDNS's own tests (plugin/dns64/dns64_test.go).
const TABLE: readonly {
  name: string
  aaaa: Below
  a?: Below
  options?: string
  want: readonly string[]
  status?: string
  flags?: string
}[] = [
  {
    name: 'standard flow: the TTL of the SOA is the limit',
    aaaa: { soa: 70 },
    a: { addresses: ADDRESSES },
    want: ['64:ff9b::c000:22a 60', '64:ff9b::c000:22b 70'],
  },
  { name: 'neither A nor AAAA', aaaa: { soa: 3600 }, a: { soa: 3600 }, want: ['SOA 3600'] },
  {
    name: 'an error in the reply, without a SOA',
    aaaa: { status: 0, rcode: Rcode.REFUSED },
    a: { addresses: ADDRESSES },
    want: ['64:ff9b::c000:22a 60', '64:ff9b::c000:22b 600'],
  },
  {
    name: 'NXDOMAIN',
    aaaa: { rcode: Rcode.NXDOMAIN, soa: 3600 },
    want: ['SOA 3600'],
    status: 'NXDOMAIN',
  },
  {
    name: 'AAAA records exist',
    aaaa: { addresses: ['::1 60', '::2 5000'] },
    want: ['::1 60', '::2 5000'],
  },
  {
    name: 'translate_all',
    aaaa: { addresses: ['::1 60'] },
    a: { addresses: ADDRESSES },
    options: '{\n translate_all\n}',
    want: ['64:ff9b::c000:22a 60', '64:ff9b::c000:22b 600'],
  },
  {
    name: 'a truncated reply for A',
    aaaa: { soa: 70 },
    a: { addresses: ADDRESSES, truncated: true },
    want: ['64:ff9b::c000:22a 60', '64:ff9b::c000:22b 70'],
    flags: 'tc',
  },
  { name: 'no reply was written', aaaa: { status: Rcode.REFUSED }, want: [], status: 'REFUSED' },
  {
    name: 'an error for A is returned',
    aaaa: {},
    a: { status: 0, rcode: Rcode.SERVFAIL, soa: 60 },
    want: ['SOA 60'],
    status: 'NOERROR (sent: SERVFAIL)',
  },
  {
    name: 'no reply for A was written',
    aaaa: {},
    a: { status: Rcode.SERVFAIL },
    want: [],
    status: 'SERVFAIL (sent: NOERROR)',
  },
]

for (const late of [false, true]) {
  t.test(`replies, ${late ? 'late' : 'at once'}`, async (t) => {
    for (const { name, aaaa, a, options = '', want, status = 'NOERROR', flags = '' } of TABLE) {
      const handler = new SetUp(dns64, `dns64 ${options}`).handler(
        chainOf(RRType.AAAA, aaaa, a, late),
      )
      const tx = transaction({ name: 'example.com.', type: RRType.AAAA, from: '::1' })
      const shown = await show(handler, tx)
      t.strictSame(printReply(tx), want, name)
      t.match(shown.status, status.split(' ')[0], name)
      if (status.includes('sent: SERVFAIL')) t.equal(shown.status, status, name)
      t.equal(shown.flags, flags, name)
      t.equal(tx.query.qtype, RRType.AAAA, `${name}: the query is restored`)
    }
  })
}

t.test('queries that are not translated', async (t) => {
  const table = [
    { type: RRType.AAAA, from: '::1', want: 1 },
    { type: RRType.AAAA, from: '127.0.0.1', options: '{\n allow_ipv4\n}', want: 1 },
    { type: RRType.AAAA, from: '127.0.0.1', want: 0 },
    { type: RRType.A, from: '::1', want: 0 },
    { type: RRType.AAAA, from: '::1', class: RRClass.CH, want: 0 },
    { type: RRType.AAAA, from: '::1', dnssecOk: true, want: 1 },
    { type: RRType.AAAA, from: '::1', dnssecOk: true, checkingDisabled: true, want: 0 },
  ]
  for (const { options = '', want, checkingDisabled, ...question } of table) {
    const setUp = new SetUp(dns64, `dns64 ${options}`)
    const handler = setUp.handler(chainOf(RRType.AAAA, {}, { addresses: ['192.0.2.1 60'] }))
    const tx = transaction({ name: 'example.com.', ...question })
    if (checkingDisabled === true) tx.query.flags |= 0x0010
    await setUp.start()
    await handler.serve(tx)
    const made = printReply(tx).filter((line) => line === '64:ff9b::c000:201 60').length
    t.equal(made, want, JSON.stringify(question))
    const series = 'coredns_dns64_requests_translated_total{server="dns://:53"}'
    t.equal((await setUp.metric(series)) ?? 0, want)
    await setUp.stop()
  }
})

t.test('signatures of A records are omitted, other records are kept', async (t) => {
  const below = answering(({ query, response }) => {
    if (query.qtype === RRType.AAAA) return 0
    response.authenticData = true
    const cname = scanName('www.example.com.')!
    const add = (owner: Uint8Array, type: number, rdata: Uint8Array): void =>
      response.add(Section.Answer, owner, 0, type, RRClass.IN, 60, rdata, 0, rdata.length)
    add(query.qname, RRType.CNAME, cname)
    add(query.qname, RRType.RRSIG, Uint8Array.of(0, RRType.CNAME, 0))
    add(cname, RRType.RRSIG, Uint8Array.of(0, RRType.A, 0))
    add(cname, RRType.A, Uint8Array.of(192, 0, 2, 1))
    return 0
  })
  const tx = transaction({ name: 'example.com.', type: RRType.AAAA, from: '::1', dnssecOk: true })
  const { answer } = await show(new SetUp(dns64, 'dns64').handler(below), tx)
  t.strictSame(answer, [
    'example.com. 60 IN CNAME 03777777076578616d706c6503636f6d00',
    'example.com. 60 IN RRSIG 000500',
    'www.example.com. 60 IN AAAA 0064ff9b0000000000000000c0000201',
  ])
  t.equal(tx.response.authenticData, false)
})

t.test('a failure below restores the query', async (t) => {
  const below = answering(({ query }) => {
    if (query.qtype === RRType.A) throw new Error('broken')
    return 0
  }, true)
  const tx = transaction({ name: 'example.com.', type: RRType.AAAA, from: '::1' })
  await t.rejects(Promise.resolve(new SetUp(dns64, 'dns64').handler(below).serve(tx)), 'broken')
  t.equal(tx.query.qtype, RRType.AAAA)
  t.equal(tx.nat64Prefix, undefined)
})

t.test('arguments', async (t) => {
  // CoreDNS's cases, and the faults that it does not report.
  const table = [
    { given: 'dns64', want: '' },
    { given: 'dns64 64:dead::/96', want: '' },
    { given: 'dns64 {\n translate_all\n}', want: '' },
    { given: 'dns64 {\n prefix 64:ff9b::/96\n}', want: '' },
    { given: 'dns64 {\n prefix 64:ff9b::/32\n}', want: '' },
    { given: 'dns64 {\n prefix 64:ff9b::/52\n}', want: 'Corefile:2 .* invalid prefix length' },
    { given: 'dns64 {\n prefix 64:ff9b::/104\n}', want: 'Corefile:2 .* invalid prefix length' },
    { given: 'dns64 {\n prefix 8.8.8.8/24\n}', want: 'Corefile:2 .* not an IPv6 network' },
    { given: 'dns64 {\n prefix 2002:ac12:b083::/96\n}', want: '' },
    { given: 'dns64 {\n prefix 2002:c0a8:a88a::/48\n}', want: '' },
    { given: 'dns64 foobar', want: 'Corefile:1 .* invalid CIDR address: foobar' },
    { given: 'dns64 {\n foobar\n}', want: "Corefile:2 .* unknown property 'foobar'" },
    { given: 'dns64 {\n allow_ipv4\n}', want: '' },
    { given: 'dns64 {\n prefix\n}', want: 'Corefile:2 .* Wrong argument count' },
    { given: 'dns64 {\n allow_ipv4 yes\n}', want: 'Corefile:2 .* Wrong argument count' },
    { given: 'dns64 64::/96 65::/96', want: 'Corefile:1 .* Wrong argument count' },
  ]
  for (const { given, want } of table) {
    const error = setupError(dns64, given)
    if (want === '') t.equal(error, '', given)
    else t.match(error, new RegExp(want), given)
  }
})

t.test('the other directives of the block know the prefix', async (t) => {
  t.equal(new SetUp(dns64, 'dns64').block.shared.find(NAT64_PREFIX)?.bits, 96)
  const { shared } = new SetUp(dns64, 'dns64 2001:db8::/32').block
  t.strictSame(shared.find(NAT64_PREFIX), scanCidr('2001:db8::/32'))
})
