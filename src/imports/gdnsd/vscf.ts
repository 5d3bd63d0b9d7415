import { InputError } from '../../base/errors.ts'

/** A value of the configuration language of gdnsd, with its line. */
export type Vscf =
  | { readonly kind: 'scalar'; readonly text: string; readonly line: number }
  | { readonly kind: 'list'; readonly items: readonly Vscf[]; readonly line: number }
  | { readonly kind: 'hash'; readonly entries: ReadonlyMap<string, Vscf>; readonly line: number }
export type VscfHash = Extract<Vscf, { kind: 'hash' }>

/** A comment, a separator, a sign, `=>`, a quoted scalar or a bare one. */
const TOKEN =
  /#[^\n]*|[\s,]+|=>|[=:](?=\s)|[[\]{}]|"(?:[^"\\]|\\[\s\S])*"|(?:[^\s,[\]{}"#=;\\]|=(?!>|\s)|\\[\s\S])+|;|[\s\S]/y
const NESTING_MAX = 32
const SIGNS = '[]{};"'

interface Token {
  readonly text: string
  readonly line: number
}

/** Parses a configuration file of gdnsd: hashes, lists and scalars. Throws InputError at its first fault. */
export function parseVscf(file: string, text: string): VscfHash {
  const parser = new VscfParser(file, tokensOf(text))
  return parser.parseFile()
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  let line = 1
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(text); match !== null && match[0] !== ''; match = TOKEN.exec(text)) {
    const found = match[0]
    if (!/^(?:#|[\s,])/.test(found)) tokens.push({ text: found, line })
    for (const c of found) if (c === '\n') line++
  }
  return tokens
}

class VscfParser {
  readonly #file: string
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(file: string, tokens: readonly Token[]) {
    this.#file = file
    this.#tokens = tokens
  }

  parseFile(): VscfHash {
    const isBraced = this.#tokens[0]?.text === '{'
    if (isBraced) this.#at++
    const hash = this.#hash(isBraced ? '}' : '', 1, 0)
    const rest = this.#tokens[this.#at]
    if (rest !== undefined) this.#fail(rest, `unexpected ${JSON.stringify(rest.text)}`)
    return hash
  }

  /** `end`: the bracket that ends it; '' = the end of the file. */
  #hash(end: string, line: number, depth: number): VscfHash {
    const entries = new Map<string, Vscf>()
    for (;;) {
      const key = this.#tokens[this.#at]
      if (key === undefined && end !== '') this.#fail({ text: '', line }, `the hash has no ${end}`)
      if (key === undefined || key.text === end) {
        if (key !== undefined) this.#at++
        return { kind: 'hash', entries, line }
      }
      if (SIGNS.includes(key.text)) this.#fail(key, `unexpected ${JSON.stringify(key.text)}`)
      if (key.text.startsWith('$include'))
        this.#fail(key, '$include is not supported: write the content into the file')
      this.#at++
      const arrow = this.#tokens[this.#at]
      if (arrow?.text !== '=>' && arrow?.text !== '=' && arrow?.text !== ':')
        this.#fail(key, `${JSON.stringify(key.text)} has no value: write NAME => VALUE`)
      this.#at++
      const name = scalarOf(key.text)
      if (entries.has(name)) this.#fail(key, `${JSON.stringify(name)} is defined twice`)
      entries.set(name, this.#value(depth + 1))
    }
  }

  #value(depth: number): Vscf {
    const token = this.#tokens[this.#at++]
    if (token === undefined) this.#fail(this.#tokens.at(-1)!, 'a value is missing at the end')
    const { text, line } = token
    if (depth > NESTING_MAX) this.#fail(token, 'nested too deep')
    if (text === '{') return this.#hash('}', line, depth)
    if (text === '[') {
      const items: Vscf[] = []
      for (let next = this.#tokens[this.#at]; next?.text !== ']'; next = this.#tokens[this.#at]) {
        if (next === undefined) this.#fail(token, 'the list has no ]')
        items.push(this.#value(depth + 1))
      }
      this.#at++
      return { kind: 'list', items, line }
    }
    if (SIGNS.includes(text) || text === '=>' || text.startsWith('$include'))
      this.#fail(token, `unexpected ${JSON.stringify(text)} in place of a value`)
    return { kind: 'scalar', text: scalarOf(text), line }
  }

  #fail({ line }: Token, message: string): never {
    throw new InputError({ file: this.#file, line }, message)
  }
}

function scalarOf(text: string): string {
  const inner = text.length > 1 && text.startsWith('"') ? text.slice(1, -1) : text
  return inner.replace(/\\(\d{3}|\D)/g, (_, escaped: string) => {
    return escaped.length === 3 ? String.fromCharCode(Number(escaped)) : escaped
  })
}

/** The hash under a key; undefined = it is missing, or no hash. */
export function hashAt(hash: VscfHash | undefined, key: string): VscfHash | undefined {
  const value = hash?.entries.get(key)
  return value?.kind === 'hash' ? value : undefined
}

/** The scalars of a list, or the one scalar; empty = missing. */
export function textsOf(value: Vscf | undefined): readonly string[] {
  if (value === undefined || value.kind === 'hash') return []
  if (value.kind === 'scalar') return [value.text]
  return value.items.flatMap((item) => (item.kind === 'scalar' ? [item.text] : []))
}

export function textAt(hash: VscfHash | undefined, key: string): string | undefined {
  return textsOf(hash?.entries.get(key))[0]
}
