import { spawnSync } from 'node:child_process'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { parse } from 'yaml'
import { linesOfData } from '../../src/cli/data-format.ts'
import { tableOf } from '../../src/cli/table.ts'
import { composeLine, hasColors, type Line, toned } from '../../src/cli/tones.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'

/** Controls of a terminal, and characters that reorder a line or are invisible. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u
const ESCAPE = '\u001b'
const TEXT = fc.oneof(
  fc.string(),
  fc.string({
    unit: fc.constantFrom('\u001b', '[2J', '\u009b', '\u202e', '\u2028', '\r', '\n', 'a '),
  }),
  fc.constantFrom(
    'yes',
    'no',
    'null',
    '0x1f',
    '1e3',
    'e3',
    'E-3',
    '012',
    '~',
    '- a',
    'a: b',
    '# c',
    '{}',
    ' a',
  ),
)
const DATA = fc.dictionary(
  TEXT.filter((key) => key !== '__proto__'),
  fc.oneof(TEXT, fc.integer(), fc.boolean(), fc.constant(null), fc.array(TEXT)),
  { noNullPrototype: true },
)

t.test('JSON and YAML have the same data, and nothing that controls a terminal', (t) => {
  const print = (data: object, format: 'json' | 'yaml'): string => {
    const lines = [...linesOfData(format, { data: () => data, table: () => [] })]
    for (const line of lines) if (CONTROLS.test(line.replaceAll('\t', ''))) throw new Error(line)
    return lines.join('\n')
  }
  const check = (data: object): boolean => {
    const yaml = print(data, 'yaml')
    return (
      isDeepStrictEqual(JSON.parse(print(data, 'json')), data) &&
      isDeepStrictEqual(parse(yaml), data) &&
      isDeepStrictEqual(parse(yaml, { version: '1.1', merge: false }), data)
    )
  }
  fc.assert(fc.property(DATA, check), {
    numRuns: 500,
    examples: [[{ a: ['\u00a0'] }], [{ e3: 'E+3' }]],
  })
  t.end()
})

t.test('a line has only the control characters of its tones', (t) => {
  const line = fc.oneof(
    TEXT,
    fc.array(
      fc.oneof(
        TEXT,
        fc.tuple(fc.constantFrom('good', 'bad'), TEXT).map(([tone, text]) => toned(tone, text)),
      ),
    ),
  )
  const check = (line: Line): void => {
    const plain = composeLine(line, false)
    if (CONTROLS.test(plain.replaceAll('\t', ''))) throw new Error(plain)
    const colored = composeLine(line, true)
    t.equal(colored.replaceAll(new RegExp(`${ESCAPE}\\[(?:0|31|32)m`, 'g'), ''), plain)
  }
  fc.assert(fc.property(line, check), { numRuns: 300 })
  t.end()
})

t.test('columns of a table begin below their heading', (t) => {
  const rows = [
    ['a', null, toned('bad', 'down'), 1],
    ['a\u001bb', 'x', toned('good', ''), ''],
    ['', '', '', ''],
  ]
  const lines = tableOf(['NAME', 'SET', 'STATE', 'COUNT'], rows)
  const plain = lines.map((line) => composeLine(line, false))
  t.strictSame(plain, ['NAME    SET  STATE  COUNT', 'a       -    down   1', 'a\\x1bb  x', ''])
  t.equal(composeLine(lines[1]!, true), 'a       -    \x1b[31mdown\x1b[0m   1')
  t.end()
})

t.test('colours are for terminals, unless the user refuses them', (t) => {
  const cases: readonly [boolean | undefined, NodeJS.ProcessEnv, boolean][] = [
    [true, {}, true],
    [true, { TERM: 'xterm', NO_COLOR: '' }, true],
    [true, { NO_COLOR: '1' }, false],
    [true, { TERM: 'dumb' }, false],
    [false, {}, false],
    [undefined, {}, false],
  ]
  for (const [isTTY, env, want] of cases) {
    const stream = isTTY === undefined ? {} : { isTTY }
    t.equal(hasColors(stream, env), want, JSON.stringify([isTTY, env]))
  }
  t.end()
})

t.test('the program prints colours on a terminal only', needs('script'), (t) => {
  const program = `"${process.execPath}" dist/main.js geo 192.0.2.1`
  const print = (command: string, env: NodeJS.ProcessEnv): string => {
    const { PATH } = process.env
    const run = spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd: root,
      env: { PATH, TERM: 'xterm', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return run.stdout.toString()
  }
  t.ok(print(program, {}).startsWith(`${ESCAPE}[1m192.0.2.1${ESCAPE}[0m\r\n`))
  t.match(print(program, { NO_COLOR: '1' }), /^192\.0\.2\.1\r\n/)
  t.match(print(`${program} | cat`, {}), /^192\.0\.2\.1\r\n/)
  t.match(print(`${program} -o json`, {}), /^\{\r\n {2}"address"/)
  t.end()
})
