import t from 'tap'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { Section } from '../../src/dns/message/section.ts'
import { DROP } from '../../src/plugin/handler.ts'
import {
  isUnwritten,
  ResponseKind,
  responseKind,
  sentOctets,
  sentRcode,
} from '../../src/plugin/status.ts'
import { transaction } from '../support/transaction.ts'

const { Answer, Authority } = Section

t.test('kinds of replies', async (t) => {
  const table: {
    name: string
    status: number
    records: [Section, number][]
    want: ResponseKind
  }[] = [
    { name: 'an answer', status: 0, records: [[Answer, RRType.A]], want: ResponseKind.Answer },
    {
      name: 'an alias that leads to nothing is still an answer',
      status: 0,
      records: [
        [Answer, RRType.CNAME],
        [Authority, RRType.SOA],
      ],
      want: ResponseKind.Answer,
    },
    { name: 'NODATA', status: 0, records: [[Authority, RRType.SOA]], want: ResponseKind.NoData },
    {
      name: 'a delegation',
      status: 0,
      records: [[Authority, RRType.NS]],
      want: ResponseKind.Delegation,
    },
    { name: 'nothing at all', status: 0, records: [], want: ResponseKind.Answer },
    {
      name: 'NXDOMAIN',
      status: Rcode.NXDOMAIN,
      records: [[Authority, RRType.SOA]],
      want: ResponseKind.NameError,
    },
    { name: 'NXDOMAIN without SOA', status: 3, records: [], want: ResponseKind.Error },
    {
      name: 'an error with leftovers of an answer',
      status: Rcode.SERVFAIL,
      records: [[Answer, RRType.A]],
      want: ResponseKind.Error,
    },
    { name: 'silence', status: DROP, records: [], want: ResponseKind.Error },
  ]
  for (const { name, status, records, want } of table) {
    const tx = transaction({ name: 'example.org.' })
    for (const [section, type] of records) {
      tx.response.add(section, tx.query.qname, 0, type, RRClass.IN, 1, new Uint8Array(4), 0, 4)
    }
    tx.response.rcode = Math.max(0, status)
    t.equal(responseKind(tx, status), want, name)
  }
})

t.test('the reply that each status causes', async (t) => {
  const tx = transaction({ name: 'example.org.' })
  tx.response.add(Answer, tx.query.qname, 0, RRType.A, RRClass.IN, 1, new Uint8Array(4), 0, 4)
  tx.response.rcode = Rcode.SERVFAIL
  t.equal(sentRcode(tx, Rcode.NOERROR), Rcode.SERVFAIL, 'a SERVFAIL that carries a chain')
  t.equal(sentRcode(tx, Rcode.REFUSED), Rcode.REFUSED)
  const octets = (status: number) => {
    tx.sentOctets = -1
    return sentOctets(tx, status)
  }
  t.equal(octets(Rcode.NOERROR), 12 + 17 + 13 + 10 + 4)
  t.equal(octets(Rcode.REFUSED), 12 + 17, 'a bare error')
  t.equal(tx.response.count, 1, 'the response is as before')
  t.equal(octets(DROP), 0)
  tx.response.count = 0
  t.equal(sentOctets(tx, Rcode.NOERROR), 0, 'counted once')
  t.strictSame([0, 1, 2, 3, 4, 5, 6, DROP].filter(isUnwritten), [1, 2, 4, 5])
})
