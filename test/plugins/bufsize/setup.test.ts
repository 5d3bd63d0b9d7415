import t from 'tap'
import { bufsize } from '../../../src/plugins/bufsize/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('sizes from 512 to 4096, and a default', async (t) => {
  const table = [
    { given: 'bufsize', want: 1232 },
    { given: 'bufsize 512', want: 512 },
    { given: 'bufsize 4096', want: 4096 },
  ]
  for (const { given, want } of table) {
    t.equal(new SetUp(bufsize, given).block.bufsizeOctets, want, given)
  }
})

t.test('everything else is refused', async (t) => {
  for (const given of ['511', '4097', '-1', '1e3', '0x400', '512 512', 'abc', '99999999999999']) {
    t.match(setupError(bufsize, `bufsize ${given}`), 'Wrong argument count', given)
  }
})
