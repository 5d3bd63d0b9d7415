import { LinearRegExp } from '../../base/re2/linear-regexp.ts'
import { PatternError } from '../../base/re2/syntax.ts'
import { ExpressionError, type Lexeme } from './lexer.ts'
import { EvaluationError, equalValues, type Term, type Value, type ValueType } from './term.ts'

/** Precedence of operators: expr-lang's numbers. */
export const BINARY_PRECEDENCE: ReadonlyMap<string, number> = new Map([
  ...each(['or', '||'], 10),
  ...each(['and', '&&'], 15),
  ...each(['==', '!=', '<', '>', '<=', '>='], 20),
  ...each(['in', 'matches', 'contains', 'startsWith', 'endsWith'], 20),
  ...each(['+', '-'], 30),
  ...each(['*', '/', '%'], 60),
])

export const UNARY_PRECEDENCE: ReadonlyMap<string, number> = new Map([
  ...each(['not', '!'], 50),
  ...each(['-', '+'], 90),
])

/** Operators that `not` can precede: `type() not in ['A']`. */
export const NEGATABLE: ReadonlySet<string> = new Set([
  ...['in', 'matches', 'contains', 'startsWith', 'endsWith'],
])

function each(operators: readonly string[], precedence: number): [string, number][] {
  return operators.map((operator) => [operator, precedence])
}

type Numbers = (a: number, b: number) => Value
type Texts = (a: string, b: string) => Value

const ON_NUMBERS: Readonly<Record<string, Numbers>> = {
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => {
    if (b === 0) throw new EvaluationError('integer divide by zero')
    return a % b
  },
}

const ON_TEXTS: Readonly<Record<string, Texts>> = {
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  '+': (a, b) => a + b,
  contains: (a, b) => a.includes(b),
  startsWith: (a, b) => a.startsWith(b),
  endsWith: (a, b) => a.endsWith(b),
}

const ARITHMETIC: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%'])

type BinaryTerm = (operator: Lexeme, left: Term, right: Term) => Term

/** Operators that do not compute with two values of one type. */
const BINARY_TERMS: ReadonlyMap<string, BinaryTerm> = new Map([
  ['or', orTerm],
  ['||', orTerm],
  ['and', andTerm],
  ['&&', andTerm],
  ['==', equalityTerm],
  ['!=', equalityTerm],
  ['in', membershipTerm],
  ['matches', matchTerm],
])

/** `left operator right`. Throws ExpressionError if the types don't fit. */
export function binaryTerm(operator: Lexeme, left: Term, right: Term): Term {
  const compose = BINARY_TERMS.get(operator.text) ?? computedTerm
  return compose(operator, left, right)
}

function orTerm(operator: Lexeme, left: Term, right: Term): Term {
  requireTypes(operator, left, right, 'boolean')
  const a = left.evaluate
  const b = right.evaluate
  return { type: 'boolean', evaluate: (tx) => a(tx) === true || b(tx) === true }
}

function andTerm(operator: Lexeme, left: Term, right: Term): Term {
  requireTypes(operator, left, right, 'boolean')
  const a = left.evaluate
  const b = right.evaluate
  return { type: 'boolean', evaluate: (tx) => a(tx) === true && b(tx) === true }
}

function computedTerm(operator: Lexeme, left: Term, right: Term): Term {
  const op = operator.text
  const a = left.evaluate
  const b = right.evaluate
  if (left.type === 'number' && right.type === 'number' && ON_NUMBERS[op] !== undefined) {
    const compute = ON_NUMBERS[op]
    const type = ARITHMETIC.has(op) ? 'number' : 'boolean'
    return { type, evaluate: (tx) => compute(a(tx) as number, b(tx) as number) }
  }
  if (left.type === 'string' && right.type === 'string' && ON_TEXTS[op] !== undefined) {
    const compute = ON_TEXTS[op]
    const type = op === '+' ? 'string' : 'boolean'
    return { type, evaluate: (tx) => compute(a(tx) as string, b(tx) as string) }
  }
  throw mismatch(operator, left, right)
}

export function unaryTerm(operator: Lexeme, operand: Term): Term {
  const evaluate = operand.evaluate
  if (operator.text === '!' || operator.text === 'not') {
    if (operand.type !== 'boolean') throw wrongOperand(operator, operand.type)
    return { type: 'boolean', evaluate: (tx) => evaluate(tx) !== true }
  }
  if (operand.type !== 'number') throw wrongOperand(operator, operand.type)
  if (operator.text === '+') return operand
  return { type: 'number', evaluate: (tx) => -(evaluate(tx) as number) }
}

function equalityTerm(operator: Lexeme, left: Term, right: Term): Term {
  const comparable = left.type === right.type || left.type === 'nil' || right.type === 'nil'
  if (!comparable) throw mismatch(operator, left, right)
  const wanted = operator.text === '=='
  const a = left.evaluate
  const b = right.evaluate
  return { type: 'boolean', evaluate: (tx) => equalValues(a(tx), b(tx)) === wanted }
}

function membershipTerm(operator: Lexeme, left: Term, right: Term): Term {
  if (right.type !== 'array') throw mismatch(operator, left, right)
  const a = left.evaluate
  const b = right.evaluate
  return {
    type: 'boolean',
    evaluate: (tx) => {
      const value = a(tx)
      return (b(tx) as readonly Value[]).some((item) => equalValues(item, value))
    },
  }
}

/** The pattern is compiled at load, so it must be constant. */
function matchTerm(operator: Lexeme, left: Term, right: Term): Term {
  requireTypes(operator, left, right, 'string')
  if (typeof right.constant !== 'string') {
    throw new ExpressionError(operator.column, 'the pattern of matches must be a literal')
  }
  const pattern = compilePattern(operator, right.constant)
  const a = left.evaluate
  return { type: 'boolean', evaluate: (tx) => pattern.test(a(tx) as string) }
}

function compilePattern(operator: Lexeme, source: string): LinearRegExp {
  try {
    return new LinearRegExp(source)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw new ExpressionError(operator.column, `invalid pattern: ${error.message}`)
  }
}

function requireTypes(operator: Lexeme, left: Term, right: Term, type: ValueType): void {
  if (left.type !== type || right.type !== type) throw mismatch(operator, left, right)
}

function mismatch(operator: Lexeme, left: Term, right: Term): ExpressionError {
  const types = `mismatched types ${left.type} and ${right.type}`
  return new ExpressionError(operator.column, `invalid operation: ${operator.text} (${types})`)
}

function wrongOperand(operator: Lexeme, type: ValueType): ExpressionError {
  return new ExpressionError(
    operator.column,
    `invalid operation: ${operator.text} (mismatched type ${type})`,
  )
}
