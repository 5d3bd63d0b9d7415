import t from 'tap'
import { POWERDNS } from '../../src/imports/powerdns/powerdns.ts'
import { endpointLines, importFiles } from './import-files.ts'

const HEAD = '$ORIGIN k.example.\n@ 60 SOA ns1 h 1 1 1 1 1\n@ 60 NS ns1\nns1 60 A 192.0.2.53\n'

/** Imports one LUA record, of the host `a`. */
function importScript(record: string): { endpoints: string[]; notes: readonly string[] } {
  const imported = importFiles(POWERDNS, { db: `${HEAD}a 60 LUA ${record}\n` })
  return {
    endpoints: endpointLines(imported).filter((line) => line.startsWith('a.')),
    notes: imported.notes.filter((note) => note.startsWith('db:5:')),
  }
}

t.test('scripts that are not read are listed, with the reason', async (t) => {
  const cases: readonly (readonly [record: string, note: string])[] = [
    ['A ""', 'the script ends too early'],
    ['A ";"', ''],
    ['A "pickrandom()"', 'pickrandom without an argument'],
    ['A "pickwrandom({{1}})"', 'a weight must be {NUMBER, ADDRESS}'],
    ['A "pickwrandom({1, 2})"', 'a weight must be {NUMBER, ADDRESS}'],
    ['A "ifportup({1}, 80)"', 'ifportup without its port and addresses'],
    ["A \"ifurlup('ftp://a/', {'192.0.2.1'})\"", '"ftp://a/" is not a URL'],
    ['A ";if true then return \'192.0.2.1\' end"', 'a condition that is no call of a function'],
    ["A \";if not country('DE') then return '192.0.2.1' end\"", '"not" has no equivalent'],
    [
      "A \";if country('DE') and continent('EU') then return 'x' end\"",
      '"and" where then is expected',
    ],
    ["A \"'192.0.2.1' .. '2'\"", 'unexpected ".."'],
    ['A "constructor({\'192.0.2.1\'})"', 'constructor has no equivalent'],
    ['A "__proto__({\'192.0.2.1\'})"', '__proto__ has no equivalent'],
    ['A ";while true do end"', 'unexpected "while"'],
    [`A "${"'".repeat(3)}"`, 'unexpected "\'"'],
  ]
  for (const [record, note] of cases) {
    const { endpoints, notes } = importScript(record)
    t.strictSame(endpoints, [], record)
    t.strictSame(
      notes,
      note === '' ? [] : [`db:5: LUA A of a.k.example not imported: ${note}`],
      record,
    )
  }
})

t.test('a record that has no value for the type is listed', async (t) => {
  const { endpoints, notes } = importScript('A "\'192.0.2.256\'"')
  t.strictSame(endpoints, [])
  t.equal(notes.length, 1)
})

t.test('lines are those of the file, also behind records of several lines', async (t) => {
  const text = `${HEAD}a 60 LUA A ( "'192.0.2.1'"\n  ; remark\n )\nb 60 LUA A "now()"\n  60 LUA A ("now2()"\n)\n60 60 LUA A "now()"`
  const { notes } = importFiles(POWERDNS, { db: text })
  t.strictSame(
    notes.filter((note) => note.includes('now')),
    ['db:8: LUA A of b.k.example not imported: now without an argument'].concat(
      'db:9: LUA A of b.k.example not imported: now2 without an argument',
      'db:11: LUA A of 60.k.example not imported: now without an argument',
    ),
  )
  t.notOk(notes.some((note) => note.startsWith('db:5')))
})

t.test('names and texts that look like the type stay', async (t) => {
  const imported = importFiles(POWERDNS, {
    db: `${HEAD}lua 60 A 192.0.2.1\nb 60 TXT lua A x\nc 60 CNAME lua\n`,
  })
  t.strictSame(endpointLines(imported).slice(1), [
    'lua.k.example 60 A 192.0.2.1',
    'b.k.example 60 TXT "lua" "A" "x"',
    'c.k.example 60 CNAME lua.k.example',
  ])
})

t.test('a script of 60 000 brackets ends at once', async (t) => {
  const started = performance.now()
  const strings = Array.from({ length: 300 }, () => `"${'{'.repeat(200)}"`).join(' ')
  const { notes } = importScript(`A ${strings}`)
  t.match(notes[0], /nested too deeply/)
  t.ok(performance.now() - started < 5000)
})
