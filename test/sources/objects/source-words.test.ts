import t from 'tap'
import { kindsOf, OBJECT_KINDS } from '../../../src/sources/objects/object-kinds.ts'
import { DNSRECORD_WORD, SOURCE_WORDS } from '../../../src/sources/objects/source-words.ts'

t.test('each kind has a word, and each word a kind', async (t) => {
  const words = OBJECT_KINDS.map(({ word }) => word)
  t.strictSame(SOURCE_WORDS, [DNSRECORD_WORD, ...words])
  t.strictSame(kindsOf([DNSRECORD_WORD]), [])
  t.strictSame(kindsOf(SOURCE_WORDS), OBJECT_KINDS)
})
