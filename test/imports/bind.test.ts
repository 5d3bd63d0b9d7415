import fc from 'fast-check'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { BIND } from '../../src/imports/bind.ts'
import { endpointLines, importFiles, refusal } from './import-files.ts'

const SOA = '@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.example.net.\n'

t.test('files that are no zone file', async (t) => {
  const table: readonly [text: string, zone: string | undefined, error: RegExp][] = [
    ['', undefined, /^db:1: the file does not say its zone, .*add --zone NAME$/],
    ['', 'example.com.', /^db:1: .*has no SOA record for origin example\.com\./],
    [SOA, undefined, /add --zone NAME/],
    ['{"ResourceRecordSets": []}', undefined, /^db:1: .*not a record type/],
    ['---\nwww:\n  type: A\n  value: 192.0.2.1\n', 'example.com.', /^db:2: /m],
    [`${SOA}www A 300.1.1.1`, 'example.com.', /^db:3: A: /],
    [`${SOA}www CNAME a\nwww A 192.0.2.1`, 'example.com.', /^db:\d: .*CNAME/],
    [`${SOA}www A (`, 'example.com.', /^db:3: /],
    ['\0\u0001\u0002', 'example.com.', /^db:1: /],
  ]
  for (const [db, zone, error] of table) {
    t.match(
      refusal(() => importFiles(BIND, { db }, zone)),
      error,
      JSON.stringify(db),
    )
  }
})

t.test('the zone is that of the file, of $ORIGIN, or of --zone', async (t) => {
  const absolute = 'example.com. 60 SOA a. b. 1 2 3 4 5\nwww.example.com. 60 A 192.0.2.1\n'
  const want = ['www.example.com 60 A 192.0.2.1']
  t.strictSame(endpointLines(importFiles(BIND, { db: absolute })), want)
  const relative = `${SOA}www 60 A 192.0.2.1`
  t.strictSame(endpointLines(importFiles(BIND, { db: relative }, 'Example.com.')), want)
  const origin = `$ORIGIN example.com.\n${relative}`
  const other = origin.replace('com', 'org')
  t.strictSame(endpointLines(importFiles(BIND, { a: origin, b: other })), [
    ...want,
    'www.example.org 60 A 192.0.2.1',
  ])
})

t.test('a set with more targets than an endpoint may have becomes several endpoints', async (t) => {
  const lines = Array.from({ length: 600 }, (_, i) => `many 60 A 10.0.${i >> 8}.${i & 255}\n`)
  const { documents, notes } = importFiles(BIND, { db: SOA + lines.join('') }, 'example.com.')
  t.strictSame(
    documents.map(({ spec }) => spec.endpoints.map(({ targets }) => targets.length)),
    [[256, 256, 88]],
  )
  t.equal(notes.length, 2, 'SOA and NS')
})

t.test('a name of one label is no rootHost', async (t) => {
  const { documents, notes } = importFiles(BIND, { db: `${SOA}@ 60 A 192.0.2.1` }, 'example.')
  t.strictSame(documents, [])
  t.match(notes[2], /^db:3: not imported: spec\.rootHost "example" is not a domain name/)
})

t.test('any text is imported, or refused with its place', async () => {
  const word = fc.constantFrom(
    ...[
      '@',
      'www',
      '*',
      'a\\.b',
      'A',
      'CNAME',
      'TXT',
      'MX',
      '60',
      'IN',
      '192.0.2.1',
      '"x"',
      '(',
      ')',
    ],
    ...['$ORIGIN', '$TTL', '$GENERATE', '1-3', ';', '\\#', '4', 'c0000201', 'RRSIG', '.', '\n'],
  )
  const text = fc.array(word, { maxLength: 40 }).map((words) => SOA + words.join(' '))
  const check = (db: string): void => {
    try {
      importFiles(BIND, { db }, 'example.com.')
    } catch (error) {
      if (!(error instanceof InputError) || error.position?.file !== 'db') throw error
    }
  }
  fc.assert(fc.property(text, check), { numRuns: 500 })
})
