import { availableParallelism } from 'node:os'
import t from 'tap'
import { multisocket } from '../../../src/plugins/multisocket/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('1 to 1024 sockets, and a default', async (t) => {
  const table = [
    { given: 'multisocket', want: availableParallelism() },
    { given: 'multisocket 1', want: 1 },
    { given: 'multisocket +2', want: 2 },
    { given: 'multisocket 1024', want: 1024 },
  ]
  for (const { given, want } of table) {
    t.equal(new SetUp(multisocket, given).block.sockets, want, given)
  }
})

t.test('everything else is refused, in the words of CoreDNS', async (t) => {
  const table = [
    { given: 'multisocket 0', want: 'num sockets can not be zero or negative: 0' },
    { given: 'multisocket -3', want: 'num sockets can not be zero or negative: -3' },
    { given: 'multisocket 1025', want: 'num sockets exceeds maximum (1024): 1025' },
    { given: 'multisocket two', want: 'invalid num sockets: "two"' },
    { given: 'multisocket 1 2', want: 'Wrong argument count' },
    { given: 'multisocket 1\nmultisocket 2', want: 'this plugin can only be used once' },
  ]
  for (const { given, want } of table) {
    t.match(setupError(multisocket, given), want, given)
  }
})
