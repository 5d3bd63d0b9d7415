import t from 'tap'
import { EntryPrinter } from '../../../src/plugins/log/entry-printer.ts'
import { LineFormat } from '../../../src/plugins/log/format.ts'
import { Log } from '../../../src/plugins/log/log.ts'
import { metadata } from '../../../src/plugins/metadata/setup.ts'
import { ZoneSet } from '../../../src/zone/lookup/zone-set.ts'
import { lineBufferTo } from '../../support/line-buffer.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'
import { wire } from '../../support/zone-names.ts'

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
    setUp.block.metadata.providers.set('test/label', () => 'known')
    await setUp.start()
    const provide = setUp.block.metadata.find('test/label')!
    t.equal(provide(transaction({ name })), want, `${name} by "${given}"`)
    t.equal(setUp.block.metadata.find('test/other'), undefined)
  }
})

t.test('a label is computed when something reads it, and never else', async (t) => {
  const setUp = new SetUp(metadata, 'metadata')
  const { block, clock } = setUp
  const calls = { read: 0, unread: 0 }
  block.metadata.providers.set('test/read', () => `value ${++calls.read}`)
  block.metadata.providers.set('test/unread', () => `value ${++calls.unread}`)
  await setUp.start()
  const format = new LineFormat('{name} {/test/read}', (label) => block.metadata.find(label))
  const lines: string[] = []
  const printer = new EntryPrinter([format], lineBufferTo(lines))
  const names = new ZoneSet([wire('logged.example.org.')])
  const log = new Log(
    answering(() => 0),
    [{ names, format, classes: undefined }],
    { clock, printer, sender: undefined },
  )
  t.strictSame(calls, { read: 0, unread: 0 }, 'nothing is asked')
  log.serve(transaction({ name: 'www.example.org.' }))
  t.strictSame(calls, { read: 0, unread: 0 }, 'a query that is not logged')
  for (const name of ['a.logged.example.org.', 'b.logged.example.org.'])
    log.serve(transaction({ name }))
  t.strictSame(calls, { read: 2, unread: 0 }, 'what is logged has one of them')
  t.match(lines, [/a\.logged\.example\.org\. value 1$/, /b\.logged\.example\.org\. value 2$/])
})

t.test('a block, a second line or a bad zone is refused', async (t) => {
  t.match(setupError(metadata, 'metadata {\n x\n}'), /Wrong argument count/)
  t.match(setupError(metadata, 'metadata\nmetadata'), /Wrong argument count/)
  t.match(setupError(metadata, 'metadata a..b'), /^Corefile:1 .*not a valid domain name: a\.\.b/)
})
