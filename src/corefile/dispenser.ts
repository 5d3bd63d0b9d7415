import { InputError, InputErrors, type Position } from '../base/errors.ts'
import { didYouMean } from '../base/nearest.ts'
import { continuesLine, type Token } from './token.ts'

export type { Token }

/**
 * Iterates over the tokens of one directive, as CoreDNS's (Caddy's) dispenser does. Starts before
 * the first token. The directive's own name is the first token of each occurrence.
 */
export class Dispenser {
  readonly #tokens: readonly Token[]
  #cursor = -1
  #nesting = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  /** Moves to the next token on any line; false at the end. */
  next(): boolean {
    if (this.#cursor >= this.#tokens.length - 1) return false
    this.#cursor++
    return true
  }

  /**
   * Moves to the next token if it is on the same line. `{` counts as a token here. The `}` of a
   * block ends a line, so a whole block may be on one line: `errors { stacktrace }`.
   */
  nextArg(): boolean {
    const current = this.#tokens[this.#cursor]
    const following = this.#tokens[this.#cursor + 1]
    if (following === undefined) return false
    if (current !== undefined && !continuesLine(current, following)) return false
    if (this.#nesting > 0 && following.text === '}') return false
    this.#cursor++
    return true
  }

  /**
   * `while (d.nextBlock())` visits the first token of each line inside `{ … }`. Does nothing if no
   * block follows. Read a line's arguments with `nextArg` or `remainingArgs`. Throws InputError at
   * a token after the `}`: it would belong to no directive.
   */
  nextBlock(): boolean {
    if (this.#nesting > 0) {
      // The parser balances braces, but a directive may have read past the closing one.
      const more = this.next()
      if (more && this.value() !== '}') return true
      this.#nesting--
      if (more) this.#endBlock()
      return false
    }
    if (!this.nextArg()) return false
    if (this.value() !== '{') {
      this.#cursor--
      return false
    }
    this.next()
    if (this.value() === '}') {
      this.#endBlock()
      return false
    }
    this.#nesting++
    return true
  }

  /** Rejects tokens after the current `}` on its line. */
  #endBlock(): void {
    if (!this.nextArg()) return
    throw this.error(`Unexpected token '${this.value()}' after '}'; write it on a line of its own`)
  }

  /** Rejects a block after the current line, for directives that accept none. */
  noBlock(): void {
    if (this.nextBlock()) throw this.unknownProperty(this.value(), [])
  }

  /**
   * Calls `scan` at each line that `nextBlock` visits. If `scan` rejects a line with an InputError,
   * the scan continues, so the faults of all lines are thrown together at the end of the block. A
   * line may have its own block, for another `eachProperty`.
   */
  eachProperty(scan: () => void): void {
    const faults: InputError[] = []
    const outer = this.#nesting
    this.#nesting = 0
    for (;;) {
      try {
        if (!this.nextBlock()) break
        scan()
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        faults.push(...error.all())
        this.#skipLine()
      }
    }
    this.#nesting = outer
    const [first, ...others] = faults
    if (first === undefined) return
    throw others.length === 0 ? first : new InputErrors(first, others)
  }

  /** Moves to the last token of the line, and of a block that opens on it. */
  #skipLine(): void {
    let depth = 0
    while (depth > 0 ? this.next() : this.nextArg()) {
      if (this.value() === '{') depth++
      else if (this.value() === '}') depth--
    }
  }

  /** Text of the current token; '' before the first. */
  value(): string {
    return this.#tokens[this.#cursor]?.text ?? ''
  }

  /**
   * All further tokens of this line, up to a `{`. Throws InputError if they are fewer than `min` or
   * more than `max`.
   */
  remainingArgs(min = 0, max: number = Number.POSITIVE_INFINITY): string[] {
    const args: string[] = []
    while (this.nextArg()) {
      if (this.value() === '{') {
        this.#cursor--
        break
      }
      args.push(this.value())
    }
    if (args.length < min || args.length > max) throw this.argError()
    return args
  }

  /** The only further argument of this line. Throws InputError if there are none or several. */
  onlyArg(): string {
    return this.remainingArgs(1, 1)[0]!
  }

  /** Rejects further arguments of this line, for directives and properties that accept none. */
  noArgs(): void {
    this.remainingArgs(0, 0)
  }

  /** Whether a token of the current line was in double quotes. */
  isQuoted(): boolean {
    const { file, line } = this.position()
    return this.#tokens.some((token) => {
      return token.isQuoted === true && token.line === line && token.file === file
    })
  }

  position(): Position {
    const token = this.#tokens[Math.max(0, this.#cursor)]
    return { file: token?.file ?? '', line: token?.line ?? 0 }
  }

  /** `FILE:LINE - Error during parsing: MSG`, ready to throw. */
  error(message: string): InputError {
    const { file, line } = this.position()
    return new InputError(this.position(), `${file}:${line} - Error during parsing: ${message}`)
  }

  /** Error for a property that is not in `known`, ready to throw. */
  unknownProperty(name: string, known: Iterable<string>): InputError {
    return this.error(`unknown property '${name}'${didYouMean(name, known)}`)
  }

  /** Wrong argument count or unexpected line ending. */
  argError(): InputError {
    if (this.value() === '{') return this.error("Unexpected token '{', expecting argument")
    return this.error(`Wrong argument count or unexpected line ending after '${this.value()}'`)
  }
}
