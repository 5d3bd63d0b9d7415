import { InputError } from '../base/errors.ts'
import type { Token } from './token.ts'

/** Longest token, in characters. A longer one is most likely a quote without an end. */
const TOKEN_LENGTH_MAX = 65_536

/**
 * Splits the text of a Corefile into tokens, as CoreDNS does:
 *
 * - Tokens are separated by Unicode white space. A `\r` outside quotes is ignored.
 * - `"` opens a quoted token, but only at the start of a token. Inside, `\"` is a quote and every
 *   other backslash is literal. It may span lines, and the end of the file ends it.
 * - `#` outside quotes starts a comment, to the end of the line. Inside a token (`foo#bar`) it cuts
 *   only the rest of that token.
 * - `{` and `}` are tokens like any other, so they need white space around them.
 *
 * Every token contains `file`. Throws InputError at a token longer than TOKEN_LENGTH_MAX or with a
 * NUL. Any other text is accepted.
 */
export function scanTokens(text: string, file: string): Token[] {
  const scanner = new Scanner(text, file)
  const tokens: Token[] = []
  for (let token = scanner.next(); token !== undefined; token = scanner.next()) tokens.push(token)
  return tokens
}

class Scanner {
  readonly #text: string
  readonly #file: string
  #at = 0
  #line = 1
  /** Where the token being read starts. */
  #tokenLine = 1

  constructor(text: string, file: string) {
    // A byte order mark is not part of the text.
    this.#text = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
    this.#file = file
  }

  next(): Token | undefined {
    this.#skipToToken()
    const text = this.#text
    if (this.#at >= text.length) return undefined
    const line = this.#line
    this.#tokenLine = line
    if (text[this.#at] !== '"') return { text: this.#word(), file: this.#file, line }
    this.#at++
    const quoted = this.#quoted()
    return quoted === undefined
      ? undefined
      : { text: quoted, file: this.#file, line, isQuoted: true }
  }

  #skipToToken(): void {
    let comment = false
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text[this.#at]!
      if (c === '\n') {
        this.#line++
        comment = false
      } else if (c === '#') comment = true
      else if (!comment && !isSpace(c)) return
    }
  }

  /** The unquoted token that starts here. Stops before white space. */
  #word(): string {
    let word = ''
    let comment = false
    for (; this.#at < this.#text.length; this.#at++) {
      const c = this.#text[this.#at]!
      if (c === '\r') continue
      if (isSpace(c)) break
      if (c === '#') comment = true
      if (comment) continue
      if (c === '\0') throw this.#hasNull()
      word += c
      if (word.length > TOKEN_LENGTH_MAX) throw this.#tooLong(word)
    }
    return word
  }

  /** An error at the line where the token starts. It quotes only a part of the token. */
  #tooLong(read: string): InputError {
    const position = { file: this.#file, line: this.#tokenLine }
    const start = JSON.stringify(read.slice(0, 20))
    const what = `a word has more than ${TOKEN_LENGTH_MAX} characters; it starts with ${start}`
    const message = `${position.file}:${position.line} - Error during parsing: ${what}; is a quote missing?`
    return new InputError(position, message)
  }

  /** No path, name or number has a NUL. A file in UTF-16 has many. */
  #hasNull(): InputError {
    const position = { file: this.#file, line: this.#line }
    const message = `${position.file}:${position.line} - Error during parsing: a NUL character; save the file as UTF-8 text`
    return new InputError(position, message)
  }

  /** The rest of a quoted token. An empty one counts only if it has a closing quote. */
  #quoted(): string | undefined {
    let quoted = ''
    while (this.#at < this.#text.length) {
      const c = this.#text[this.#at++]!
      if (c === '"') return quoted
      const escaped = c === '\\' ? this.#text[this.#at++] : undefined
      if (c === '\\' && escaped === undefined) break
      if (c === '\n' || escaped === '\n') this.#line++
      if (c === '\0' || escaped === '\0') throw this.#hasNull()
      if (escaped === undefined) quoted += c
      else quoted += escaped === '"' ? '"' : `\\${escaped}`
      if (quoted.length > TOKEN_LENGTH_MAX) throw this.#tooLong(quoted)
    }
    return quoted === '' ? undefined : quoted
  }
}

/** White space as Unicode's White_Space property has it; JavaScript's `\s` differs in two places. */
function isSpace(c: string): boolean {
  if (c <= ' ') return c === ' ' || (c >= '\t' && c <= '\r')
  return c >= '\u0085' && /[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.test(c)
}
