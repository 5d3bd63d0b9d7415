import type { BlockConfig } from '../directive.ts'
import { callTerm } from './functions.ts'
import { ExpressionError, type Lexeme, scanLexemes } from './lexer.ts'
import {
  BINARY_PRECEDENCE,
  binaryTerm,
  NEGATABLE,
  UNARY_PRECEDENCE,
  unaryTerm,
} from './operators.ts'
import { constantTerm, type Scope, type Term } from './term.ts'

/** Longest expression, in characters. */
const EXPRESSION_LENGTH_MAX = 8192
/** Deepest nesting of parentheses, calls, arrays and operators. */
const DEPTH_MAX = 64

/**
 * Compiles an expression: the part of the language of CoreDNS's `view` and `template` (expr-lang) that needs no
 * objects. Throws ExpressionError.
 *
 *     expression   binary [ `?` expression `:` expression ]
 *     binary       unary { operator binary }                 by precedence
 *     unary        ( `not` `!` `-` `+` ) unary | primary
 *     primary      literal | `[` list `]` | `(` expression `)` | name `(` list `)`
 */
export function compileExpression(source: string, block: BlockConfig, scope?: Scope): Term {
  if (source.length > EXPRESSION_LENGTH_MAX) {
    throw new ExpressionError(1, `an expression has at most ${EXPRESSION_LENGTH_MAX} characters`)
  }
  return new Parser(scanLexemes(source), block, scope).parseWhole()
}

class Parser {
  readonly #lexemes: readonly Lexeme[]
  readonly #block: BlockConfig
  readonly #scope: Scope | undefined
  #cursor = 0
  #depth = 0

  constructor(lexemes: readonly Lexeme[], block: BlockConfig, scope: Scope | undefined) {
    this.#lexemes = lexemes
    this.#block = block
    this.#scope = scope
  }

  parseWhole(): Term {
    const term = this.#parseExpression()
    if (this.#current.kind !== 'end') throw this.#unexpected()
    return term
  }

  #parseExpression(): Term {
    const condition = this.#parseBinary(0)
    const question = this.#current
    if (!this.#accept('?')) return condition
    const yes = this.#parseExpression()
    this.#expect(':')
    const no = this.#parseExpression()
    if (condition.type !== 'boolean') {
      throw new ExpressionError(question.column, `non-bool expression (type ${condition.type})`)
    }
    if (yes.type !== no.type) {
      const types = `${yes.type} and ${no.type}`
      throw new ExpressionError(question.column, `the two sides of ?: have types ${types}`)
    }
    const { evaluate } = condition
    return {
      type: yes.type,
      evaluate: (tx) => (evaluate(tx) === true ? yes.evaluate(tx) : no.evaluate(tx)),
    }
  }

  /** A term and every operator after it that binds at least as tightly as `precedence`. */
  #parseBinary(precedence: number): Term {
    this.#descend()
    let left = this.#parseUnary()
    for (;;) {
      const start = this.#cursor
      const negation = this.#current
      const negated = this.#isOperator('not')
      if (negated) this.#cursor++
      const operator = this.#current
      const binding = this.#isOperator(operator.text) && BINARY_PRECEDENCE.get(operator.text)
      if (typeof binding !== 'number' || binding < precedence) {
        this.#cursor = start
        break
      }
      if (negated && !NEGATABLE.has(operator.text)) throw this.#unexpected()
      this.#cursor++
      const term = binaryTerm(operator, left, this.#parseBinary(binding + 1))
      left = negated ? unaryTerm(negation, term) : term
    }
    this.#depth--
    return left
  }

  #parseUnary(): Term {
    const operator = this.#current
    const precedence = UNARY_PRECEDENCE.get(operator.text)
    if (precedence === undefined || !this.#accept(operator.text)) return this.#parsePrimary()
    return unaryTerm(operator, this.#parseBinary(precedence))
  }

  #parsePrimary(): Term {
    const lexeme = this.#current
    this.#cursor++
    if (lexeme.kind === 'text') return constantTerm('string', lexeme.text)
    if (lexeme.kind === 'number') return scanNumber(lexeme)
    if (lexeme.kind === 'name') return this.#parseName(lexeme)
    if (lexeme.kind === 'operator' && lexeme.text === '(') {
      const term = this.#parseExpression()
      this.#expect(')')
      return term
    }
    if (lexeme.kind === 'operator' && lexeme.text === '[') return this.#parseArray()
    this.#cursor--
    throw this.#unexpected()
  }

  #parseName(name: Lexeme): Term {
    if (name.text === 'true') return constantTerm('boolean', true)
    if (name.text === 'false') return constantTerm('boolean', false)
    if (name.text === 'nil') return constantTerm('nil', null)
    if (this.#accept('(')) {
      return callTerm(name, this.#parseList(')'), this.#block, this.#scope)
    }
    const variable = this.#scope?.variables.get(name.text)
    if (variable !== undefined) return variable
    throw new ExpressionError(name.column, `unknown name ${name.text}: a function needs ( )`)
  }

  #parseArray(): Term {
    const items = this.#parseList(']')
    const constants = items.map((item) => item.constant)
    if (constants.every((constant) => constant !== undefined)) {
      return constantTerm('array', constants)
    }
    return { type: 'array', evaluate: (tx) => items.map((item) => item.evaluate(tx)) }
  }

  /** Expressions between commas, and the closing mark. A comma may precede the closing mark. */
  #parseList(close: string): Term[] {
    const items: Term[] = []
    while (!this.#accept(close)) {
      if (items.length > 0) {
        this.#expect(',')
        if (this.#accept(close)) break
      }
      items.push(this.#parseExpression())
    }
    return items
  }

  get #current(): Lexeme {
    return this.#lexemes[Math.min(this.#cursor, this.#lexemes.length - 1)]!
  }

  /** True if the current lexeme is this operator; some operators are names. */
  #isOperator(text: string): boolean {
    const { kind, text: found } = this.#current
    return found === text && (kind === 'operator' || kind === 'name')
  }

  #accept(operator: string): boolean {
    if (!this.#isOperator(operator)) return false
    this.#cursor++
    return true
  }

  #expect(operator: string): void {
    if (!this.#accept(operator)) throw this.#unexpected()
  }

  #descend(): void {
    if (++this.#depth > DEPTH_MAX) {
      throw new ExpressionError(this.#current.column, `nested more than ${DEPTH_MAX} levels deep`)
    }
  }

  #unexpected(): ExpressionError {
    const { kind, text, column } = this.#current
    const what = kind === 'end' ? 'end of expression' : `token ${kind} ${JSON.stringify(text)}`
    return new ExpressionError(column, `unexpected ${what}`)
  }
}

function scanNumber(lexeme: Lexeme): Term {
  const value = Number(lexeme.text.replaceAll('_', ''))
  if (!Number.isFinite(value)) throw new ExpressionError(lexeme.column, 'number out of range')
  return constantTerm('number', value)
}
