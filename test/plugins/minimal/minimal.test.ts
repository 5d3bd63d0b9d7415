import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { minimal } from '../../../src/plugins/minimal/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'

function add(tx: Transaction, section: Section, type: number, octet: number): void {
  const rdata = Uint8Array.of(octet)
  tx.response.add(section, tx.query.qname, 0, type, RRClass.IN, 60, rdata, 0, 1)
}

/** Fills a response with one record per entry, and returns the rcode. */
function reply(rcode: number, records: readonly (readonly [Section, number])[], late = false) {
  return answering((tx) => {
    for (const [i, [section, type]] of records.entries()) add(tx, section, type, i)
    tx.response.rcode = rcode
    return rcode
  }, late)
}

const { Answer, Authority, Additional } = Section
const record = (type: string, i: number) => `example.org. 60 IN ${type} 0${i}`

t.test('the sections that remain of a reply', async (t) => {
  const table = [
    {
      name: 'a positive answer keeps its answers, in their order',
      below: reply(Rcode.NOERROR, [
        [Authority, RRType.NS],
        [Answer, RRType.CNAME],
        [Additional, RRType.A],
        [Answer, RRType.A],
      ]),
      want: { answer: [record('CNAME', 1), record('A', 3)], authority: [], additional: [] },
    },
    {
      name: 'so does one that came late',
      below: reply(
        Rcode.NOERROR,
        [
          [Answer, RRType.A],
          [Authority, RRType.NS],
        ],
        true,
      ),
      want: { answer: [record('A', 0)], authority: [], additional: [] },
    },
    {
      name: 'NODATA keeps its SOA',
      below: reply(Rcode.NOERROR, [[Authority, RRType.SOA]]),
      want: { answer: [], authority: [record('SOA', 0)], additional: [] },
    },
    {
      name: 'NXDOMAIN keeps its SOA',
      below: reply(Rcode.NXDOMAIN, [[Authority, RRType.SOA]]),
      want: { answer: [], authority: [record('SOA', 0)], additional: [] },
    },
    {
      name: 'a delegation keeps its servers and glue',
      below: reply(Rcode.NOERROR, [
        [Authority, RRType.NS],
        [Additional, RRType.A],
      ]),
      want: { answer: [], authority: [record('NS', 0)], additional: [record('A', 1)] },
    },
    {
      name: 'an answer in the additional section alone goes, as in CoreDNS',
      below: reply(Rcode.NOERROR, [[Additional, RRType.A]]),
      want: { answer: [], authority: [], additional: [] },
    },
  ]
  for (const { name, below, want } of table) {
    const handler = new SetUp(minimal, 'minimal').handler(below)
    const { answer, authority, additional } = await show(
      handler,
      transaction({ name: 'example.org.' }),
    )
    t.strictSame({ answer, authority, additional }, want, name)
  }
})

t.test('takes no argument', async (t) => {
  t.match(setupError(minimal, 'minimal x'), 'Wrong argument count')
})
