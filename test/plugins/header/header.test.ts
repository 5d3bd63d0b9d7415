import t from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { header } from '../../../src/plugins/header/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'

const answer = answering((tx) => {
  tx.response.authoritative = true
  return Rcode.NOERROR
})

t.test('flags of replies and queries', async (t) => {
  const table = [
    { given: 'response set ra', want: 'aa rd ra' },
    { given: 'set ra', want: 'aa rd ra' },
    { given: 'response clear aa rd', want: '' },
    { given: 'CLEAR AA', want: 'rd' },
    { given: 'response set ra\n response clear ra', want: 'aa rd' },
    { given: 'query clear rd', want: 'aa' },
    { given: 'query clear rd\n response set rd', want: 'aa rd' },
    { given: 'query set aa ra', want: 'aa rd' },
  ]
  for (const { given, want } of table) {
    const handler = new SetUp(header, `header {\n ${given}\n}`).handler(answer)
    const tx = transaction({ name: 'example.org.', recursionDesired: true })
    t.equal((await show(handler, tx)).flags, want, given)
  }
})

t.test('plugins below see the query as overruled', async (t) => {
  let flags = 0
  const below = answering((tx) => {
    flags = tx.query.flags
    return 0
  })
  const handler = new SetUp(header, 'header {\n query set aa ra\n query clear rd\n}').handler(below)
  handler.serve(transaction({ name: 'example.org.', recursionDesired: true }))
  t.equal(flags, 0x0480)
})

t.test('late replies are overruled, bare errors are not', async (t) => {
  const setUp = new SetUp(header, 'header {\n response set ra aa\n}')
  const late = await show(setUp.handler(answering(() => 0, true)), transaction({ name: '.' }))
  t.equal(late.flags, 'aa ra')
  const refused = setUp.handler(answering(() => Rcode.REFUSED))
  t.equal((await show(refused, transaction({ name: '.' }))).flags, '')
})

t.test('bad lines', async (t) => {
  const table = [
    { given: '', want: 'Wrong argument count' },
    { given: 'answer set aa', want: 'invalid selector=answer should be query or response' },
    { given: 'response', want: 'no flag action provided' },
    { given: 'response set', want: 'invalid length for flags, at least one should be provided' },
    { given: 'response flip aa', want: 'unknown flag action=flip, should be set or clear' },
    { given: 'set tc', want: 'setting up rule: unknown/unsupported flag=tc' },
  ]
  for (const { given, want } of table) {
    t.match(setupError(header, `header {\n ${given}\n}`), want, given)
  }
  t.match(setupError(header, 'header'), 'Wrong argument count')
})
