import t from 'tap'
import { printName } from '../../../src/dns/name/name.ts'
import { scanSearchPath } from '../../../src/dns/text/search-path.ts'

t.test('the search path of a file', async (t) => {
  const table: [text: string, want: string[]][] = [
    ['', []],
    ['search A.example b.\n', ['a.example.', 'b.']],
    ['search a\nsearch b\tc\n', ['b.', 'c.']],
    ['domain a b\n', ['a.']],
    ['search a\ndomain b', ['b.']],
    ['#search a\n;search b\noptions ndots:5\nnameserver 192.0.2.1\n', []],
    ['search a..b c\r\n', ['c.']],
  ]
  for (const [text, want] of table) {
    t.strictSame(
      scanSearchPath(text).map((name) => printName(name)),
      want,
      text,
    )
  }
})
