/** A token of a selector. Longer operators come first. */
const TOKEN = /==|!=|[=!(),<>]|[^\s=!(),<>]+/g
const OPERATORS: readonly string[] = ['=', '==', '!=', '>', '<']
const SYMBOL = /^[=!(),<>]/
const LABEL_CHARACTERS_MAX = 63
const PREFIX_CHARACTERS_MAX = 253
const LABEL = /^[a-z0-9](?:[\w.-]*[a-z0-9])?$/i
const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/
const INTEGER = /^[+-]?\d{1,18}$/

/**
 * Returns why the API refuses a label selector, such as `app in (web, api), !canary`; '' = it
 * accepts the selector. An empty selector selects all objects.
 */
export function labelSelectorFault(text: string): string {
  return new SelectorScanner(text.match(TOKEN) ?? []).scan()
}

/** Scans a selector as `labels.Parse` of Kubernetes does. Each method returns a fault, '' = none. */
class SelectorScanner {
  readonly #tokens: readonly string[]
  #next = 0

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  scan(): string {
    if (this.#tokens.length === 0) return ''
    for (;;) {
      const fault = this.#requirement()
      if (fault !== '' || this.#isAtEnd) return fault
      if (!this.#accept(',')) return this.#unexpected("','")
    }
  }

  get #isAtEnd(): boolean {
    return this.#next === this.#tokens.length
  }

  /** The next token; '' = the end. */
  get #token(): string {
    return this.#tokens[this.#next] ?? ''
  }

  /** `KEY`, `!KEY`, `KEY OPERATOR VALUE`, `KEY in (VALUES)` or `KEY notin (VALUES)`. */
  #requirement(): string {
    const isNegated = this.#accept('!')
    if (!this.#isWord) return this.#unexpected('the name of a label')
    const key = this.#take()
    const fault = keyFault(key)
    if (fault !== '') return fault
    if (this.#isAtEnd || this.#token === ',') return ''
    if (isNegated) return this.#unexpected("',' or the end")
    const operator = this.#take()
    if (OPERATORS.includes(operator)) return this.#value(operator)
    if (operator === 'in' || operator === 'notin') return this.#values()
    this.#next--
    return this.#unexpected('one of = == != > < in notin')
  }

  #value(operator: string): string {
    const value = this.#isWord ? this.#take() : ''
    if (operator !== '>' && operator !== '<') return valueFault(value)
    return INTEGER.test(value) ? '' : `'${value}' after '${operator}' is not an integer`
  }

  /** Values can be empty. */
  #values(): string {
    if (!this.#accept('(')) return this.#unexpected("'('")
    for (;;) {
      const fault = this.#isWord ? valueFault(this.#take()) : ''
      if (fault !== '') return fault
      if (this.#accept(')')) return ''
      if (!this.#accept(',')) return this.#unexpected("',' or ')'")
    }
  }

  get #isWord(): boolean {
    return !this.#isAtEnd && !SYMBOL.test(this.#token)
  }

  #take(): string {
    const token = this.#token
    this.#next++
    return token
  }

  #accept(token: string): boolean {
    if (this.#token !== token) return false
    this.#next++
    return true
  }

  #unexpected(expected: string): string {
    return `expected ${expected}, found ${this.#isAtEnd ? 'the end' : `'${this.#token}'`}`
  }
}

function keyFault(key: string): string {
  const slash = key.indexOf('/')
  const prefix = key.slice(0, Math.max(0, slash))
  const name = key.slice(slash + 1)
  const hasPrefix = slash !== -1
  const isPrefix = prefix.length <= PREFIX_CHARACTERS_MAX && SUBDOMAIN.test(prefix)
  const isValid = isLabel(name) && (!hasPrefix || isPrefix)
  return isValid ? '' : `'${key}' is not the name of a label, such as app or example.org/app`
}

function valueFault(value: string): string {
  return value === '' || isLabel(value) ? '' : `'${value}' is not the value of a label`
}

function isLabel(text: string): boolean {
  return text.length <= LABEL_CHARACTERS_MAX && LABEL.test(text)
}
