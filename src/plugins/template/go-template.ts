/** What the actions of a text can read about one query. */
export interface TemplateData {
  readonly zone: string
  /** Lower case, with the final dot. */
  readonly name: string
  readonly class: string
  readonly type: string
  readonly qclass: number
  readonly qtype: number
  readonly remote: string
  /** The regular expression that matched. */
  readonly regex: string
  /** The match and its groups. */
  readonly match: readonly string[]
  /** Names of the groups; '' = no name. */
  readonly groupNames: readonly string[]
  /** Values of the variables, as they are printed. */
  readonly variables: ReadonlyMap<string, string>
  metadata(label: string): string
}

/** A text that is not a template, or uses a part of Go's templates that is not supported. */
export class TemplateError extends Error {}

/** Why a text could not be made for a query. */
export class RenderFault {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

type Expression = (data: TemplateData) => string | RenderFault

/** What a text refers to, for checks at load. */
interface TemplateReferences {
  /** Groups by name or number. */
  readonly groups: Set<string>
  /** Numbers of `index .Match`. */
  readonly matches: Set<number>
  readonly labels: Set<string>
  readonly variables: Set<string>
}

/** What Go prints for a missing entry of a map. */
const NO_VALUE = '<no value>'

const FIELDS: ReadonlyMap<string, Expression> = new Map<string, Expression>([
  ['.Zone', ({ zone }) => zone],
  ['.Name', ({ name }) => name],
  ['.Class', (data) => data.class],
  ['.Type', ({ type }) => type],
  ['.Remote', ({ remote }) => remote],
  ['.Regex', ({ regex }) => regex],
  ['.Question.Name', ({ name }) => name],
  ['.Question.Qtype', ({ qtype }) => String(qtype)],
  ['.Question.Qclass', ({ qclass }) => String(qclass)],
])

const TOKEN =
  /\s*(?:(?<field>\.\w[\w.]*)|(?<string>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?<number>\d+)|(?<word>[A-Za-z_]\w*)|(?<other>\S))/y

interface Token {
  readonly kind: 'field' | 'string' | 'number' | 'word' | 'other'
  readonly text: string
}

/** A text in the language of Go's text/template, as far as records need it. */
export class GoTemplate {
  readonly references: TemplateReferences = {
    groups: new Set(),
    matches: new Set(),
    labels: new Set(),
    variables: new Set(),
  }
  readonly #parts: (string | Expression)[] = []

  /** Throws TemplateError. */
  constructor(source: string) {
    let rest = source
    for (;;) {
      const start = rest.indexOf('{{')
      if (start === -1) break
      const action = /^\{\{(- |-(?=\s))?((?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^"`])*?)(\s-)?\}\}/.exec(
        rest.slice(start),
      )
      if (action === null) throw new TemplateError('unclosed action')
      const [whole, trimsBefore, body = '', trimsAfter] = action
      const text = rest.slice(0, start)
      this.#parts.push(trimsBefore === undefined ? text : text.trimEnd())
      if (!/^\s*\/\*.*\*\/\s*$/s.test(body)) this.#parts.push(this.#scanAction(body))
      rest = rest.slice(start + whole.length)
      if (trimsAfter !== undefined) rest = rest.trimStart()
    }
    this.#parts.push(rest)
  }

  /** True if the text is the same for all queries. */
  get isConstant(): boolean {
    return this.#parts.every((part) => typeof part === 'string')
  }

  /** The text with `action` in place of each action. */
  outline(action: string): string {
    return this.#parts.map((part) => (typeof part === 'string' ? part : action)).join('')
  }

  render(data: TemplateData): string | RenderFault {
    let text = ''
    for (const part of this.#parts) {
      const value = typeof part === 'string' ? part : part(data)
      if (value instanceof RenderFault) return value
      text += value
    }
    return text
  }

  #scanAction(body: string): Expression {
    const tokens = scanTokens(body)
    if (tokens.length === 0) throw new TemplateError('missing value for command')
    const expression = this.#scanCommand(tokens)
    if (tokens.length === 0) return expression
    throw new TemplateError(`unexpected ${JSON.stringify(tokens[0]!.text)} in {{${body}}}`)
  }

  /** Reads a command from the front of `tokens`. */
  #scanCommand(tokens: Token[]): Expression {
    const [first] = tokens
    if (first?.text === '.Meta') return this.#scanMeta(tokens)
    if (first?.kind !== 'word') return this.#scanOperand(tokens)
    tokens.shift()
    if (first.text === 'index') return this.#scanIndex(tokens)
    if (first.text === 'parseInt') return this.#scanParseInt(tokens)
    throw new TemplateError(`${first.text} is not supported; supported are index and parseInt`)
  }

  #scanOperand(tokens: Token[]): Expression {
    const token = tokens.shift()
    if (token === undefined) throw new TemplateError('missing argument')
    if (token.text === '(') {
      const inner = this.#scanCommand(tokens)
      if (tokens.shift()?.text === ')') return inner
      throw new TemplateError('unclosed left paren')
    }
    if (token.kind === 'field') return this.#field(token.text)
    if (token.kind !== 'string' && token.kind !== 'number') {
      throw new TemplateError(`unexpected ${JSON.stringify(token.text)}`)
    }
    const value = token.kind === 'string' ? unquote(token.text) : token.text
    return () => value
  }

  #field(path: string): Expression {
    const known = FIELDS.get(path)
    if (known !== undefined) return known
    const group = /^\.Group\.(\w+)$/.exec(path)?.[1]
    if (group !== undefined) return this.#group(group)
    const variable = /^\.Var\.(\w+)$/.exec(path)?.[1]
    if (variable !== undefined) {
      this.references.variables.add(variable)
      return ({ variables }) => variables.get(variable) ?? NO_VALUE
    }
    const supported = [
      ...FIELDS.keys(),
      '.Group.NAME',
      '.Var.NAME',
      '.Meta "LABEL"',
      'index .Match N',
    ]
    throw new TemplateError(`${path} is not supported; supported are ${supported.join(', ')}`)
  }

  #group(name: string): Expression {
    this.references.groups.add(name)
    return ({ match, groupNames }) => {
      // Of groups with one name, the last one counts.
      const index = groupNames.lastIndexOf(name)
      return match[index === -1 ? groupNumber(name) : index] ?? NO_VALUE
    }
  }

  #scanIndex(tokens: Token[]): Expression {
    const list = tokens.shift()
    const key = tokens.shift()
    if (list?.text === '.Match' && key?.kind === 'number') {
      const number = Number(key.text)
      this.references.matches.add(number)
      return ({ match }) =>
        match[number] ?? new RenderFault(`error calling index: index out of range: ${number}`)
    }
    if (list?.text === '.Group' && key?.kind === 'string') return this.#group(unquote(key.text))
    throw new TemplateError('index needs .Match and a number, or .Group and a string')
  }

  #scanMeta(tokens: Token[]): Expression {
    tokens.shift()
    const token = tokens.shift()
    if (token?.kind !== 'string') throw new TemplateError('.Meta needs a label as a string')
    const label = unquote(token.text)
    this.references.labels.add(label)
    return (data) => data.metadata(label)
  }

  #scanParseInt(tokens: Token[]): Expression {
    const operand = this.#scanOperand(tokens)
    const [base, bits] = [tokens.shift(), tokens.shift()].map((token) => {
      return token?.kind === 'number' ? Number(token.text) : Number.NaN
    })
    if (!(base! >= 2 && base! <= 36 && bits! >= 0 && bits! <= 64)) {
      throw new TemplateError('parseInt needs a string, a base of 2 to 36 and a size of 0 to 64')
    }
    return (data) => {
      const text = operand(data)
      return text instanceof RenderFault ? text : parseUint(text, base!, bits! === 0 ? 64 : bits!)
    }
  }
}

function scanTokens(body: string): Token[] {
  const tokens: Token[] = []
  const text = body.trimEnd()
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const groups = TOKEN.exec(text)!.groups!
    const [kind, token] = Object.entries(groups).find(([, value]) => value !== undefined)!
    tokens.push({ kind: kind as Token['kind'], text: token })
  }
  return tokens
}

function unquote(text: string): string {
  if (text.startsWith('`')) return text.slice(1, -1)
  const found = /\\[^\\"]/.exec(text)
  if (found !== null) throw new TemplateError(`the escape ${found[0]} is not supported`)
  return text.slice(1, -1).replaceAll(/\\(.)/g, '$1')
}

/** Number of a group; -1 if the name is not a number. */
export function groupNumber(name: string): number {
  return /^(?:0|[1-9]\d{0,4})$/.test(name) ? Number(name) : -1
}

/** Go's strconv.ParseUint, printed. */
function parseUint(text: string, base: number, bits: number): string | RenderFault {
  const fault = `error calling parseInt: parsing ${JSON.stringify(text)}`
  let value = 0n
  for (const character of text.toLowerCase()) {
    const digit = '0123456789abcdefghijklmnopqrstuvwxyz'.indexOf(character)
    if (digit === -1 || digit >= base) return new RenderFault(`${fault}: invalid syntax`)
    value = value * BigInt(base) + BigInt(digit)
  }
  if (text === '') return new RenderFault(`${fault}: invalid syntax`)
  return value >> BigInt(bits) === 0n ? String(value) : new RenderFault(`${fault}: out of range`)
}
