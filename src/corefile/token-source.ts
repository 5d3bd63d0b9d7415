import { InputError, type Position } from '../base/errors.ts'
import { continuesLine, startsLine, type Token } from './token.ts'

/**
 * The tokens of a parse: those already read, the current one last, and those that follow. An import
 * puts its tokens in front of those that follow. So its cost depends on the imported tokens, not on
 * the size of the file.
 *
 *     read: k . : 5 3 {  import            pending: } other {
 *                        └ current                  └ next
 */
export class TokenSource {
  readonly #file: string
  readonly #read: Token[] = []
  /** In reverse order: the last one is next. */
  readonly #pending: Token[]
  /** After an import without tokens, the cursor may be after the last token. */
  #past = false

  constructor(file: string, tokens: readonly Token[]) {
    this.#file = file
    this.#pending = tokens.toReversed()
  }

  /** Moves to the next token. At the end, does not move and returns false. */
  next(): boolean {
    const token = this.#pending.pop()
    if (token === undefined) return false
    this.#read.push(token)
    return true
  }

  /** Moves to the next token if it is on the line on which the current one ends. */
  nextArg(): boolean {
    const following = this.#pending.at(-1)
    const current = this.current()
    if (following === undefined) return false
    if (current !== undefined && !continuesLine(current, following)) return false
    return this.next()
  }

  /** Moves back by one token. */
  back(): void {
    if (this.#past) this.#past = false
    else this.#unread()
  }

  /** Replaces the current token and the one before it by `tokens`, and moves to the first of them. */
  replacePair(tokens: readonly Token[]): void {
    this.#read.pop()
    this.#read.pop()
    for (let i = tokens.length - 1; i >= 0; i--) this.#pending.push(tokens[i]!)
    this.#past = !this.next()
  }

  /** The current token; undefined before the first and after the last. */
  current(): Token | undefined {
    return this.#past ? undefined : this.#read.at(-1)
  }

  value(): string {
    return this.current()?.text ?? ''
  }

  /** Whether the current token starts a line. */
  isNewLine(): boolean {
    if (this.#past) return false
    const current = this.#read.at(-1)
    const previous = this.#read.at(-2)
    return current === undefined || previous === undefined || startsLine(previous, current)
  }

  position(): Position {
    const token = this.current()
    return token === undefined ? { file: this.#file, line: 0 } : token
  }

  /** `FILE:LINE - Error during parsing: MSG`, ready to throw. */
  error(message: string): InputError {
    return this.#fault(`Error during parsing: ${message}`)
  }

  /** `FILE:LINE - Syntax error: Unexpected token 'X', expecting 'Y'`, ready to throw. */
  syntaxError(expected: string): InputError {
    return this.#fault(`Syntax error: Unexpected token '${this.value()}', expecting '${expected}'`)
  }

  #fault(message: string): InputError {
    const { file, line } = this.position()
    return new InputError({ file, line }, `${file}:${line} - ${message}`)
  }

  #unread(): void {
    const token = this.#read.pop()
    if (token !== undefined) this.#pending.push(token)
  }
}
