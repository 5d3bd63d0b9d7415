import t from 'tap'
import { InputError } from '../../src/base/errors.ts'
import { Dispenser } from '../../src/corefile/dispenser.ts'
import { scanTokens } from '../../src/corefile/lexer.ts'

const dispense = (text: string) => new Dispenser(scanTokens(text, 'Corefile'))

t.test('next visits every token, nextArg only those of the line', async (t) => {
  const d = dispense('d a b\nd c')
  t.equal(d.value(), '')
  t.ok(d.next())
  t.ok(d.nextArg())
  t.ok(d.nextArg())
  t.equal(d.value(), 'b')
  t.notOk(d.nextArg())
  t.equal(d.value(), 'b')
  t.ok(d.next())
  t.equal(d.value(), 'd')
  t.ok(d.next())
  t.notOk(d.next())
  t.equal(d.value(), 'c')
})

t.test('a token that spans lines ends on its last', async (t) => {
  const d = dispense('d "a\nb" c\ne')
  d.next()
  t.strictSame(d.remainingArgs(), ['a\nb', 'c'])
})

t.test('tokens of two files are never on one line', async (t) => {
  const d = new Dispenser([...scanTokens('d', 'a'), ...scanTokens('e', 'b')])
  d.next()
  t.notOk(d.nextArg())
  t.ok(d.next())
})

t.test('remaining arguments end before a brace', async (t) => {
  const d = dispense('d a b {\n x\n}')
  d.next()
  t.strictSame(d.remainingArgs(), ['a', 'b'])
  t.ok(d.nextBlock())
  t.equal(d.value(), 'x')
  t.notOk(d.nextBlock())
})

t.test('nextBlock visits the lines of a block, and of the next one', async (t) => {
  const d = dispense('d {\n a 1\n b\n}\nd {\n}\nd\nd {\n c\n}')
  const lines: string[][] = []
  let occurrences = 0
  while (d.next()) {
    occurrences++
    while (d.nextBlock()) lines.push([d.value(), ...d.remainingArgs()])
  }
  t.equal(occurrences, 4)
  t.strictSame(lines, [['a', '1'], ['b'], ['c']])
})

t.test('a brace on the next line opens no block', async (t) => {
  const d = dispense('d\n{\n a\n}')
  d.next()
  t.notOk(d.nextBlock())
  t.equal(d.value(), 'd')
})

t.test('the brace that closes a block ends its line', async (t) => {
  const d = dispense('d { a }')
  d.next()
  const seen: string[][] = []
  while (d.nextBlock()) seen.push([d.value(), ...d.remainingArgs()])
  t.strictSame(seen, [['a']])
})

t.test('errors name the place of the current token', async (t) => {
  const d = dispense('\nd a {\n}')
  d.next()
  d.nextArg()
  t.match(d.error('no'), {
    message: 'Corefile:2 - Error during parsing: no',
    position: { file: 'Corefile', line: 2 },
  })
  t.equal(
    d.argError().message,
    "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'a'",
  )
  d.nextArg()
  t.equal(
    d.argError().message,
    "Corefile:2 - Error during parsing: Unexpected token '{', expecting argument",
  )
})

t.test('lines with too few or too many arguments are rejected', async (t) => {
  const at = (text: string): Dispenser => {
    const d = dispense(text)
    d.next()
    return d
  }
  t.equal(at('d a {\n}').onlyArg(), 'a')
  t.strictSame(at('d a b\nd c').remainingArgs(1, 2), ['a', 'b'])
  at('d {\n}').noArgs()
  const refused: readonly (readonly [
    text: string,
    scan: (d: Dispenser) => unknown,
    after: string,
  ])[] = [
    ['d\na', (d) => d.onlyArg(), 'd'],
    ['d a b', (d) => d.onlyArg(), 'b'],
    ['d a b c', (d) => d.remainingArgs(1, 2), 'c'],
    ['d', (d) => d.remainingArgs(1), 'd'],
    ['d a', (d) => d.noArgs(), 'a'],
  ]
  for (const [text, scan, after] of refused) {
    t.throws(() => scan(at(text)), {
      message: `Corefile:1 - Error during parsing: Wrong argument count or unexpected line ending after '${after}'`,
    })
  }
})

t.test('eachProperty reports every refused line, and continues after each', async (t) => {
  const d = dispense('d {\n a\n bad 1 2\n b\n bad {\n  bad\n  c {\n  }\n }\n e\n}\nd')
  d.next()
  const seen: string[] = []
  const scan = (): void => {
    if (d.value() === 'bad') throw d.error('no')
    seen.push(d.value())
  }
  let lines: unknown
  try {
    d.eachProperty(scan)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    t.equal(error.position?.line, 3, 'of several errors the first is thrown')
    lines = error.all().map(({ position }) => position?.line)
  }
  t.strictSame(lines, [3, 5])
  t.strictSame(seen, ['a', 'b', 'e'])
  t.ok(d.next())
  t.equal(d.value(), 'd', 'the block is behind us')
})
