import { readFileSync } from 'node:fs'
import t from 'tap'
import { LinearRegExp } from '../../../src/base/re2/linear-regexp.ts'
import { PatternError } from '../../../src/base/re2/syntax.ts'

interface Vector {
  readonly pattern: string
  readonly text: string
  readonly match: readonly string[] | null
  /** Go rejects the pattern. */
  readonly bad?: true
}

/** The message of the PatternError; '' = the pattern is accepted. */
function faultOf(pattern: string): string {
  try {
    new LinearRegExp(pattern)
    return ''
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

t.test('the results of Go for fixed and for random patterns', async (t) => {
  const file = new URL('go-vectors.json', import.meta.url)
  const vectors: Vector[] = JSON.parse(readFileSync(file, 'utf8'))
  t.ok(vectors.length > 800)
  for (const { pattern, text, match, bad } of vectors) {
    const name = `${JSON.stringify(pattern)} ${JSON.stringify(text)}`
    if (bad === true) {
      t.not(faultOf(pattern), '', name)
      continue
    }
    const regexp = new LinearRegExp(pattern)
    t.strictSame(regexp.exec(text) ?? null, match, name)
    t.equal(regexp.test(text), match !== null, name)
  }
})

t.test('patterns that take a backtracking search practically forever', async (t) => {
  const text = 'a'.repeat(1000)
  for (const pattern of [
    '(a+)+$',
    '(a|a)*b',
    '(.*)(.*)(.*)(.*)(.*)b',
    '(a*)*b',
    'a{0,500}a{500}b',
  ]) {
    const regexp = new LinearRegExp(pattern)
    t.equal(regexp.test(`${text}c`), false, pattern)
  }
})

t.test('where a match can start', async (t) => {
  const table = [
    { pattern: 'b', text: 'aab', want: ['b'] },
    { pattern: '^b', text: 'ab', want: undefined },
    { pattern: '(?m)^b', text: 'a\nb', want: ['b'] },
    { pattern: '^a|b', text: 'cb', want: ['b'] },
    { pattern: '(?:^|c)b', text: 'acb', want: ['cb'] },
    { pattern: '(x?)b', text: 'aab', want: ['b', ''] },
    { pattern: '(x*)$', text: 'aa', want: ['', ''] },
    { pattern: '\\bb', text: 'a b', want: ['b'] },
    { pattern: '[^a]', text: 'aa\u00e9', want: ['\u00e9'] },
    { pattern: '\u00e9', text: 'aa\u00e9', want: ['\u00e9'] },
  ]
  for (const { pattern, text, want } of table) {
    t.strictSame(new LinearRegExp(pattern).exec(text), want, pattern)
  }
})

t.test('what is rejected', async (t) => {
  const table = [
    { given: '(?=a)', want: 'invalid or unsupported Perl syntax: (?=' },
    { given: '(?!a)', want: 'invalid or unsupported Perl syntax: (?!' },
    { given: '(?<=a)', want: 'invalid or unsupported Perl syntax: (?<' },
    { given: '(a)\\1', want: 'invalid escape sequence: \\1: back-references are not supported' },
    { given: '\\pL', want: 'Unicode classes are not supported: \\p; list the characters' },
    { given: '\\x{10ffff}', want: 'characters above U+FFFF are not supported: \\x{10ffff}' },
    { given: 'a**', want: 'invalid nested repetition operator: **' },
    { given: '*a', want: 'missing argument to repetition operator: *' },
    { given: '(a', want: 'missing closing )' },
    { given: 'a)', want: 'unexpected )' },
    { given: '[a', want: 'missing closing ]: [a' },
    { given: 'a{2,1}', want: 'invalid repeat count: {2,1}' },
    { given: '(a{100}){101}', want: 'expression too large' },
    { given: '('.repeat(300), want: 'expression nests too deeply' },
    { given: 'a'.repeat(10_001), want: 'regex pattern too long: 10001 > 10000' },
    { given: 'a\\', want: 'trailing backslash at end of expression' },
  ]
  for (const { given, want } of table) {
    t.equal(faultOf(given), want, given.slice(0, 40))
  }
})

t.test('names of groups', async (t) => {
  const regexp = new LinearRegExp('^(?P<a>[0-9]+)-([a-z])-(?<b>.)')
  t.strictSame(regexp.groupNames, ['', 'a', '', 'b'])
  t.strictSame(regexp.exec('12-x-y'), ['12-x-y', '12', 'x', 'y'])
})
