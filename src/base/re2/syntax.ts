/** The syntax of regular expressions of Go (https://github.com/google/re2/wiki/Syntax). */

/** Pairs of first and last code unit, in any order. */
export type Ranges = readonly (readonly [number, number])[]

/** What must be true between two characters. */
export const Assertion = {
  TextStart: 0,
  TextEnd: 1,
  LineStart: 2,
  LineEnd: 3,
  WordBoundary: 4,
  NoWordBoundary: 5,
} as const
export type Assertion = (typeof Assertion)[keyof typeof Assertion]

export type Node =
  | { readonly kind: 'character'; readonly ranges: Ranges }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  | { readonly kind: 'group'; readonly index: number; readonly body: Node }
  | { readonly kind: 'sequence'; readonly items: readonly Node[] }
  | { readonly kind: 'alternation'; readonly items: readonly Node[] }
  | {
      readonly kind: 'repetition'
      readonly body: Node
      readonly min: number
      /** Infinity = no limit. */
      readonly max: number
      readonly isLazy: boolean
    }

interface ParsedPattern {
  readonly body: Node
  /** Names of the groups; entry 0 is the whole match. '' = the group has no name. */
  readonly groupNames: readonly string[]
}

/** A pattern that Go rejects, or that uses something that is not supported here. */
export class PatternError extends Error {}

const UNIT_MAX = 0xffff
const REPEAT_MAX = 1000
const DEPTH_MAX = 250
const LINE_FEED: Ranges = [[0x0a, 0x0a]]
const DIGITS: Ranges = [[0x30, 0x39]]
const LOWER_CASE: Ranges = [[0x61, 0x7a]]
const UPPER_CASE: Ranges = [[0x41, 0x5a]]
const LETTERS: Ranges = [...LOWER_CASE, ...UPPER_CASE]
const WORDS: Ranges = [...DIGITS, ...LETTERS, [0x5f, 0x5f]]
const SPACES: Ranges = [
  [0x09, 0x0a],
  [0x0c, 0x0d],
  [0x20, 0x20],
]
const PUNCTUATION: Ranges = [
  [0x21, 0x2f],
  [0x3a, 0x40],
  [0x5b, 0x60],
  [0x7b, 0x7e],
]
const PERL_CLASSES: ReadonlyMap<string, Ranges> = new Map([
  ['d', DIGITS],
  ['w', WORDS],
  ['s', SPACES],
])
const POSIX_CLASSES: ReadonlyMap<string, Ranges> = new Map<string, Ranges>([
  ['alnum', [...DIGITS, ...LETTERS]],
  ['alpha', LETTERS],
  ['ascii', [[0, 0x7f]]],
  [
    'blank',
    [
      [0x09, 0x09],
      [0x20, 0x20],
    ],
  ],
  [
    'cntrl',
    [
      [0, 0x1f],
      [0x7f, 0x7f],
    ],
  ],
  ['digit', DIGITS],
  ['graph', [[0x21, 0x7e]]],
  ['lower', LOWER_CASE],
  ['print', [[0x20, 0x7e]]],
  ['punct', PUNCTUATION],
  ['space', [...SPACES, [0x0b, 0x0b]]],
  ['upper', UPPER_CASE],
  ['word', WORDS],
  ['xdigit', [...DIGITS, [0x41, 0x46], [0x61, 0x66]]],
])
const CONTROL_ESCAPES: ReadonlyMap<string, number> = new Map([
  ['a', 0x07],
  ['f', 0x0c],
  ['t', 0x09],
  ['n', 0x0a],
  ['r', 0x0d],
  ['v', 0x0b],
])
const ASSERTION_ESCAPES: ReadonlyMap<string, Assertion> = new Map([
  ['A', Assertion.TextStart],
  ['z', Assertion.TextEnd],
  ['b', Assertion.WordBoundary],
  ['B', Assertion.NoWordBoundary],
])

/** The flags `(?imsU)`. */
interface Flags {
  ignoresCase: boolean
  isMultiline: boolean
  dotMatchesAll: boolean
  swapsGreed: boolean
}

/** Parses a pattern. Throws PatternError. */
export function parsePattern(pattern: string): ParsedPattern {
  const parser = new Parser(pattern)
  return { body: parser.parse(), groupNames: parser.groupNames }
}

class Parser {
  readonly groupNames: string[] = ['']
  readonly #text: string
  #at = 0
  #depth = 0
  #flags: Flags = {
    ignoresCase: false,
    isMultiline: false,
    dotMatchesAll: false,
    swapsGreed: false,
  }

  constructor(text: string) {
    this.#text = text
  }

  parse(): Node {
    const body = this.#alternation()
    if (this.#at < this.#text.length) throw new PatternError('unexpected )')
    return body
  }

  #alternation(): Node {
    const items = [this.#sequence()]
    while (this.#take('|')) items.push(this.#sequence())
    return items.length === 1 ? items[0]! : { kind: 'alternation', items }
  }

  #sequence(): Node {
    const items: Node[] = []
    for (;;) {
      const c = this.#text[this.#at]
      if (c === undefined || c === '|' || c === ')') break
      if (this.#take('\\Q')) items.push(...this.#quoted())
      else {
        const atom = this.#atom()
        if (atom !== undefined) items.push(atom)
      }
      if (this.#isRepetition()) items.push(this.#repetition(items.pop()))
    }
    return items.length === 1 ? items[0]! : { kind: 'sequence', items }
  }

  /** Undefined: flags, which match nothing. */
  #atom(): Node | undefined {
    const start = this.#at
    const c = this.#text[this.#at++]!
    const { isMultiline, dotMatchesAll } = this.#flags
    switch (c) {
      case '(':
        return this.#group()
      case '[':
        return this.#character(this.#class())
      case '.':
        return this.#character(dotMatchesAll ? [[0, UNIT_MAX]] : complement(LINE_FEED))
      case '^':
        return assertion(isMultiline ? Assertion.LineStart : Assertion.TextStart)
      case '$':
        return assertion(isMultiline ? Assertion.LineEnd : Assertion.TextEnd)
      case '*':
      case '+':
      case '?':
        throw new PatternError(`missing argument to repetition operator: ${c}`)
      case '\\':
        this.#at = start
        return this.#escapedAtom()
      default:
        return this.#literal(c.charCodeAt(0))
    }
  }

  #escapedAtom(): Node {
    const letter = this.#text[this.#at + 1] ?? ''
    const asserted = ASSERTION_ESCAPES.get(letter)
    if (asserted !== undefined) {
      this.#at += 2
      return assertion(asserted)
    }
    const ranges = this.#perlClass()
    return ranges === undefined ? this.#literal(this.#escape()) : this.#character(ranges)
  }

  #literal(unit: number): Node {
    return this.#character([[unit, unit]])
  }

  #character(ranges: Ranges): Node {
    return { kind: 'character', ranges: this.#flags.ignoresCase ? foldCase(ranges) : ranges }
  }

  #quoted(): Node[] {
    const end = this.#text.indexOf('\\E', this.#at)
    const text = this.#text.slice(this.#at, end === -1 ? undefined : end)
    this.#at = end === -1 ? this.#text.length : end + 2
    return Array.from({ length: text.length }, (_, i) => this.#literal(text.charCodeAt(i)))
  }

  #group(): Node | undefined {
    if (++this.#depth > DEPTH_MAX) throw new PatternError('expression nests too deeply')
    const flags = { ...this.#flags }
    let index = -1
    if (this.#take('?')) {
      const name = this.#groupName()
      if (name !== undefined) index = this.groupNames.push(name) - 1
      else if (this.#scanFlags() === ')') {
        this.#depth--
        return undefined
      }
    } else index = this.groupNames.push('') - 1
    const body = this.#alternation()
    if (!this.#take(')')) throw new PatternError('missing closing )')
    this.#depth--
    this.#flags = flags
    return index === -1 ? body : { kind: 'group', index, body }
  }

  #groupName(): string | undefined {
    const found = /^P?<(\w+)>/.exec(this.#text.slice(this.#at, this.#at + 200))
    if (found === null) return undefined
    this.#at += found[0].length
    return found[1]!
  }

  /** Reads `i-s:` or `i-s)`, behind `(?`; returns the last character. */
  #scanFlags(): string {
    const start = this.#at
    let on = true
    let count = 0
    for (;;) {
      const c = this.#text[this.#at++]
      if (c === ':' || c === ')') {
        if (!on && count === 0) break
        return c
      }
      if (c === '-' && on) {
        on = false
        count = 0
        continue
      }
      if (c === 'i') this.#flags.ignoresCase = on
      else if (c === 'm') this.#flags.isMultiline = on
      else if (c === 's') this.#flags.dotMatchesAll = on
      else if (c === 'U') this.#flags.swapsGreed = on
      else break
      count++
    }
    const syntax = `(?${this.#text.slice(start, this.#at)}`
    throw new PatternError(`invalid or unsupported Perl syntax: ${syntax}`)
  }

  #isRepetition(): boolean {
    const c = this.#text[this.#at]
    if (c === '*' || c === '+' || c === '?') return true
    return c === '{' && this.#bounds() !== null
  }

  #bounds(): RegExpExecArray | null {
    return /^\{(\d{1,9})(?:(,)(\d{1,9})?)?\}/.exec(this.#text.slice(this.#at, this.#at + 24))
  }

  #repetition(body: Node | undefined): Node {
    const start = this.#at
    const bounds = this.#bounds()
    const c = this.#text[this.#at]!
    this.#at += bounds === null ? 1 : bounds[0].length
    if (body === undefined) {
      const operator = this.#text.slice(start, this.#at)
      throw new PatternError(`missing argument to repetition operator: ${operator}`)
    }
    let min = c === '+' ? 1 : 0
    let max = c === '?' ? 1 : Number.POSITIVE_INFINITY
    if (bounds !== null) {
      min = Number(bounds[1])
      if (bounds[2] === undefined) max = min
      else if (bounds[3] !== undefined) max = Number(bounds[3])
      if (min > REPEAT_MAX || (max > REPEAT_MAX && Number.isFinite(max)) || min > max) {
        throw new PatternError(`invalid repeat count: ${bounds[0]}`)
      }
    }
    const isLazy = this.#take('?') !== this.#flags.swapsGreed
    if (this.#isRepetition()) {
      const end = this.#at + (this.#bounds()?.[0].length ?? 1)
      const operators = this.#text.slice(start, end)
      throw new PatternError(`invalid nested repetition operator: ${operators}`)
    }
    return { kind: 'repetition', body, min, max, isLazy }
  }

  /** Reads a class behind its `[`. */
  #class(): Ranges {
    const start = this.#at - 1
    const isNegated = this.#take('^')
    const ranges: (readonly [number, number])[] = []
    for (let isFirst = true; isFirst || this.#text[this.#at] !== ']'; isFirst = false) {
      if (this.#at >= this.#text.length) {
        throw new PatternError(`missing closing ]: ${this.#text.slice(start)}`)
      }
      const named = this.#posixClass() ?? this.#perlClass()
      if (named === undefined) ranges.push(this.#range())
      else ranges.push(...named)
    }
    this.#at++
    const folded = this.#flags.ignoresCase ? foldCase(ranges) : ranges
    return isNegated ? complement(folded) : folded
  }

  #range(): readonly [number, number] {
    const start = this.#at
    const first = this.#classCharacter()
    if (this.#text[this.#at] !== '-' || this.#text[this.#at + 1] === ']') return [first, first]
    if (this.#at + 1 >= this.#text.length) return [first, first]
    this.#at++
    const last = this.#classCharacter()
    if (last >= first) return [first, last]
    const range = this.#text.slice(start, this.#at)
    throw new PatternError(`invalid character class range: ${range}`)
  }

  #classCharacter(): number {
    return this.#text[this.#at] === '\\' ? this.#escape() : this.#text.charCodeAt(this.#at++)
  }

  /** `[:alpha:]`, `[:^alpha:]`. */
  #posixClass(): Ranges | undefined {
    const found = /^\[:(\^?)(.*?):\]/.exec(this.#text.slice(this.#at, this.#at + 64))
    if (found === null) return undefined
    const ranges = POSIX_CLASSES.get(found[2]!)
    if (ranges === undefined) throw new PatternError(`invalid character class range: ${found[0]}`)
    this.#at += found[0].length
    return found[1] === '' ? ranges : complement(ranges)
  }

  /** `\d`, `\D` and the like. */
  #perlClass(): Ranges | undefined {
    if (this.#text[this.#at] !== '\\') return undefined
    const letter = this.#text[this.#at + 1] ?? ''
    if (letter === 'p' || letter === 'P') {
      throw new PatternError(`Unicode classes are not supported: \\${letter}; list the characters`)
    }
    const ranges = PERL_CLASSES.get(letter.toLowerCase())
    if (ranges === undefined) return undefined
    this.#at += 2
    return letter === letter.toLowerCase() ? ranges : complement(ranges)
  }

  /** Reads an escape that stands for one character; the current one is the backslash. */
  #escape(): number {
    const rest = this.#text.slice(this.#at, this.#at + 12)
    const letter = rest[1]
    if (letter === undefined) throw new PatternError('trailing backslash at end of expression')
    const control = CONTROL_ESCAPES.get(letter)
    if (control !== undefined) {
      this.#at += 2
      return control
    }
    const hex = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(rest)
    const octal = /^\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest)
    const numeric = hex ?? octal
    if (numeric !== null) {
      this.#at += numeric[0].length
      const unit =
        hex === null
          ? Number.parseInt(numeric[0].slice(1), 8)
          : Number.parseInt(hex[1] ?? hex[2]!, 16)
      if (unit <= UNIT_MAX) return unit
      throw new PatternError(`characters above U+FFFF are not supported: ${numeric[0]}`)
    }
    if (/[0-9A-Za-z]/.test(letter) || letter > '\x7f') {
      const isReference = /[1-9]/.test(letter)
      const reason = isReference ? ': back-references are not supported' : ''
      throw new PatternError(`invalid escape sequence: \\${letter}${reason}`)
    }
    this.#at += 2
    return letter.charCodeAt(0)
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }
}

function assertion(assertion: Assertion): Node {
  return { kind: 'assertion', assertion }
}

function complement(ranges: Ranges): Ranges {
  const sorted = ranges.toSorted(([a], [b]) => a - b)
  const others: (readonly [number, number])[] = []
  let next = 0
  for (const [first, last] of sorted) {
    if (first > next) others.push([next, first - 1])
    next = Math.max(next, last + 1)
  }
  if (next <= UNIT_MAX) others.push([next, UNIT_MAX])
  return others
}

/** A to Z and a to z, and the distance to the other case. */
const CASES = [
  [0x41, 0x5a, 0x20],
  [0x61, 0x7a, -0x20],
] as const

/** Adds the other case of each ASCII letter. */
function foldCase(ranges: Ranges): Ranges {
  const folded = [...ranges]
  for (const [first, last] of ranges) {
    for (const [a, z, shift] of CASES) {
      const from = Math.max(first, a)
      const to = Math.min(last, z)
      if (from <= to) folded.push([from + shift, to + shift])
    }
  }
  return folded
}
