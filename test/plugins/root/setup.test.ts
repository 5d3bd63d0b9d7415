import t from 'tap'
import { root } from '../../../src/plugins/root/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('the last path counts', async (t) => {
  t.equal(new SetUp(root, 'root /etc\nroot /var').block.root, '/var')
})

t.test('a missing directory is a warning at the start', async (t) => {
  const missing = new SetUp(root, 'root /no/such/directory')
  t.strictSame(missing.lines, [], 'setting up writes nothing')
  await missing.start()
  t.strictSame(missing.lines, [
    '[WARNING] plugin/root: Root path does not exist: /no/such/directory',
  ])
  const there = new SetUp(root, 'root /')
  await there.start()
  t.strictSame(there.lines, [])
})

t.test('root has exactly one argument', async (t) => {
  for (const given of ['root', 'root a b']) {
    t.match(setupError(root, given), /Wrong argument count or unexpected line ending/)
  }
})
