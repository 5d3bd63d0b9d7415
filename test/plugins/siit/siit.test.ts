import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { siit } from '../../../src/plugins/siit/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'
import { type Below, chainOf, printReply } from '../translated-replies.ts'

const NODATA: Below = { soa: 300 }
const TABLE: readonly {
  name: string
  options?: string
  a?: Below
  aaaa?: Below
  want: readonly string[]
  status?: string
  flags?: string
}[] = [
  {
    name: 'addresses of the well-known prefix, others are left out',
    aaaa: { addresses: ['64:ff9b::c000:201 60', '2001:db8::1 60', '64:ff9b::c000:202 5000'] },
    want: ['192.0.2.1 60', '192.0.2.2 300'],
  },
  {
    name: 'without a SOA, 600 s at most',
    a: {},
    aaaa: { addresses: ['64:ff9b::c000:201 5000'] },
    want: ['192.0.2.1 600'],
  },
  {
    name: 'a prefix of 48 bits: bits 64 to 71 are skipped',
    options: 'ipv6_prefix 2001:db8:1::/48',
    aaaa: { addresses: ['2001:db8:1:c000:2:100:: 60', '2001:db8:1:c000:102:100:: 60'] },
    want: ['192.0.2.1 60'],
  },
  {
    name: 'explicit mappings come first',
    options: 'eam 198.51.100.1 64:ff9b::c000:201\n eam 198.51.100.2 2001:db8::2',
    aaaa: { addresses: ['64:ff9b::c000:201 60', '2001:db8:0::2 60', '64:ff9b::c000:203 60'] },
    want: ['198.51.100.1 60', '198.51.100.2 60', '192.0.2.3 60'],
  },
  {
    name: 'no address can be translated: the reply for A',
    aaaa: { addresses: ['2001:db8::1 60'] },
    want: ['SOA 300'],
  },
  { name: 'neither A nor AAAA', aaaa: { soa: 200 }, want: ['SOA 300'] },
  { name: 'A records exist', a: { addresses: ['192.0.2.9 60'] }, want: ['192.0.2.9 60'] },
  {
    name: 'NXDOMAIN',
    a: { rcode: Rcode.NXDOMAIN, soa: 300 },
    want: ['SOA 300'],
    status: 'NXDOMAIN',
  },
  { name: 'a truncated reply for A', a: { truncated: true }, want: [], flags: 'tc' },
  {
    name: 'no reply for A',
    a: { status: Rcode.REFUSED },
    want: [],
    status: 'REFUSED (sent: NOERROR)',
  },
  {
    name: 'no reply for AAAA',
    aaaa: { status: Rcode.SERVFAIL },
    want: [],
    status: 'SERVFAIL (sent: NOERROR)',
  },
  {
    name: 'an error in the reply for AAAA',
    aaaa: { status: 0, rcode: Rcode.SERVFAIL, soa: 60 },
    want: ['SOA 60'],
    status: 'NOERROR (sent: SERVFAIL)',
  },
]

for (const late of [false, true]) {
  t.test(`replies, ${late ? 'late' : 'at once'}`, async (t) => {
    for (const row of TABLE) {
      const { name, options, a = NODATA, aaaa, want, status = 'NOERROR', flags = '' } = row
      const setUp = new SetUp(siit, options === undefined ? 'siit' : `siit {\n ${options}\n}`)
      const tx = transaction({ name: 'example.com.', type: RRType.A })
      const shown = await show(setUp.handler(chainOf(RRType.A, a, aaaa, late)), tx)
      t.strictSame(printReply(tx), want, name)
      t.equal(shown.status, status, name)
      t.equal(shown.flags, flags, name)
      t.equal(tx.query.qtype, RRType.A, `${name}: the query is restored`)
    }
  })
}

t.test('which queries are translated, and counted', async (t) => {
  const table = [
    { type: RRType.A, want: 1 },
    { type: RRType.AAAA, want: 0 },
    { type: RRType.A, class: RRClass.CH, want: 0 },
    { type: RRType.A, dnssecOk: true, want: 1 },
    { type: RRType.A, dnssecOk: true, checkingDisabled: true, want: 0 },
  ]
  for (const { want, checkingDisabled, ...question } of table) {
    const setUp = new SetUp(siit, 'siit')
    const aaaa = { addresses: ['64:ff9b::c000:201 60'] }
    const handler = setUp.handler(chainOf(RRType.A, NODATA, aaaa))
    const tx = transaction({ name: 'example.com.', ...question })
    if (checkingDisabled === true) tx.query.flags |= 0x0010
    await setUp.start()
    await handler.serve(tx)
    t.equal(printReply(tx).includes('192.0.2.1 60'), want === 1, JSON.stringify(question))
    const series = 'coredns_siit_requests_translated_total{server="dns://:53"}'
    t.equal((await setUp.metric(series)) ?? 0, want)
    await setUp.stop()
  }
})

t.test('signatures of AAAA records are left out, other records are kept', async (t) => {
  const below = answering(({ query, response }) => {
    if (query.qtype === RRType.A) return 0
    response.authenticData = true
    const cname = scanName('www.example.com.')!
    const add = (owner: Uint8Array, type: number, rdata: Uint8Array): void =>
      response.add(Section.Answer, owner, 0, type, RRClass.IN, 60, rdata, 0, rdata.length)
    add(query.qname, RRType.CNAME, cname)
    add(query.qname, RRType.RRSIG, Uint8Array.of(0, RRType.CNAME, 0))
    add(cname, RRType.RRSIG, Uint8Array.of(0, RRType.AAAA, 0))
    add(cname, RRType.AAAA, scanAddress('64:ff9b::192.0.2.1')!.bytes)
    return 0
  })
  const tx = transaction({ name: 'example.com.', type: RRType.A, dnssecOk: true })
  const { answer } = await show(new SetUp(siit, 'siit').handler(below), tx)
  t.strictSame(answer, [
    'example.com. 60 IN CNAME 03777777076578616d706c6503636f6d00',
    'example.com. 60 IN RRSIG 000500',
    'www.example.com. 60 IN A c0000201',
  ])
  t.equal(tx.response.authenticData, false)
})

t.test('a failure below restores the query', async (t) => {
  const below = answering(({ query }) => {
    if (query.qtype === RRType.AAAA) throw new Error('broken')
    return 0
  }, true)
  const tx = transaction({ name: 'example.com.', type: RRType.A })
  await t.rejects(Promise.resolve(new SetUp(siit, 'siit').handler(below).serve(tx)), 'broken')
  t.equal(tx.query.qtype, RRType.A)
})

t.test('arguments', async (t) => {
  const table = [
    { given: 'siit', want: '' },
    { given: 'siit {\n ipv6_prefix 64:1337::/96\n eam 192.0.2.1 2001:db8::1\n}', want: '' },
    { given: 'siit 64:ff9b::/96', want: 'Corefile:1 .* Wrong argument count' },
    { given: 'siit {\n ipv6_prefix\n}', want: 'Corefile:2 .* Wrong argument count' },
    { given: 'siit {\n ipv6_prefix 10.0.0.0/8\n}', want: 'Corefile:2 .* not an IPv6 network' },
    { given: 'siit {\n ipv6_prefix 64:ff9b::/52\n}', want: 'Corefile:2 .* invalid prefix length' },
    {
      given: 'siit {\n ipv6_prefix 2001:db8:0:0:100::/96\n}',
      want: 'Corefile:2 .* bits 64 to 71 are zero',
    },
    { given: 'siit {\n eam 192.0.2.1\n}', want: 'Corefile:2 .* Wrong argument count' },
    { given: 'siit {\n eam ::1 2001:db8::1\n}', want: 'Corefile:2 .* ::1 is not an IPv4' },
    { given: 'siit {\n eam 192.0.2.1 192.0.2.2\n}', want: 'Corefile:2 .* not an IPv6' },
    { given: 'siit {\n prefix ::/96\n}', want: "Corefile:2 .* unknown property 'prefix'" },
  ]
  for (const { given, want } of table) {
    const error = setupError(siit, given)
    if (want === '') t.equal(error, '', given)
    else t.match(error, new RegExp(want), given)
  }
})
