import fc from 'fast-check'
import t from 'tap'
import {
  compareNames,
  concatNames,
  equalNames,
  isSubdomain,
  lowerName,
  nameKey,
  parentName,
  printKey,
  printName,
  ROOT_NAME,
  scanName,
} from '../../../src/dns/name/name.ts'
import { arbitraryName } from '../../support/arbitrary.ts'

const example = wire('example.org.')

function wire(text: string): Uint8Array {
  const name = scanName(text)
  if (name === undefined) throw new Error(`not a name: ${text}`)
  return name
}

function latin1(name: Uint8Array | undefined): string | undefined {
  return name === undefined ? undefined : Buffer.from(name).toString('latin1')
}

const L63 = 'x'.repeat(63)

t.test('scanName', (t) => {
  const table: { name: string; given: string; origin?: Uint8Array; want: string | undefined }[] = [
    {
      name: 'reads an absolute name',
      given: 'www.Example.org.',
      want: '\x03www\x07Example\x03org\0',
    },
    { name: 'reads the root', given: '.', want: '\0' },
    {
      name: 'takes a name without a dot as absolute by default',
      given: 'a.b',
      want: '\x01a\x01b\0',
    },
    {
      name: 'completes it with the origin',
      given: 'a',
      origin: example,
      want: '\x01a\x07example\x03org\0',
    },
    { name: 'leaves an absolute name alone', given: 'a.', origin: example, want: '\x01a\0' },
    { name: 'takes @ as the origin', given: '@', origin: example, want: '\x07example\x03org\0' },
    {
      name: 'takes an escaped @ as a label',
      given: '\\@',
      origin: example,
      want: '\x01@\x07example\x03org\0',
    },
    { name: 'reads an escaped dot into the label', given: 'a\\.b.c.', want: '\x03a.b\x01c\0' },
    { name: 'reads decimal escapes', given: '\\000\\255\\065.', want: '\x03\0\xffA\0' },
    { name: 'takes an escaped final dot as part of the label', given: 'a\\.', want: '\x02a.\0' },
    { name: 'reads an escaped backslash', given: '\\\\.', want: '\x01\\\0' },
    { name: 'takes letters beyond ASCII as UTF-8', given: 'é.', want: '\x02\xc3\xa9\0' },
    { name: 'accepts a label of 63 octets', given: `${L63}.`, want: `\x3f${L63}\0` },
    { name: 'refuses a label of 64 octets', given: `${L63}x.`, want: undefined },
    { name: 'refuses nothing', given: '', want: undefined },
    { name: 'refuses an empty label', given: 'a..b', want: undefined },
    { name: 'refuses a leading dot', given: '.a', want: undefined },
    { name: 'refuses two dots', given: '..', want: undefined },
    { name: 'refuses a lone backslash', given: 'a\\', want: undefined },
    { name: 'refuses a short decimal escape', given: '\\12', want: undefined },
    { name: 'refuses a decimal escape above 255', given: '\\256', want: undefined },
    { name: 'refuses a decimal escape with letters', given: '\\1a2', want: undefined },
  ]
  for (const { name, given, origin, want } of table) {
    t.equal(latin1(scanName(given, origin)), want, name)
  }
  t.end()
})

t.test('a name has at most 255 octets', (t) => {
  const longest = `${L63}.${L63}.${L63}.${'y'.repeat(61)}`
  t.equal(scanName(`${longest}.`)?.length, 255)
  t.equal(scanName(longest)?.length, 255, 'without its final dot')
  t.equal(scanName(`${longest}y.`), undefined)
  t.equal(scanName(`${longest}y`), undefined)
  t.equal(scanName(`${L63}.${L63}.${L63}.y.`.repeat(2)), undefined)
  t.equal(scanName(longest, example), undefined, 'the origin counts')
  t.equal(wire('a.'.repeat(127)).length, 255)
  t.equal(scanName('a.'.repeat(128)), undefined)
  t.equal(concatNames(wire(longest), example), undefined)
  t.end()
})

t.test('printName escapes what a zone file would misread', (t) => {
  t.equal(printName(ROOT_NAME), '.')
  t.equal(printName(wire('www.Example.org')), 'www.Example.org.')
  t.equal(
    printName(wire('a\\.b\\;\\(\\)\\@\\$\\"\\\\\\032\\007\\200.')),
    'a\\.b\\;\\(\\)\\@\\$\\"\\\\\\032\\007\\200.',
  )
  t.equal(printName(Buffer.from('xx\x01a\0', 'latin1'), 2), 'a.', 'from an offset')
  t.equal(printName(Buffer.from('\x05ab', 'latin1')), 'ab\\000\\000\\000.', 'ends on a broken name')
  t.end()
})

t.test('scanName reads back what printName wrote', (t) => {
  fc.assert(
    fc.property(arbitraryName, (name) => {
      t.strictSame(Buffer.from(scanName(printName(name))!), Buffer.from(name))
    }),
    { seed: 1, numRuns: 500 },
  )
  t.pass('holds')
  t.end()
})

t.test('scanName never throws', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      const name = scanName(text)
      return name === undefined || (name.length <= 255 && name.at(-1) === 0)
    }),
    { seed: 2, numRuns: 500 },
  )
  t.pass('holds')
  t.end()
})

t.test('names compare without regard to ASCII case', (t) => {
  t.ok(equalNames(wire('WWW.example.ORG'), wire('www.EXAMPLE.org')))
  t.notOk(equalNames(wire('a.example.org'), wire('b.example.org')))
  t.notOk(equalNames(wire('[.'), wire('{.')), 'only letters fold')
  t.notOk(equalNames(wire('a.b.'), wire('a\\.b.')))
  t.equal(printName(lowerName(wire('A.\\200Z.'))), 'a.\\200z.')
  t.equal(nameKey(wire('WWW.org')), '\x03www\x03org\0')
  t.equal(printKey(nameKey(wire('W\\255W.org'))), 'w\\255w.org.')
  t.end()
})

t.test('isSubdomain', (t) => {
  const table: { name: string; given: [string, string]; want: boolean }[] = [
    { name: 'holds for the zone itself', given: ['Example.org', 'example.ORG'], want: true },
    { name: 'holds below', given: ['a.b.example.org', 'example.org'], want: true },
    { name: 'holds for everything under the root', given: ['a.', '.'], want: true },
    { name: 'fails above', given: ['org', 'example.org'], want: false },
    { name: 'fails beside', given: ['example.net', 'example.org'], want: false },
    { name: 'respects label boundaries', given: ['badexample.org', 'example.org'], want: false },
    {
      name: 'is not fooled by octets that look like a label',
      given: ['x\\007example.org', 'example.org'],
      want: false,
    },
  ]
  for (const { name, given, want } of table) {
    t.equal(isSubdomain(wire(given[0]), wire(given[1])), want, name)
  }
  t.end()
})

t.test('compareNames gives the canonical order of RFC 4034 section 6.1', (t) => {
  const ordered = [
    'example.',
    'a.example.',
    'yljkjljk.a.example.',
    'Z.a.example.',
    'zABC.a.EXAMPLE.',
    'z.example.',
    '\\001.z.example.',
    '*.z.example.',
    '\\200.z.example.',
  ]
  const shuffled = [...ordered].reverse().map(wire)
  t.strictSame(
    shuffled.sort(compareNames).map((name) => printName(name)),
    ordered,
  )
  fc.assert(
    fc.property(arbitraryName, arbitraryName, (a, b) => {
      return (
        Math.sign(compareNames(a, b)) === -Math.sign(compareNames(b, a)) &&
        (compareNames(a, b) === 0) === equalNames(a, b)
      )
    }),
    { seed: 3, numRuns: 300 },
  )
  t.pass('holds')
  t.end()
})

t.test('parentName drops a label and stops at the root', (t) => {
  t.equal(printName(parentName(wire('a.b.c'))), 'b.c.')
  t.equal(printName(parentName(wire('c'))), '.')
  t.equal(printName(parentName(ROOT_NAME)), '.')
  t.end()
})
