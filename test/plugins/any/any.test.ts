import t from 'tap'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
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

t.test('hands everything else on', async (t) => {
  const handler = new SetUp(any, 'any').handler({ name: 'below', serve: () => 7 })
  t.equal(handler.serve(transaction({ name: 'example.org.' })), 7)
  const chaos = { name: 'example.org.', type: RRType.ANY, class: RRClass.CH }
  t.equal(handler.serve(transaction(chaos)), 7, 'another class')
})

t.test('takes no argument', async (t) => {
  t.match(setupError(any, 'any thing'), 'Wrong argument count')
})
