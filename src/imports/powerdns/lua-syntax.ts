/** A Lua expression of those that LUA records are made of. */
export type LuaValue =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'number'; readonly number: number }
  | { readonly kind: 'boolean'; readonly isTrue: boolean }
  | { readonly kind: 'table'; readonly entries: readonly LuaEntry[] }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly LuaValue[] }
  | { readonly kind: 'or'; readonly parts: readonly LuaValue[] }

/** An item of a table. `key`: undefined = its position is its key. */
interface LuaEntry {
  readonly key: string | undefined
  readonly value: LuaValue
}

/** What a script returns to the clients that meet a condition. */
export interface LuaBranch {
  /** Undefined = for all other clients. */
  readonly condition: LuaValue | undefined
  readonly value: LuaValue
}

/** A script that is not of the form that can be read. */
export class LuaFault extends Error {}

/** Bounds on one script: LUA records are short, and a table may contain tables. */
const CHARACTERS_MAX = 65_535
const DEPTH_MAX = 16

type TokenKind = 'name' | 'text' | 'number' | 'sign' | 'end'
interface Token {
  readonly kind: TokenKind
  readonly text: string
}

const SPACE = /(?:\s|--[^\n]*\n)*/y
const TOKENS: readonly (readonly [TokenKind, RegExp])[] = [
  ['name', /[A-Za-z_][A-Za-z0-9_]*/y],
  ['number', /\d+(?:\.\d+)?/y],
  ['text', /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y],
  ['sign', /\.\.|==|~=|<=|>=|[^\s\w]/y],
]
const END: Token = { kind: 'end', text: 'the end of the script' }

/**
 * Reads the script of a LUA record: an expression, or after `;` statements of the form
 * `if CONDITION then return VALUE elseif … else return VALUE end`, or `return VALUE`. Returns the branches in their
 * order. Throws LuaFault for all other programs.
 */
export function parseLuaScript(script: string): readonly LuaBranch[] {
  if (script.length > CHARACTERS_MAX) throw new LuaFault('the script is too long')
  const isProgram = script.trimStart().startsWith(';')
  const parser = new Parser(tokensOf(isProgram ? script.replace(';', ' ') : script))
  return isProgram ? parser.program() : parser.expressionOnly()
}

/** A comment ends with its line. */
function tokensOf(line: string): readonly Token[] {
  const script = `${line}\n`
  const tokens: Token[] = []
  for (let at = 0; ; ) {
    SPACE.lastIndex = at
    at += SPACE.exec(script)?.[0].length ?? 0
    if (at === script.length) return tokens
    const token = tokenAt(script, at)
    if (token === undefined) throw new LuaFault(`unexpected ${JSON.stringify(script[at])}`)
    tokens.push(token)
    at += token.text.length
  }
}

function tokenAt(script: string, at: number): Token | undefined {
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = at
    const [text] = pattern.exec(script) ?? []
    if (text !== undefined) return { kind, text }
  }
  return undefined
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  expressionOnly(): readonly LuaBranch[] {
    if (this.#is('return')) this.#at++
    const value = this.#value()
    this.#finish()
    return [{ condition: undefined, value }]
  }

  program(): readonly LuaBranch[] {
    const branches: LuaBranch[] = []
    while (this.#is('if')) branches.push(...this.#conditional())
    if (this.#is('return')) branches.push({ condition: undefined, value: this.#return() })
    this.#finish()
    return branches
  }

  #conditional(): readonly LuaBranch[] {
    const branches: LuaBranch[] = []
    do {
      this.#at++
      const condition = this.#value()
      this.#take('then')
      branches.push({ condition, value: this.#return() })
    } while (this.#is('elseif'))
    if (this.#is('else')) {
      this.#at++
      branches.push({ condition: undefined, value: this.#return() })
    }
    this.#take('end')
    this.#skip(';')
    return branches
  }

  #return(): LuaValue {
    this.#take('return')
    const value = this.#value()
    this.#skip(';')
    return value
  }

  /** `PART or PART…` */
  #value(): LuaValue {
    if (++this.#depth > DEPTH_MAX) throw new LuaFault('the script is nested too deeply')
    const parts = [this.#part()]
    while (this.#is('or')) {
      this.#at++
      parts.push(this.#part())
    }
    this.#depth--
    return parts.length === 1 ? parts[0]! : { kind: 'or', parts }
  }

  #part(): LuaValue {
    const token = this.#next()
    switch (token.kind) {
      case 'text':
        return { kind: 'text', text: unescapeLua(token.text.slice(1, -1)) }
      case 'number':
        return { kind: 'number', number: Number(token.text) }
      case 'sign':
        if (token.text === '{') return this.#table()
        if (token.text === '(') return this.#inParentheses()
        throw unexpected(token)
      case 'name':
        return this.#named(token)
      default:
        throw unexpected(token)
    }
  }

  #inParentheses(): LuaValue {
    const value = this.#value()
    this.#take(')')
    return value
  }

  #named(token: Token): LuaValue {
    if (token.text === 'true' || token.text === 'false') {
      return { kind: 'boolean', isTrue: token.text === 'true' }
    }
    // A call may leave out the parentheses around one text or table.
    const { kind, text } = this.#peek()
    if (kind === 'text' || text === '{')
      return { kind: 'call', name: token.text, args: [this.#part()] }
    if (text !== '(') throw new LuaFault(`${printToken(token)} has no equivalent`)
    this.#at++
    const args: LuaValue[] = []
    while (!this.#is(')')) {
      args.push(this.#value())
      if (!this.#is(')')) this.#take(',')
    }
    this.#at++
    return { kind: 'call', name: token.text, args }
  }

  #table(): LuaValue {
    const entries: LuaEntry[] = []
    while (!this.#is('}')) {
      entries.push({ key: this.#key(), value: this.#value() })
      if (!this.#skip(',') && !this.#skip(';') && !this.#is('}')) throw unexpected(this.#peek())
    }
    this.#at++
    return { kind: 'table', entries }
  }

  /** Reads `NAME =` or `['TEXT'] =`; undefined = the item has no key. */
  #key(): string | undefined {
    const { kind, text } = this.#peek()
    const after = this.#tokens[this.#at + 1]
    if (kind === 'name' && after?.text === '=') {
      this.#at += 2
      return text
    }
    if (text !== '[' || after?.kind !== 'text') return undefined
    this.#at += 2
    this.#take(']')
    this.#take('=')
    return unescapeLua(after.text.slice(1, -1))
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? END
  }

  #next(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }

  /** True for a sign or a word that is not quoted. */
  #is(text: string): boolean {
    const token = this.#peek()
    return token.kind !== 'text' && token.kind !== 'end' && token.text === text
  }

  #skip(text: string): boolean {
    if (!this.#is(text)) return false
    this.#at++
    return true
  }

  #take(text: string): void {
    if (!this.#skip(text))
      throw new LuaFault(`${printToken(this.#peek())} where ${text} is expected`)
  }

  #finish(): void {
    this.#skip(';')
    if (this.#at < this.#tokens.length) throw unexpected(this.#peek())
  }
}

function unexpected(token: Token): LuaFault {
  const isEnd = token.kind === 'end'
  return new LuaFault(isEnd ? 'the script ends too early' : `unexpected ${printToken(token)}`)
}

function printToken({ kind, text }: Token): string {
  return kind === 'end' ? text : JSON.stringify(text)
}

function unescapeLua(text: string): string {
  return text.replace(/\\([\s\S])/g, '$1')
}
