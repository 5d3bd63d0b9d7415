import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { DROP, type Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { any } from '../../../src/plugins/any/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'

t.test('answers ANY with one HINFO', async (t) => {
  const tx = transaction({ name: 'example.org.', type: RRType.ANY })
  t.strictSame(await show(new SetUp(any, 'any').handler(), tx), {
    status: 'NOERROR',
    flags: '',
    answer: ['example.org. 8482 IN HINFO 0d414e59206f62736f6c657465640c536565205246432038343832'],
    authority: [],
    additional: [],
  })
  t.equal(tx.response.answeredBy, 'any')
})

const HINFO = /^example\.org\. 8482 IN HINFO 0d/

/** A handler below that answers with an A record, signed or not, now or later. */
function below({ signed, late }: { signed: boolean; late: boolean }): Handler {
  const serve = ({ query, response }: Transaction): number | Promise<number> => {
    response.authoritative = true
    const types = signed ? [RRType.A, RRType.RRSIG] : [RRType.A]
    for (const type of types) {
      response.add(Section.Answer, query.qname, 0, type, RRClass.IN, 60, new Uint8Array(4), 0, 4)
    }
    return late ? Promise.resolve(Rcode.NOERROR) : Rcode.NOERROR
  }
  return { name: 'below', serve }
}

for (const late of [false, true]) {
  t.test(`a query with DO gets what is signed, ${late ? 'later' : 'at once'}`, async (t) => {
    const ask = async (signed: boolean, dnssecOk: boolean): ReturnType<typeof show> => {
      const tx = transaction({ name: 'example.org.', type: RRType.ANY })
      tx.query.dnssecOk = dnssecOk
      return show(new SetUp(any, 'any').handler(below({ signed, late })), tx)
    }
    t.match(await ask(true, true), {
      status: 'NOERROR',
      flags: 'aa',
      answer: [/ IN A /, / IN RRSIG /],
    })
    const unsigned = await ask(false, true)
    t.match(unsigned, { status: 'NOERROR', flags: '', answer: [HINFO] })
    t.equal(unsigned.answer.length, 1)
    const plain = await ask(true, false)
    t.match(plain, { status: 'NOERROR', flags: '', answer: [HINFO] })
    t.equal(plain.answer.length, 1)
  })
}

t.test('a query with DO that the handlers below refuse or drop gets the HINFO', async (t) => {
  for (const status of [DROP, Rcode.REFUSED, Rcode.SERVFAIL]) {
    const tx = transaction({ name: 'example.org.', type: RRType.ANY })
    tx.query.dnssecOk = true
    const handler = new SetUp(any, 'any').handler({ name: 'below', serve: () => status })
    t.match(await show(handler, tx), { status: 'NOERROR', answer: [HINFO] }, String(status))
  }
})

t.test('hands everything else on', async (t) => {
  const handler = new SetUp(any, 'any').handler({ name: 'below', serve: () => 7 })
  t.equal(handler.serve(transaction({ name: 'example.org.' })), 7)
  const chaos = { name: 'example.org.', type: RRType.ANY, class: RRClass.CH }
  t.equal(handler.serve(transaction(chaos)), 7, 'another class')
})

t.test('takes no argument', async (t) => {
  t.match(setupError(any, 'any thing'), 'Wrong argument count')
})
