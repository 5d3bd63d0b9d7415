/**
 * Reads the YAML that kubectl, controllers and people write, fast: block mappings, block sequences, comments,
 * and on one line: scalars and flow collections. It gives up on anything else: anchors, tags, scalars over several
 * lines, tabs, odd indentation, duplicate keys, numbers other
 * than short decimal integers, and so on. Then the complete parser reads the document. It never
 * guesses: every value that it returns is the value of the YAML 1.2 core schema.
 */

/** A value of the YAML 1.2 core schema, or of JSON. */
export type YamlValue =
  | string
  | number
  | boolean
  | null
  | readonly YamlValue[]
  | { readonly [key: string]: YamlValue }

/** Deeper documents are left to the complete parser, which has its own bound. */
const DEPTH_MAX = 32
/** YAML limits implicit keys to 1024 characters; real keys are far below that. */
const KEY_CHARACTERS_MAX = 512
/** Integers with more decimal digits may be inexact. */
const DIGITS_MAX = 15

const NEWLINE = 0x0a
const SPACE = 0x20
const QUOTE = 0x22
const HASH = 0x23
const APOSTROPHE = 0x27
const COMMA = 0x2c
const DASH = 0x2d
const DOT = 0x2e
const DIGIT_9 = 0x39
const COLON = 0x3a
const BRACKET = 0x5b
const BACKSLASH = 0x5c
const BRACKET_END = 0x5d
const BRACE = 0x7b
const BRACE_END = 0x7d

/**
 * First characters of a plain scalar that have another meaning, or that need the complete parser.
 */
const NOT_PLAIN_FIRST = new Set([...'?:,[]{}#&*!|>\'"%@`'].map((c) => c.charCodeAt(0)))
const NOT_STRING_FIRST = new Set([...'tTfFnN~0123456789+-.'].map((c) => c.charCodeAt(0)))
const FLOW_INDICATORS = new Set([...',[]{}'].map((c) => c.charCodeAt(0)))
/**
 * Cache of plain keys, one per slot. Documents repeat a few dozen keys, and a new string as a
 * property name is expensive, because V8 searches it among all names.
 */
const RECENT_KEYS = 509
const recentKeys: string[] = new Array(RECENT_KEYS).fill('')

const NULLS = new Set(['~', 'null', 'Null', 'NULL'])
const BOOLEANS = new Map([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
])
/** Text that the core schema may read as a number or not-a-number. Matches little else. */
const NUMBER_LIKE =
  /^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$|^0x|^0o|^[-+]?\.(?:inf|nan)$/i

/**
 * Returns the value of one YAML document, or undefined if this scanner does not understand all of
 * it. `text`: one document, with or without its `---` line.
 */
export function scanBlockYaml(text: string): YamlValue | undefined {
  if (text.includes('\t') || text.includes('\r') || text.includes('\ufeff')) return undefined
  const scanner = new BlockScanner(text)
  const value = scanner.document()
  return scanner.failed ? undefined : value
}

/** One pass over one document. Every method sets `failed` if it does not understand the text. */
class BlockScanner {
  failed = false
  readonly #text: string
  /**
   * Offset of the first character of the current line's content, and its column; column -1 = end of
   * document.
   */
  #at = 0
  #column = -1
  /** End of the last scalar: the next character to read. */
  #end = 0
  #endedAtColon = false
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  document(): YamlValue {
    this.#nextLine(-1)
    if (this.#column === 0 && this.#text.startsWith('---', this.#at)) {
      this.#endLine(this.#at + 3)
    }
    if (this.failed || this.#atEnd()) return null
    if (this.#column !== 0 || this.#startsMarker()) return this.#giveUp()
    const value = this.#isItem(this.#at) ? this.#sequence(0) : this.#mapping(0)
    if (!this.#atEnd()) this.failed = true
    return value
  }

  #mapping(column: number): YamlValue {
    if (++this.#depth > DEPTH_MAX) return this.#giveUp()
    const mapping: { [key: string]: YamlValue } = {}
    do {
      const key = this.#key()
      // Names that every object has are given up too, because `in` is cheaper than a check for own
      // properties.
      if (this.failed || key in mapping) return this.#giveUp()
      mapping[key] = this.#valueOf(column)
      if (this.failed) return null
    } while (this.#column === column)
    if (this.#column > column) return this.#giveUp()
    this.#depth--
    return mapping
  }

  #sequence(column: number): YamlValue {
    if (++this.#depth > DEPTH_MAX) return this.#giveUp()
    // Most lists have one item. V8 makes room for 17 at the first `push`.
    const items: YamlValue[] = [this.#item(column)]
    while (!this.failed && this.#column === column && this.#isItem(this.#at)) {
      items.push(this.#item(column))
    }
    if (this.failed) return null
    if (this.#column > column) return this.#giveUp()
    this.#depth--
    return items
  }

  /** Reads the item whose dash is at the current position. */
  #item(column: number): YamlValue {
    const start = this.#skipSpaces(this.#at + 1)
    const c = this.#text.charCodeAt(start)
    if (start >= this.#text.length || c === NEWLINE || c === HASH) {
      this.#endLine(this.#at + 1)
      if (this.#column > column) return this.#block()
      return null
    }
    if (this.#isItem(start)) return this.#giveUp()
    if (this.#isKey(start)) {
      this.#column += start - this.#at
      this.#at = start
      return this.#mapping(this.#column)
    }
    return this.#scalar(start, column)
  }

  /** Reads the value of the last key, in a mapping at `column`. */
  #valueOf(column: number): YamlValue {
    const start = this.#skipSpaces(this.#end)
    const c = this.#text.charCodeAt(start)
    if (start < this.#text.length && c !== NEWLINE && c !== HASH) return this.#scalar(start, column)
    this.#endLine(this.#end)
    if (this.#column > column) return this.#block()
    // A sequence may start at the column of its key.
    if (this.#column === column && this.#isItem(this.#at)) return this.#sequence(column)
    return null
  }

  #block(): YamlValue {
    if (this.failed) return null
    return this.#isItem(this.#at) ? this.#sequence(this.#column) : this.#mapping(this.#column)
  }

  #key(): string {
    const start = this.#at
    if (this.#column === 0 && this.#startsMarker()) this.failed = true
    if (this.failed || !this.#isKey(start)) return String(this.#giveUp())
    return this.#keyFrom(start)
  }

  /** Returns the key between `start` and the colon at `#end`, and moves `#end` behind the colon. */
  #keyFrom(start: number): string {
    const c = this.#text.charCodeAt(start)
    const quoted = c === QUOTE || c === APOSTROPHE
    const length = this.#end - start
    const slot = (length * 31 + c * 7 + this.#text.charCodeAt(this.#end - 1)) % RECENT_KEYS
    const recent = recentKeys[slot]!
    if (!quoted && recent.length === length && this.#text.startsWith(recent, start)) {
      this.#end++
      return recent
    }
    const key = quoted ? this.#quoted(start) : this.#text.slice(start, this.#end)
    const odd = key.length > KEY_CHARACTERS_MAX || key === '__proto__' || key === '<<'
    const typed = !quoted && resolvesToOther(key)
    if (odd || typed || key.endsWith(' ')) return String(this.#giveUp())
    // A copy: a slice would keep the whole document in memory.
    if (!quoted) recentKeys[slot] = Buffer.from(key, 'utf8').toString('utf8')
    this.#end++
    return key
  }

  /** True if a key starts at `start` and its colon is on this line; sets `#end` to the colon. */
  #isKey(start: number): boolean {
    const c = this.#text.charCodeAt(start)
    if (c === QUOTE || c === APOSTROPHE) {
      this.#quoted(start)
      return this.#isColon(this.#end)
    }
    if (NOT_PLAIN_FIRST.has(c) || this.#isItem(start)) return false
    this.#skipPlain(start)
    return this.#endedAtColon
  }

  /**
   * Reads a scalar or a flow collection from `start` to the end of the line, inside a block at `column`.
   */
  #scalar(start: number, column: number): YamlValue {
    const value = this.#scalarAt(start)
    if (this.failed) return null
    this.#endLine(this.#end)
    // A deeper line would continue the scalar.
    if (this.#column > column) return this.#giveUp()
    return value
  }

  #scalarAt(start: number): YamlValue {
    const c = this.#text.charCodeAt(start)
    if (c === QUOTE || c === APOSTROPHE) return this.#quoted(start)
    if (c === BRACKET || c === BRACE) return this.#flow(start)
    return this.#plain(start)
  }

  /** Reads a flow collection that ends on this line; sets `#end` after its bracket. */
  #flow(start: number): YamlValue {
    if (++this.#depth > DEPTH_MAX) return this.#giveUp()
    const isMapping = this.#text.charCodeAt(start) === BRACE
    const end = isMapping ? BRACE_END : BRACKET_END
    this.#end = this.#skipSpaces(start + 1)
    const isEmpty = this.#text.charCodeAt(this.#end) === end
    const value = isMapping ? this.#flowMapping(isEmpty, end) : this.#flowItems(isEmpty, end)
    if (this.failed) return null
    this.#end++
    this.#depth--
    return value
  }

  #flowMapping(isEmpty: boolean, end: number): YamlValue {
    const mapping: { [key: string]: YamlValue } = {}
    if (isEmpty) return mapping
    do this.#flowEntry(mapping)
    while (this.#hasMore(end))
    return mapping
  }

  #flowItems(isEmpty: boolean, end: number): YamlValue {
    if (isEmpty) return []
    const items: YamlValue[] = [this.#flowValue(this.#end)]
    while (this.#hasMore(end)) items.push(this.#flowValue(this.#end))
    return items
  }

  /** Moves past a comma to the next entry; false at the end of the collection, or if it is not understood. */
  #hasMore(end: number): boolean {
    if (this.failed) return false
    const c = this.#text.charCodeAt(this.#end)
    if (c === COMMA) this.#end = this.#skipSpaces(this.#end + 1)
    else if (c !== end) this.#giveUp()
    return c === COMMA
  }

  #flowEntry(mapping: { [key: string]: YamlValue }): void {
    const start = this.#end
    const c = this.#text.charCodeAt(start)
    if (c === QUOTE || c === APOSTROPHE) this.#quoted(start)
    else this.#skipFlowPlain(start)
    if (this.failed || !this.#isColon(this.#end)) this.#giveUp()
    const key = this.failed ? '' : this.#keyFrom(start)
    if (this.failed || key in mapping) this.#giveUp()
    else mapping[key] = this.#flowValue(this.#skipSpaces(this.#end))
  }

  /** Reads a value inside a flow collection; sets `#end` to what follows it and spaces. */
  #flowValue(start: number): YamlValue {
    const c = this.#text.charCodeAt(start)
    let value: YamlValue
    if (c === QUOTE || c === APOSTROPHE) value = this.#quoted(start)
    else if (c === BRACKET || c === BRACE) value = this.#flow(start)
    else {
      this.#skipFlowPlain(start)
      let end = this.#end
      while (this.#text.charCodeAt(end - 1) === SPACE) end--
      value = this.failed ? null : this.#resolve(this.#text.slice(start, end))
    }
    this.#end = this.#skipSpaces(this.#end)
    return value
  }

  /** As `#skipPlain`, inside a flow collection: brackets and commas end a scalar too. */
  #skipFlowPlain(start: number): void {
    const text = this.#text
    const first = text.charCodeAt(start)
    if (NOT_PLAIN_FIRST.has(first)) this.#giveUp()
    let i = start
    for (; i < text.length; i++) {
      const c = text.charCodeAt(i)
      if (c === COMMA || c === BRACKET_END || c === BRACE_END || c === NEWLINE) break
      if (c === COLON && this.#isColon(i)) break
      // A colon before a bracket, a bracket inside, a comment: the complete parser knows.
      const isOdd = c === BRACKET || c === BRACE || c < SPACE
      const isComment = c === HASH && text.charCodeAt(i - 1) === SPACE
      if (isOdd || isComment || (c === COLON && FLOW_INDICATORS.has(text.charCodeAt(i + 1))))
        this.failed = true
    }
    if (first === DASH && (i === start + 1 || text.charCodeAt(start + 1) === SPACE)) this.#giveUp()
    this.#end = i
  }

  #plain(start: number): YamlValue {
    if (NOT_PLAIN_FIRST.has(this.#text.charCodeAt(start)) || this.#isItem(start))
      return this.#giveUp()
    this.#skipPlain(start)
    if (this.#endedAtColon) return this.#giveUp()
    let end = this.#end
    while (this.#text.charCodeAt(end - 1) === SPACE) end--
    // A comment that follows must have a space before it; `#end` before the spaces lets `#endLine`
    // check that.
    this.#end = end
    return this.#resolve(this.#text.slice(start, end))
  }

  #resolve(text: string): YamlValue {
    const first = text.charCodeAt(0)
    if (!NOT_STRING_FIRST.has(first)) return text
    if (first > DIGIT_9) {
      if (NULLS.has(text)) return null
      const boolean = BOOLEANS.get(text)
      if (boolean !== undefined) return boolean
    }
    if (isDecimal(text)) return Number(text)
    const isNumberLike = first < 0x40 && !hasTwoDots(text) && NUMBER_LIKE.test(text)
    return isNumberLike ? this.#giveUp() : text
  }

  /** Moves `#end` to the end of a plain scalar: a colon, a comment or the end of the line. */
  #skipPlain(start: number): void {
    const text = this.#text
    this.#endedAtColon = false
    let i = start
    for (; i < text.length; i++) {
      const c = text.charCodeAt(i)
      if (c === NEWLINE) break
      if (c === HASH && text.charCodeAt(i - 1) === SPACE) break
      if (c === COLON && this.#isColon(i)) {
        this.#endedAtColon = true
        break
      }
      if (c < SPACE) this.failed = true
    }
    this.#end = i
  }

  /** Reads a quoted scalar on one line; sets `#end` after the closing quote. */
  #quoted(start: number): string {
    const text = this.#text
    const quote = text.charCodeAt(start)
    let value = ''
    let from = start + 1
    for (let i = from; i < text.length; i++) {
      const c = text.charCodeAt(i)
      if (c < SPACE) break
      if (c === BACKSLASH && quote === QUOTE) {
        const escaped = text.charCodeAt(i + 1)
        if (escaped !== QUOTE && escaped !== BACKSLASH) break
        value += text.slice(from, i)
        from = ++i
      } else if (c === quote) {
        if (quote === QUOTE || text.charCodeAt(i + 1) !== APOSTROPHE) {
          this.#end = i + 1
          return from === start + 1 ? text.slice(from, i) : value + text.slice(from, i)
        }
        value += text.slice(from, i)
        from = ++i
      }
    }
    return String(this.#giveUp())
  }

  /** Ends the current line at `from`. Only spaces and a comment may follow. */
  #endLine(from: number): void {
    const i = this.#skipSpaces(from)
    const c = this.#text.charCodeAt(i)
    if (i >= this.#text.length || c === NEWLINE) this.#nextLine(i)
    else if (c === HASH && i > from) this.#nextLine(this.#lineEnd(i))
    else this.failed = true
    if (this.failed) this.#column = -1
  }

  /** Moves to the content of the next non-empty line. `end`: end of the last line; -1 = start. */
  #nextLine(end: number): void {
    const text = this.#text
    let i = end
    while (++i < text.length) {
      const start = i
      i = this.#skipSpaces(i)
      const c = text.charCodeAt(i)
      if (c === NEWLINE) continue
      if (c !== HASH) {
        this.#at = i
        this.#column = i < text.length ? i - start : -1
        return
      }
      i = this.#lineEnd(i)
    }
    this.#column = -1
  }

  #lineEnd(from: number): number {
    const end = this.#text.indexOf('\n', from)
    return end === -1 ? this.#text.length : end
  }

  #skipSpaces(from: number): number {
    let i = from
    while (this.#text.charCodeAt(i) === SPACE) i++
    return i
  }

  #atEnd(): boolean {
    return this.#column === -1
  }

  #isItem(at: number): boolean {
    return this.#text.charCodeAt(at) === DASH && this.#isBlank(at + 1)
  }

  #isColon(at: number): boolean {
    return this.#text.charCodeAt(at) === COLON && this.#isBlank(at + 1)
  }

  #isBlank(at: number): boolean {
    const c = this.#text.charCodeAt(at)
    return c === SPACE || c === NEWLINE || at >= this.#text.length
  }

  /** True at `---` and `...`, which end documents, and at `%`, which starts a directive. */
  #startsMarker(): boolean {
    return this.#text.startsWith('---', this.#at) || this.#text.startsWith('...', this.#at)
  }

  #giveUp(): null {
    this.failed = true
    this.#column = -1
    return null
  }
}

/** True for plain text that the core schema does not, or may not, read as a string. */
function resolvesToOther(text: string): boolean {
  const first = text.charCodeAt(0)
  if (!NOT_STRING_FIRST.has(first)) return false
  return NULLS.has(text) || BOOLEANS.has(text) || NUMBER_LIKE.test(text)
}

/** True for a decimal integer in its usual form: `0`, `17`, `-3`. */
function isDecimal(text: string): boolean {
  const start = text.charCodeAt(0) === DASH ? 1 : 0
  const digits = text.length - start
  if (digits < 1 || digits > DIGITS_MAX) return false
  for (let i = start; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x30 || c > 0x39) return false
  }
  return text.charCodeAt(start) !== 0x30 || text === '0'
}

function hasTwoDots(text: string): boolean {
  const first = text.indexOf('.')
  return first !== -1 && text.charCodeAt(text.indexOf('.', first + 1)) === DOT
}
