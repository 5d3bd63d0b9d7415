import t from 'tap'
import { findMetadata } from '../../../src/plugin/metadata.ts'
import { metadata } from '../../../src/plugins/metadata/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'

t.test('labels are known inside the zones only', async (t) => {
  const table = [
    { given: 'metadata', name: 'a.example.org.', want: 'known' },
    { given: 'metadata', name: 'a.example.net.', want: '' },
    { given: 'metadata example.net', name: 'a.example.net.', want: 'known' },
    { given: 'metadata example.net', name: 'a.example.org.', want: '' },
    { given: 'metadata .', name: 'anything.', want: 'known' },
  ]
  for (const { given, name, want } of table) {
    const setUp = new SetUp(metadata, given)
    setUp.block.metadata.set('test/label', () => 'known')
    await setUp.start()
    const provide = findMetadata(setUp.block, 'test/label')!
    t.equal(provide(transaction({ name })), want, `${name} by "${given}"`)
    t.equal(findMetadata(setUp.block, 'test/other'), undefined)
  }
})

t.test('a block, a second line or a bad zone is refused', async (t) => {
  t.match(setupError(metadata, 'metadata {\n x\n}'), /Wrong argument count/)
  t.match(setupError(metadata, 'metadata\nmetadata'), /Wrong argument count/)
  t.match(setupError(metadata, 'metadata a..b'), /^Corefile:1 .*not a valid domain name: a\.\.b/)
})
