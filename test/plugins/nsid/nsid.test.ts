import { hostname } from 'node:os'
import t from 'tap'
import { nsid } from '../../../src/plugins/nsid/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'

t.test('offers the identifier before the plugins below run', async (t) => {
  const table = [
    { given: 'nsid', want: hostname() },
    { given: 'nsid fra1-a', want: 'fra1-a' },
    { given: 'nsid two words', want: 'two words' },
    { given: 'nsid über', want: 'über' },
  ]
  for (const { given, want } of table) {
    let seen = ''
    const below = answering((tx) => {
      seen = Buffer.from(tx.response.nsid ?? []).toString()
      return 0
    })
    t.equal(new SetUp(nsid, given).handler(below).serve(transaction({ name: 'example.org.' })), 0)
    t.equal(seen, want, given)
  }
})

t.test('bad lines', async (t) => {
  t.match(setupError(nsid, 'nsid a\nnsid b'), 'this plugin can only be used once per Server Block')
  t.match(setupError(nsid, `nsid ${'a'.repeat(256)}`), 'nsid is 256 octets; use at most 255')
})
