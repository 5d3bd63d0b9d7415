import { InputError, type Position } from '../base/errors.ts'
import { didYouMean } from '../base/nearest.ts'
import { type Environment, substitute } from './environment.ts'
import { Importer } from './importer.ts'
import { scanTokens } from './lexer.ts'
import type { Token } from './token.ts'
import { TokenSource } from './token-source.ts'

/** One server block: `keys { directives }`. */
export interface ServerBlock {
  /** As written, with variables substituted. At least one. */
  readonly keys: readonly Token[]
  /**
   * Tokens of each directive by its name, in order of first appearance; repeats of a directive are
   * concatenated, so its name starts each of them.
   */
  readonly directives: ReadonlyMap<string, readonly Token[]>
}

/** The names of the directives that any of the blocks has. */
export function namedDirectives(blocks: readonly ServerBlock[]): ReadonlySet<string> {
  return new Set(blocks.flatMap(({ directives }) => [...directives.keys()]))
}

export interface ParseOptions {
  readonly env: Environment
  /** Every name that may be a directive; undefined = any. */
  readonly directiveNames?: readonly string[]
  /** Returns further names that may be directives of a block. `directives`: what the block has so far. */
  readonly declaredNames?:
    | ((directives: ServerBlock['directives']) => readonly string[])
    | undefined
  /** Called with each unknown directive; parsing continues. If absent, the first one is thrown. */
  readonly onUnknown?: (error: InputError) => void
  /** Called with warnings such as `No files matching import glob pattern: x`. */
  readonly warn?: (message: string) => void
  /** Called with each use of an environment variable that is not set, once per line. */
  readonly onUnset?: (unset: UnsetVariable) => void
}

/** A use of an environment variable that is not set: an empty text replaces it. */
export interface UnsetVariable {
  /** As written: `{$NAME}`. */
  readonly variable: string
  readonly position: Position
}

/** Returns `error` with the names of unset variables in its line: they are the likely cause. */
export function nameUnset(error: InputError, unset: readonly UnsetVariable[]): InputError {
  const { position, message } = error
  const names = unset
    .filter(({ position: at }) => at.file === position?.file && at.line === position.line)
    .map(({ variable }) => variable)
  if (names.length === 0) return error
  const verb = names.length === 1 ? 'is' : 'are'
  return new InputError(position, `${message} (${names.join(', ')} ${verb} not set)`, error)
}

/**
 * Parses a Corefile into server blocks, with imports, snippets and variables resolved. Accepts and
 * rejects what CoreDNS does. `file`: path of the text; imports are relative to it, and errors
 * contain it. An empty text returns no block. Throws InputError `FILE:LINE - …` at the first fault.
 */
export function parseCorefile(text: string, file: string, options: ParseOptions): ServerBlock[] {
  const parser = new Parser(text, file, options)
  try {
    return parser.parseAll()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    throw nameUnset(error, parser.unset)
  }
}

class Parser {
  readonly #source: TokenSource
  readonly #options: ParseOptions
  readonly #importer: Importer
  readonly unset: UnsetVariable[] = []
  #keys: Token[] = []
  #directives = new Map<string, Token[]>()

  constructor(text: string, file: string, options: ParseOptions) {
    this.#source = new TokenSource(file, scanTokens(text, file))
    this.#options = options
    this.#importer = new Importer(this.#source, (value) => this.#substitute(value), options.warn)
  }

  parseAll(): ServerBlock[] {
    const blocks: ServerBlock[] = []
    while (this.#source.next()) {
      this.#keys = []
      this.#directives = new Map()
      this.#parseBlock()
      if (this.#keys.length > 0) blocks.push({ keys: this.#keys, directives: this.#directives })
    }
    return blocks
  }

  #parseBlock(): void {
    // A file that ends after its keys has one block without directives.
    if (!this.#parseKeys()) return
    const snippet = this.#snippetName()
    if (snippet === undefined) this.#parseBody()
    else {
      this.#importer.define(snippet, () => this.#snippetTokens())
      this.#keys = []
    }
  }

  /** Reads keys up to the token after them. Returns false at the end of the input. */
  #parseKeys(): boolean {
    const source = this.#source
    let expectingAnother = false
    for (;;) {
      const text = this.#substitute(source.value())
      if (text === 'import' && source.isNewLine()) {
        this.#importer.import()
        continue
      }
      if (text === '{') {
        if (!expectingAnother) return true
        throw source.error(`Expected another address but had '{' - check for extra comma`)
      }
      if (text !== '') {
        expectingAnother = text.endsWith(',')
        this.#keys.push({ ...source.position(), text: expectingAnother ? text.slice(0, -1) : text })
      }
      if (!source.next()) {
        if (expectingAnother) throw source.error('Unexpected EOF')
        return false
      }
      if (!expectingAnother && source.isNewLine()) return true
    }
  }

  /** `(name)` as the only key defines a snippet. */
  #snippetName(): string | undefined {
    const key = this.#keys[0]?.text ?? ''
    const isSnippet = this.#keys.length === 1 && key.startsWith('(') && key.endsWith(')')
    return isSnippet ? key.slice(1, -1) : undefined
  }

  /** Everything between the current `{` and its `}`. */
  #snippetTokens(): Token[] {
    const source = this.#source
    if (source.value() !== '{') throw source.syntaxError('{')
    const tokens: Token[] = []
    for (let depth = 1; source.next(); tokens.push(source.current()!)) {
      if (source.value() === '}') depth--
      if (depth === 0) return tokens
      if (source.value() === '{') depth++
    }
    throw source.syntaxError('}')
  }

  #parseBody(): void {
    const source = this.#source
    const braces = source.value() === '{'
    // Without braces, the rest of the file belongs to this block.
    if (!braces) source.back()
    this.#parseDirectives()
    if (braces && source.value() !== '}') throw source.syntaxError('}')
  }

  #parseDirectives(): void {
    const source = this.#source
    while (source.next()) {
      if (source.value() === '}') return
      if (source.value() === 'import') {
        this.#importer.import()
        source.back()
      } else this.#parseDirective()
    }
  }

  /** Reads one directive: to the end of its line, or of the braces that open on it. */
  #parseDirective(): void {
    const source = this.#source
    const tokens = this.#directiveTokens(this.#substitute(source.value()))
    tokens.push(source.current()!)
    let depth = 0
    while (source.next()) {
      const text = source.value()
      if (text === '{') depth++
      else if (depth === 0 && source.isNewLine()) {
        source.back()
        return
      } else if (text === '}') {
        if (depth === 0) throw source.error(`Unexpected '}' because no matching opening brace`)
        depth--
      } else if (text === 'import' && source.isNewLine()) {
        this.#importer.import()
        source.back()
        continue
      }
      tokens.push({ ...source.current()!, text: this.#substitute(text) })
    }
    if (depth > 0) throw source.error('Unexpected EOF')
  }

  /** The list to which tokens of directive `name` are added. */
  #directiveTokens(name: string): Token[] {
    const names = this.#options.directiveNames
    if (names !== undefined && !names.includes(name) && !this.#isDeclared(name)) {
      const error = this.#source.error(`Unknown directive '${name}'${didYouMean(name, names)}`)
      if (this.#options.onUnknown === undefined) throw error
      this.#options.onUnknown(nameUnset(error, this.unset))
      return []
    }
    const tokens = this.#directives.get(name) ?? []
    this.#directives.set(name, tokens)
    return tokens
  }

  #isDeclared(name: string): boolean {
    const declared = this.#options.declaredNames?.(this.#directives)
    return declared?.includes(name) === true
  }

  #substitute(text: string): string {
    const substituted = substitute(text, this.#options.env, (variable) => this.#noteUnset(variable))
    if (substituted !== undefined) return substituted
    throw this.#source.error(`environment variables in '${text}' refer to each other without end`)
  }

  #noteUnset(variable: string): void {
    const { file, line } = this.#source.position()
    const isKnown = this.unset.some(({ variable: known, position }) => {
      return known === variable && position.file === file && position.line === line
    })
    if (isKnown) return
    const unset = { variable, position: { file, line } }
    this.unset.push(unset)
    this.#options.onUnset?.(unset)
  }
}
