/** Results of `ZoneLexer.next`. */
export const Entry = { End: 0, Fields: 1, Bad: 2, Blank: 3 } as const
export type Entry = (typeof Entry)[keyof typeof Entry]

/** Maximum of fields of one entry: more than the strings that fit into 65535 octets of rdata. */
const FIELDS_MAX = 70_000

/** Maximum of lines without fields that `next` reads before it returns, so that the caller can pause. */
const BLANK_LINES_MAX = 4096

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const OPEN = 0x28
const CLOSE = 0x29
const SEMICOLON = 0x3b
const BACKSLASH = 0x5c

/** 1 for octets that end a run of plain octets inside a field. */
const STOPS = new Uint8Array(256)
for (const octet of [TAB, LF, CR, SPACE, QUOTE, OPEN, CLOSE, SEMICOLON, BACKSLASH]) STOPS[octet] = 1

/**
 * Splits a master file into entries and their fields (RFC 1035 section 5.1), in place: fields are
 * ranges of the input, so that a million records cost no strings. An entry is one line, or more
 * where parentheses or quotes span line ends.
 *
 *     name  3600 IN TXT ( plain "quo ted" key="h2,h3" ) ; comment
 *     └──┘  └──┘ └┘ └─┘   └───┘  └─────┘  └─────────┘
 *
 * A quoted field's range excludes its quotes; quotes inside a field are kept (RFC 9460 section
 * 2.1). Backslashes are always kept; the octet after a backslash has no special meaning.
 */
export class ZoneLexer {
  readonly input: Buffer
  /** Fields of the entry: 0..FIELDS_MAX. */
  count = 0
  start: Int32Array = new Int32Array(64)
  end: Int32Array = new Int32Array(64)
  quoted: Uint8Array = new Uint8Array(64)
  /** True if the entry starts in the first column: its first field is an owner. */
  hasOwner = false
  /** Line that the entry starts on, counted from 1. */
  line = 0
  /** After Bad: the reason, and the line of the fault. */
  fault = ''
  faultLine = 0

  #at = 0
  #line: number
  readonly #fixedLine: boolean
  #depth = 0
  #openLine = 0

  /** `line`: number of the first line. `fixedLine`: all lines have that number ($GENERATE). */
  constructor(input: Buffer, line = 1, fixedLine = false) {
    this.input = input
    this.#line = line
    this.#fixedLine = fixedLine
    // A byte order mark is not part of the first name.
    if (input[0] === 0xef && input[1] === 0xbb && input[2] === 0xbf) this.#at = 3
  }

  /** Offset behind the entry last read: the octets consumed so far. */
  get at(): number {
    return this.#at
  }

  /**
   * Moves to the next entry with fields. After Bad, the next call continues with the next line.
   * Blank means that thousands of lines had no fields; the next call continues behind them.
   */
  next(): Entry {
    const input = this.input
    for (let blanks = 0; this.#at < input.length; blanks++) {
      if (blanks === BLANK_LINES_MAX) return Entry.Blank
      this.count = 0
      this.#depth = 0
      this.line = this.#line
      const first = input[this.#at]!
      this.hasOwner = first !== SPACE && first !== TAB
      if (!this.#readEntry()) {
        this.#skipLine()
        return Entry.Bad
      }
      if (this.count > 0) return Entry.Fields
    }
    return Entry.End
  }

  /** Reads fields up to the end of the entry; returns false on a fault. */
  #readEntry(): boolean {
    const input = this.input
    while (this.#at < input.length) {
      const octet = input[this.#at]!
      if (octet === SPACE || octet === TAB || octet === CR) this.#at++
      else if (octet === LF) {
        this.#newLine()
        if (this.#depth === 0) return true
      } else if (octet === SEMICOLON) this.#skipComment()
      else if (octet === OPEN) this.#open()
      else if (octet === CLOSE) {
        if (!this.#close()) return false
      } else if (!this.#readField(octet === QUOTE)) return false
    }
    if (this.#depth === 0) return true
    return this.#fail('a parenthesis is not closed; add ) where the record ends', this.#openLine)
  }

  #open(): void {
    if (this.#depth === 0) this.#openLine = this.#line
    this.#depth++
    this.#at++
  }

  #close(): boolean {
    if (this.#depth === 0) return this.#fail(') without (; remove it, or escape it as \\)')
    this.#depth--
    this.#at++
    return true
  }

  #readField(isQuoted: boolean): boolean {
    if (this.count >= FIELDS_MAX) return this.#fail(`more than ${FIELDS_MAX} fields; split the set`)
    const start = this.#at
    if (!(isQuoted ? this.#skipQuoted() : this.#skipPlain())) return false
    const i = this.count
    if (i === this.start.length) this.#growFields()
    this.start[i] = isQuoted ? start + 1 : start
    this.end[i] = isQuoted ? this.#at - 1 : this.#at
    this.quoted[i] = isQuoted ? 1 : 0
    this.count = i + 1
    return true
  }

  /** Moves behind the closing quote of the current quote. */
  #skipQuoted(): boolean {
    const input = this.input
    const openLine = this.#line
    for (this.#at++; this.#at < input.length; this.#at++) {
      const octet = input[this.#at]!
      if (octet === QUOTE) {
        this.#at++
        return true
      }
      if (octet === BACKSLASH) this.#at++
      if (input[this.#at] === LF) this.#countLine()
    }
    this.#at = input.length
    return this.#fail('a quoted string is not closed; add the missing "', openLine)
  }

  #skipPlain(): boolean {
    const input = this.input
    for (;;) {
      while (STOPS[input[this.#at]!] === 0) this.#at++
      const octet = input[this.#at]
      if (octet === QUOTE) {
        if (!this.#skipQuoted()) return false
      } else if (octet === BACKSLASH) {
        const next = input[this.#at + 1]
        if (next === undefined || next === LF || next === CR) {
          return this.#fail('a backslash ends the line; remove it, or write \\\\ for a backslash')
        }
        this.#at += 2
      } else return true
    }
  }

  #skipComment(): void {
    const end = this.input.indexOf(LF, this.#at)
    this.#at = end === -1 ? this.input.length : end
  }

  /** Skips the rest of the line of a broken entry. */
  #skipLine(): void {
    this.#skipComment()
    if (this.#at < this.input.length) this.#newLine()
  }

  #newLine(): void {
    this.#at++
    this.#countLine()
  }

  #countLine(): void {
    if (!this.#fixedLine) this.#line++
  }

  #fail(fault: string, line = this.#line): false {
    this.fault = fault
    this.faultLine = line
    return false
  }

  #growFields(): void {
    const size = this.start.length * 2
    this.start = growInt32(this.start, size)
    this.end = growInt32(this.end, size)
    const quoted = new Uint8Array(size)
    quoted.set(this.quoted)
    this.quoted = quoted
  }

  /** Returns field `i` as text. Octets above 127 become `\DDD`, so that no encoding can change them. */
  text(i: number): string {
    return this.textBetween(this.start[i]!, this.end[i]!)
  }

  textBetween(start: number, end: number): string {
    for (let i = start; i < end; i++) {
      if (this.input[i]! >= 0x80) return escapeOctets(this.input, start, end)
    }
    return this.input.toString('latin1', start, end)
  }
}

function escapeOctets(input: Buffer, start: number, end: number): string {
  let text = ''
  for (let i = start; i < end; i++) {
    const octet = input[i]!
    text += octet >= 0x80 ? `\\${octet}` : String.fromCharCode(octet)
  }
  return text
}

function growInt32(from: Int32Array, size: number): Int32Array {
  const grown = new Int32Array(size)
  grown.set(from)
  return grown
}
