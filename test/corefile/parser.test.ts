import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { FILE_OCTETS_MAX } from '../../src/corefile/importer.ts'
import { parseCorefile, type ServerBlock } from '../../src/corefile/parser.ts'
import { runs } from '../support/runs.ts'

const ENV = {
  PORT: '8080',
  ADDRESS: 'servername.com',
  FOOBAR: 'foobar',
  PART: 'r1',
  LOOP: '{$LOOP}',
}

const parse = (text: string, file = 'Corefile') => parseCorefile(text, file, { env: ENV })

/** Keys and tokens of each block, as plain text. */
function shape(blocks: readonly ServerBlock[]) {
  return blocks.map(({ keys, directives }) => ({
    keys: keys.map((key) => key.text),
    directives: [...directives].map(([name, tokens]) => [name, tokens.map((token) => token.text)]),
  }))
}

function refusal(text: string, options = {}): string {
  try {
    parseCorefile(text, 'Corefile', { env: ENV, ...options })
  } catch (error) {
    if (error instanceof InputError) return error.message
    throw error
  }
  return 'accepted'
}

const accepted: readonly {
  name: string
  given: string
  want: readonly (readonly [readonly string[], Readonly<Record<string, readonly string[]>>])[]
}[] = [
  { name: 'nothing', given: '', want: [] },
  { name: 'only a key', given: 'localhost', want: [[['localhost'], {}]] },
  {
    name: 'a block without braces',
    given: 'localhost:1234\n dir1 foo bar\n dir2',
    want: [[['localhost:1234'], { dir1: ['dir1', 'foo', 'bar'], dir2: ['dir2'] }]],
  },
  {
    name: 'a block with braces',
    given: 'localhost {\n dir1\n}\n',
    want: [[['localhost'], { dir1: ['dir1'] }]],
  },
  {
    name: 'keys separated by spaces and commas, over lines after a comma',
    given: 'a b, c,\n d {\n}',
    want: [[['a', 'b', 'c', 'd'], {}]],
  },
  {
    name: 'two blocks',
    given: 'a {\n}\nb {\n}',
    want: [
      [['a'], {}],
      [['b'], {}],
    ],
  },
  {
    name: 'an empty block on one line',
    given: 'a { }\nb {\n}',
    want: [
      [['a'], {}],
      [['b'], {}],
    ],
  },
  {
    name: 'a directive with a block, nested blocks, and one on a line',
    given: 'a {\n d x {\n  n {\n   foo\n  }\n }\n e { f g }\n}',
    want: [
      [['a'], { d: ['d', 'x', '{', 'n', '{', 'foo', '}', '}'], e: ['e', '{', 'f', 'g', '}'] }],
    ],
  },
  {
    name: 'a brace on the next line still opens the block of the directive',
    given: 'a {\n d\n {\n  x\n }\n}',
    want: [[['a'], { d: ['d', '{', 'x', '}'] }]],
  },
  {
    name: 'a repeated directive is concatenated',
    given: 'a {\n d 1\n e\n d 2\n}',
    want: [[['a'], { d: ['d', '1', 'd', '2'], e: ['e'] }]],
  },
  { name: 'an empty key makes no block', given: '"" {\n d\n}', want: [] },
  {
    name: 'a closing brace that belongs to a directive, at the end of the file',
    given: 'a {\n d {\n }\n',
    want: [[['a'], { d: ['d', '{', '}'] }]],
  },
  {
    name: 'a quoted token over lines continues its line behind the last',
    given: 'a {\n d "x\ny" z\n e\n}',
    want: [[['a'], { d: ['d', 'x\ny', 'z'], e: ['e'] }]],
  },
  {
    name: 'variables in keys, directive names and arguments',
    given: '{$ADDRESS}:{%PORT%} {\n di{$PART} "x {$FOOBAR} y" {$UNSET}\n}',
    want: [[['servername.com:8080'], { dir1: ['di{$PART}', 'x foobar y', ''] }]],
  },
  {
    name: 'what is no complete variable stays',
    given: 'a {\n d {$} {%ADDRESS} {$PORT %} {{$$}} "{{ .Name }}"\n}',
    want: [[['a'], { d: ['d', '{$}', '{%ADDRESS}', '{$PORT', '%}', '{}', '{{ .Name }}'] }]],
  },
  {
    name: 'a snippet where directives go',
    given: '(s) {\n d 1\n e {\n  x\n }\n}\na {\n import s\n f\n}',
    want: [[['a'], { d: ['d', '1'], e: ['e', '{', 'x', '}'], f: ['f'] }]],
  },
  {
    name: 'a snippet inside the block of a directive',
    given: '(s) {\n x 1\n}\na {\n d {\n  import s\n  y\n }\n}',
    want: [[['a'], { d: ['d', '{', 'x', '1', 'y', '}'] }]],
  },
  {
    name: 'a snippet where keys go',
    given: '(s) {\n a {\n  d\n }\n}\nimport s\nb {\n}',
    want: [
      [['a'], { d: ['d'] }],
      [['b'], {}],
    ],
  },
  {
    name: 'import as an argument is a word',
    given: 'a {\n d import x\n}',
    want: [[['a'], { d: ['d', 'import', 'x'] }]],
  },
]

t.test('the parser accepts what CoreDNS accepts', async (t) => {
  for (const { name, given, want } of accepted) {
    const plain = want.map(([keys, directives]) => ({
      keys,
      directives: Object.entries(directives),
    }))
    t.strictSame(shape(parse(given)), plain, name)
  }
})

const PARSING = 'Error during parsing'

const refused: readonly { name: string; given: string; want: string }[] = [
  {
    name: 'a block opened and closed on one line',
    given: '.:53 { whoami }',
    want: `Corefile:1 - ${PARSING}: Unexpected '}' because no matching opening brace`,
  },
  {
    name: 'a brace too many behind the block of a directive',
    given: 'a\n d {\n } }',
    want: `Corefile:3 - ${PARSING}: Unexpected '}' because no matching opening brace`,
  },
  {
    name: 'a comma before the brace',
    given: 'a, {\n}',
    want: `Corefile:1 - ${PARSING}: Expected another address but had '{' - check for extra comma`,
  },
  { name: 'a comma at the end', given: 'a,', want: `Corefile:1 - ${PARSING}: Unexpected EOF` },
  {
    name: 'a block of a directive that does not end',
    given: 'a {\n d {\n  foo',
    want: `Corefile:3 - ${PARSING}: Unexpected EOF`,
  },
  {
    name: 'a server block that does not end',
    given: 'a {\n d\n',
    want: `Corefile:2 - Syntax error: Unexpected token 'd', expecting '}'`,
  },
  {
    name: 'an import of nothing',
    given: 'a {\n import\n}',
    want: `Corefile:2 - ${PARSING}: Wrong argument count or unexpected line ending after 'import'`,
  },
  {
    name: 'an import of two files',
    given: 'import x y',
    want: `Corefile:1 - ${PARSING}: Import takes only one argument (glob pattern or file)`,
  },
  {
    name: 'an import of an empty name',
    given: 'import ""',
    want: `Corefile:1 - ${PARSING}: Import requires a non-empty filepath`,
  },
  {
    name: 'an import of a file that does not exist',
    given: 'a {\n import not-there\n}',
    want: `Corefile:2 - ${PARSING}: File to import not found: not-there`,
  },
  {
    name: 'a pattern with two wildcards',
    given: 'import /*/*.txt',
    want: `Corefile:1 - ${PARSING}: Glob pattern may only contain one wildcard (*), but has others: /*/*.txt`,
  },
  {
    name: 'a pattern with a character class',
    given: 'import /[a-z]',
    want: `Corefile:1 - ${PARSING}: Glob pattern may only contain one wildcard (*), but has others: /[a-z]`,
  },
  {
    name: 'an import of a directory',
    given: 'import /',
    want: `Corefile:1 - ${PARSING}: Could not import /: is a directory`,
  },
  {
    name: 'a snippet defined twice',
    given: '(s) {\n}\n(s) {\n}',
    want: `Corefile:3 - ${PARSING}: redeclaration of previously declared snippet s`,
  },
  {
    name: 'a snippet without braces',
    given: '(s)\n d',
    want: `Corefile:2 - Syntax error: Unexpected token 'd', expecting '{'`,
  },
  {
    name: 'a snippet that does not end',
    given: '(s) {\n d',
    want: `Corefile:2 - Syntax error: Unexpected token 'd', expecting '}'`,
  },
  {
    name: 'a snippet that imports itself',
    given: '(s) {\n import s\n}',
    want: `Corefile:3 - ${PARSING}: maximum snippet import depth (10000) exceeded`,
  },
  {
    name: 'snippets that import each other',
    given: '(s) {\n import r\n}\n(r) {\n import s\n}\na {\n import s\n}',
    want: `Corefile:5 - ${PARSING}: maximum snippet import depth (10000) exceeded`,
  },
  {
    name: 'a variable that refers to itself',
    given: 'a {\n d {$LOOP}\n}',
    want: `Corefile:2 - ${PARSING}: environment variables in '{$LOOP}' refer to each other without end`,
  },
]

t.test('the parser refuses what CoreDNS refuses, in its words', async (t) => {
  for (const { name, given, want } of refused) t.equal(refusal(given), want, name)
})

t.test('a directive must be known, if the caller knows them', async (t) => {
  const given = 'a {\n d\n unknown 1 {\n  x\n }\n d\n nope\n}'
  const want = `Corefile:3 - ${PARSING}: Unknown directive 'unknown'`
  t.equal(refusal(given, { directiveNames: ['d'] }), want)
  const unknown: string[] = []
  const onUnknown = (error: InputError) => unknown.push(error.message)
  const blocks = parseCorefile(given, 'Corefile', { env: {}, directiveNames: ['d'], onUnknown })
  t.strictSame(unknown, [want, `Corefile:7 - ${PARSING}: Unknown directive 'nope'`])
  t.strictSame(shape(blocks), [{ keys: ['a'], directives: [['d', ['d', 'd']]] }])
})

t.test('errors carry their place beside the message', async (t) => {
  try {
    parse('a {\n d }\n}')
    t.fail('accepted')
  } catch (error) {
    t.match(error, { position: { file: 'Corefile', line: 2 } })
  }
})

t.test('imports read files relative to the file that names them', async (t) => {
  const directory = t.testdir({
    Corefile: 'import blocks/all\nz {\n import ./directives\n}',
    blocks: { all: 'import one*', 'one.b': 'b {\n import ../directives\n}', 'one.a': 'a' },
    directives: 'd 1\ne',
  })
  const file = join(directory, 'Corefile')
  // one.a has no braces, so everything behind it is its directives: the glob comes in order of name.
  writeFileSync(join(directory, 'blocks/one.a'), 'a {\n}')
  const blocks = parse('import blocks/all\nz {\n import ./directives\n}', file)
  t.strictSame(shape(blocks), [
    { keys: ['a'], directives: [] },
    {
      keys: ['b'],
      directives: [
        ['d', ['d', '1']],
        ['e', ['e']],
      ],
    },
    {
      keys: ['z'],
      directives: [
        ['d', ['d', '1']],
        ['e', ['e']],
      ],
    },
  ])
  const token = blocks[2]?.directives.get('e')?.[0]
  t.strictSame(token, { text: 'e', file: join(directory, 'directives'), line: 2 })
})

t.test('a snippet wins over a file of its name', async (t) => {
  const directory = t.testdir({ s: 'file' })
  const blocks = parse('(s) {\n d\n}\na {\n import s\n}', join(directory, 'Corefile'))
  t.strictSame(shape(blocks), [{ keys: ['a'], directives: [['d', ['d']]] }])
})

t.test('a pattern without a match is a warning', async (t) => {
  const directory = t.testdir({})
  const warnings: string[] = []
  const warn = (line: string) => warnings.push(line)
  const file = join(directory, 'Corefile')
  const blocks = parseCorefile('import none/*\na {\n import *.none\n d\n}', file, { env: {}, warn })
  t.strictSame(shape(blocks), [{ keys: ['a'], directives: [['d', ['d']]] }])
  t.strictSame(warnings, [
    'No files matching import glob pattern: none/*',
    'No files matching import glob pattern: *.none',
  ])
})

t.test('files that import themselves or each other are refused at once', async (t) => {
  const again = '.* imports .*, which imports it again; remove one of the imports'
  const table = [
    { text: 'import Corefile', want: /Corefile:1 - .*Corefile imports itself; remove/ },
    { text: 'a {\n errors\n import *\n}', want: /Corefile:3 - .*Corefile imports itself; remove/ },
    { text: 'import a', want: new RegExp(`/b:1 - .*${again}`) },
    { text: 'import c', want: new RegExp(`/c:2 - .*${again}`) },
    { text: '(s) {\n import d\n}\na {\n import s\n}', want: /\/d:1 - .*d imports itself; remove/ },
  ]
  for (const { text, want } of table) {
    const directory = t.testdir({
      ...{ Corefile: text, a: 'import b', b: 'import a' },
      ...{ c: 'x {\n import Corefile\n}', d: 'import d' },
    })
    t.throws(() => parse(text, join(directory, 'Corefile')), { message: want }, text)
  }
  const directory = t.testdir({ one: 'import d', two: 'import d', d: 'errors' })
  const blocks = parse('a {\n import one\n import two\n import d\n}', join(directory, 'Corefile'))
  t.strictSame(shape(blocks), [{ keys: ['a'], directives: [['errors', Array(3).fill('errors')]] }])
})

t.test('an imported file has its bound', async (t) => {
  const directory = t.testdir({ large: `#${'x'.repeat(FILE_OCTETS_MAX)}` })
  t.throws(() => parse('import large', join(directory, 'Corefile')), {
    message: /Corefile:1 - .*Could not import .*large: is larger than 16777216 octets/,
  })
})

t.test('an error cuts the input that it quotes, and keeps the fix', async (t) => {
  const message = refusal(`a {\n ${'x'.repeat(60_000)}\n}`, { directiveNames: ['d'] })
  t.match(message, /^Corefile:2 - .*Unknown directive 'x+ \[…\d+ characters…\] x+'$/)
  t.ok(message.length < 2100)
})

t.test('snippets that multiply come to an end', async (t) => {
  const fat = 'd\n'.repeat(1000)
  const wide = 'import fat\n'.repeat(3000)
  t.throws(() => parse(`(fat) {\n${fat}}\n(wide) {\n${wide}}\na {\nimport wide\n}`), {
    message: /imports have more than 2000000 tokens/,
  })
})

/** Prints blocks so that they parse to the same: tokens that shared a line still do. */
function print(blocks: readonly ServerBlock[]): string {
  const quote = (text: string) => `"${text.replaceAll('"', '\\"')}"`
  const word = (text: string) => (/^[{}]$/.test(text) ? text : quote(text))
  return blocks
    .map(({ keys, directives }) => {
      const lines = [...directives.values()].map((tokens) => {
        return tokens
          .map(({ text, line }, i) => {
            const same = i > 0 && tokens[i - 1]?.line === line
            return `${same ? ' ' : '\n'}${word(text)}`
          })
          .join('')
      })
      return `${keys.map((key) => quote(key.text)).join(' ')} {${lines.join('')}\n}\n`
    })
    .join('')
}

t.test('printing and parsing again changes nothing', async () => {
  const name = fc.constantFrom('d', 'e', 'f')
  const arg = fc.string({ unit: fc.constantFrom(...'ab1.:/$%"#'), maxLength: 6 })
  const line = fc.tuple(name, fc.array(arg, { maxLength: 3 }))
  const body = fc.array(line, { maxLength: 4 })
  const directive = fc.tuple(line, fc.option(body))
  const block = fc.tuple(
    fc.array(
      arg.filter((key) => /^[ab1.]+$/.test(key)),
      { minLength: 1 },
    ),
    fc.array(directive),
  )
  fc.assert(
    fc.property(fc.array(block), (blocks) => {
      const lineText = ([name, args]: readonly [string, readonly string[]]) =>
        [name, ...args.map((arg) => `"${arg.replaceAll('"', '\\"')}"`)].join(' ')
      const text = blocks
        .map(([keys, directives]) => {
          const lines = directives.map(([head, body]) => {
            const open = body === null ? '' : ` {\n${body.map(lineText).join('\n')}\n}`
            return lineText(head) + open
          })
          return `${keys.join(' ')} {\n${lines.join('\n')}\n}`
        })
        .join('\n')
      const once = parse(text)
      if (once.length !== blocks.length) throw new Error('a block got lost')
      const again = parse(print(once))
      if (JSON.stringify(shape(again)) !== JSON.stringify(shape(once))) throw new Error(print(once))
    }),
    { seed: 3, numRuns: runs(500) },
  )
})

t.test('any soup of tokens parses or is refused with a place', async () => {
  const token = fc.constantFrom(
    ...[
      '{',
      '}',
      'import',
      '(s)',
      's',
      'a,',
      ',',
      'a',
      '"',
      '""',
      '\n',
      '#',
      '{$PORT}',
      '{$LOOP}',
      '*',
    ],
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
      try {
        parse(tokens.join(' '), '/nonexistent/Corefile')
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        if (!/^\/nonexistent\/Corefile:\d+ - /.test(error.message)) throw error
      }
    }),
    { seed: 4, numRuns: runs(3000) },
  )
})
