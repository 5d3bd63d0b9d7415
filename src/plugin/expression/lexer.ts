/** The reason why an expression is invalid. `column` counts characters from 1. */
export class ExpressionError extends Error {
  constructor(column: number, message: string) {
    super(`${message} (column ${column})`)
    this.name = 'ExpressionError'
  }
}

type LexemeKind = 'number' | 'text' | 'name' | 'operator' | 'end'

export interface Lexeme {
  readonly kind: LexemeKind
  /** Name, operator, or digits as written. For a text its value, with escapes resolved. */
  readonly text: string
  readonly column: number
}

/** Longest first, so that `<=` isn't read as `<`. */
const OPERATORS = [
  ...['==', '!=', '<=', '>=', '&&', '||'],
  ...['<', '>', '!', '+', '-', '*', '/', '%', '?', ':', '(', ')', '[', ']', ','],
]

const NUMBER = /(?:0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)/y
const NAME = /[A-Za-z_$][A-Za-z0-9_$]*/y
const BLANK = /\s+/y

/** Splits an expression. Throws ExpressionError. */
export function scanLexemes(source: string): Lexeme[] {
  const lexemes: Lexeme[] = []
  let at = 0
  while (at < source.length) {
    const blank = matchAt(BLANK, source, at)
    if (blank !== undefined) {
      at += blank.length
      continue
    }
    const { lexeme, length } = scanLexeme(source, at)
    lexemes.push(lexeme)
    at += length
  }
  lexemes.push({ kind: 'end', text: 'end of expression', column: source.length + 1 })
  return lexemes
}

function scanLexeme(source: string, at: number): { lexeme: Lexeme; length: number } {
  const column = at + 1
  const quote = source[at]!
  if (quote === "'" || quote === '"') return scanQuoted(source, at, quote)
  if (quote === '`') return scanRaw(source, at)
  for (const [kind, pattern] of [
    ['number', NUMBER],
    ['name', NAME],
  ] as const) {
    const text = matchAt(pattern, source, at)
    if (text !== undefined) return { lexeme: { kind, text, column }, length: text.length }
  }
  const operator = OPERATORS.find((text) => source.startsWith(text, at))
  if (operator === undefined) {
    throw new ExpressionError(column, `unrecognized character ${JSON.stringify(quote)}`)
  }
  return { lexeme: { kind: 'operator', text: operator, column }, length: operator.length }
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0]
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  ...{ n: '\n', r: '\r', t: '\t', a: '\u0007', b: '\b', f: '\f', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"', '`': '`' },
}

function scanQuoted(source: string, start: number, quote: string) {
  let text = ''
  let at = start + 1
  while (source[at] !== quote) {
    const char = source[at]
    if (char === undefined) throw new ExpressionError(start + 1, 'literal not terminated')
    if (char !== '\\') {
      text += char
      at++
      continue
    }
    const found = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([^xu]))/.exec(
      source.slice(at, at + 6),
    )
    const hex = found?.[1] ?? found?.[2]
    const value =
      hex === undefined
        ? SIMPLE_ESCAPES[found?.[3] ?? '']
        : String.fromCharCode(Number.parseInt(hex, 16))
    if (value === undefined) throw new ExpressionError(at + 1, 'invalid escape in literal')
    text += value
    at += found![0].length
  }
  const lexeme: Lexeme = { kind: 'text', text, column: start + 1 }
  return { lexeme, length: at + 1 - start }
}

function scanRaw(source: string, start: number) {
  const end = source.indexOf('`', start + 1)
  if (end === -1) throw new ExpressionError(start + 1, 'literal not terminated')
  const lexeme: Lexeme = { kind: 'text', text: source.slice(start + 1, end), column: start + 1 }
  return { lexeme, length: end + 1 - start }
}
