import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import type { Alias, CST, Document, LineCounter, Node } from 'yaml'
import { scanBlockYaml, type YamlValue } from './scan-block-yaml.ts'
import { scanJson } from './scan-json.ts'

/** Bounds on the input of the complete parser. */
const CHARACTERS_MAX = 131_072
/**
 * Maximum number of characters outside of block scalars. The parser takes 5 to 20 microseconds for
 * each of these, and more in longer texts with many faults. It takes 0.2 microseconds for a
 * character of a block scalar.
 */
const COSTLY_CHARACTERS_MAX = 16_384
const NESTING_MAX = 64
/**
 * Maximum number of `-`, `?` and `:` before the first word of a line, because the parser's time
 * grows with the third power.
 */
const LEADING_MAX = 16
const INDENTATION_MAX = 512
/**
 * Maximum number of anchors, and number of aliases, per text, because the parser searches all
 * anchors for each alias.
 */
const ANCHORS_MAX = 100
/** Maximum factor by which aliases may expand a value. */
const ALIASES_MAX = 100

let loaded: typeof Yaml | undefined

/**
 * The complete parser, loaded with the first text that the fast scanners do not understand: it has some seventy
 * modules. Loaded synchronously, because messages ask for lines of texts.
 */
function library(): typeof Yaml {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof Yaml
  return loaded
}

/** Text that is invalid YAML, or that exceeds a bound. */
export class YamlProblem {
  readonly message: string
  /** Line inside the text, from 1. */
  readonly line: number

  constructor(message: string, line: number) {
    this.message = message
    this.line = line
  }
}

/**
 * Returns the value of a text of one document. Plain YAML and JSON use the fast scanners, other
 * text the complete parser.
 */
export function parseOneDocument(text: string): YamlValue | YamlProblem {
  const fast = scanPlainDocument(text)
  if (fast !== undefined) return fast
  const values = parseDocuments(text)
  return values instanceof YamlProblem ? values : (values[0] ?? null)
}

/** Returns the value of a text of one document by the fast scanners; undefined = they do not understand it. */
export function scanPlainDocument(text: string): YamlValue | undefined {
  // Both line breaks have the same meaning, also in scalars (YAML 1.2.2 section 5.4).
  const plain = text.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text
  return scanBlockYaml(plain) ?? scanJson(plain)
}

/** Returns the values of all documents of a text, by the YAML 1.2 core schema. */
export function parseDocuments(text: string): readonly YamlValue[] | YamlProblem {
  const parsed = parseBounded(text)
  if (parsed instanceof YamlProblem) return parsed
  const { documents, lines } = parsed
  const values: YamlValue[] = []
  for (const document of documents) {
    const error = document.errors[0]
    const fault = error === undefined ? findBadKey(document.contents) : error
    if (fault !== undefined) {
      const at = 'pos' in fault ? fault.pos[0] : fault.at
      return new YamlProblem(firstLine(fault.message), Math.max(1, lines.linePos(at).line))
    }
    try {
      values.push(document.toJS({ maxAliasCount: ALIASES_MAX }) as YamlValue)
    } catch (error) {
      // Exceeded alias bound or unresolved alias; both are faults of the file.
      if (!(error instanceof ReferenceError)) throw error
      const whole = { message: error.message, at: document.contents?.range?.[0] ?? 0 }
      const { message, at } = findLostAlias(document) ?? whole
      return new YamlProblem(message, Math.max(1, lines.linePos(at).line))
    }
  }
  return values
}

/** Describes the first alias without an anchor, such as a wildcard name that is not quoted; undefined = none. */
function findLostAlias(document: Document): { message: string; at: number } | undefined {
  let lost: Alias | undefined
  library().visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) !== undefined) return undefined
      lost = alias
      return library().visit.BREAK
    },
  })
  if (lost === undefined) return undefined
  const name = `*${lost.source}`
  const message = `${name} without quotes is an alias of YAML, and no anchor before it has this name; write "${name}"`
  return { message, at: lost.range?.[0] ?? 0 }
}

/**
 * Returns the line, from 1, of the value at `path` in document `index` of `text`, or of its nearest
 * existing parent. `isKey`: the line of its key. Slow: only for error messages.
 */
export function findLine(
  text: string,
  index: number,
  path: readonly (string | number)[],
  isKey = false,
): number {
  const parsed = parseBounded(text)
  if (parsed instanceof YamlProblem) return 1
  const { documents, lines } = parsed
  const document = documents[index]
  if (document === undefined) return 1
  const key = isKey ? findKey(document, path) : undefined
  if (key !== undefined) return Math.max(1, lines.linePos(key).line)
  for (let length = path.length; length >= 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    const offset = library().isNode(node) ? node.range?.[0] : undefined
    if (offset !== undefined) return Math.max(1, lines.linePos(offset).line)
  }
  return 1
}

/** Offset of the key at `path`. */
function findKey(document: Document, path: readonly (string | number)[]): number | undefined {
  const { isMap, isNode, isScalar } = library()
  const parent = document.getIn(path.slice(0, -1), true)
  if (!isMap(parent)) return undefined
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1))
  return isNode(pair?.key) ? pair.key.range?.[0] : undefined
}

interface Parsed {
  readonly documents: readonly Document[]
  readonly lines: LineCounter
}

interface Outcome {
  readonly text: string
  readonly result: Parsed | YamlProblem
}

/**
 * Outcome of the last parsed text, because messages about a document ask for one line after
 * another. The reference lives at least until the end of the event loop's turn; then the memory is
 * free.
 */
let lastOutcome: WeakRef<Outcome> | undefined

function parseBounded(text: string): Parsed | YamlProblem {
  const last = lastOutcome?.deref()
  if (last?.text === text) return last.result
  const result = findExcess(text) ?? parseWithoutStacks(text)
  lastOutcome = new WeakRef({ text, result })
  return result
}

/** The parser creates an Error for each fault; with stack traces that takes three times as long. */
function parseWithoutStacks(text: string): Parsed | YamlProblem {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return parse(text)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function parse(text: string): Parsed | YamlProblem {
  const { Composer, LineCounter, Parser } = library()
  const lines = new LineCounter()
  const parser = new Parser(lines.addNewLine)
  // `findBadKey` compares keys, because the library compares each key with all others.
  const composer = new Composer({ lineCounter: lines, logLevel: 'silent', uniqueKeys: false })
  const tokens = [...parser.parse(text)]
  const excess = findExcessAnchor(tokens)
  if (excess !== undefined) {
    const message = `more than ${ANCHORS_MAX} anchors or aliases: write the values out`
    return new YamlProblem(message, Math.max(1, lines.linePos(excess).line))
  }
  return { documents: [...composer.compose(tokens)], lines }
}

/** Returns what makes the text too costly for the complete parser. */
function findExcess(text: string): YamlProblem | undefined {
  if (text.length > CHARACTERS_MAX) {
    const message = `a document that is neither plain block style nor JSON may have up to ${CHARACTERS_MAX} characters, not ${text.length}: split it, or write it in block style`
    return new YamlProblem(message, 1)
  }
  const line = findDeepLine(text)
  if (line > 0) return new YamlProblem('nested too deep', line)
  if (text.length <= COSTLY_CHARACTERS_MAX || isPlain(text) || !isCostly(text)) return undefined
  const message = `a document that is neither plain block style nor JSON may have up to ${COSTLY_CHARACTERS_MAX} characters outside of block scalars: split it, or write it in block style`
  return new YamlProblem(message, 1)
}

/**
 * True if a fast scanner understands the text. Then the caller only searches the line of a fault.
 * Such a text has no YAML faults, which cost most.
 */
function isPlain(text: string): boolean {
  return (scanBlockYaml(text) ?? scanJson(text)) !== undefined
}

/** True if more than COSTLY_CHARACTERS_MAX characters are outside of block scalars. */
function isCostly(text: string): boolean {
  const { CST, Lexer } = library()
  let characters = 0
  let isInBlockScalar = false
  let isContent = false
  for (const lexeme of new Lexer().lex(text)) {
    const type: string | null = isContent ? null : CST.tokenType(lexeme)
    if (!(isContent && isInBlockScalar)) characters += lexeme.length
    if (characters > COSTLY_CHARACTERS_MAX) return true
    if (isContent) isInBlockScalar = false
    else if (type === 'block-scalar-header') isInBlockScalar = true
    // The next token is the text of the scalar.
    isContent = type === 'scalar'
  }
  return false
}

/** Offset of the first anchor or alias above the maximum; undefined = no excess. */
function findExcessAnchor(tokens: readonly CST.Token[]): number | undefined {
  const counts = { anchor: 0, alias: 0 }
  const waiting: unknown[] = [...tokens].reverse()
  while (waiting.length > 0) {
    const token = waiting.pop()
    if (Array.isArray(token)) {
      for (let i = token.length - 1; i >= 0; i--) waiting.push(token[i])
    } else if (typeof token === 'object' && token !== null) {
      const { type, offset } = token as { readonly type?: string; readonly offset?: number }
      if ((type === 'anchor' || type === 'alias') && ++counts[type] > ANCHORS_MAX) return offset
      // Documents, collections, items, keys and values contain tokens.
      const { start, key, sep, value, items, end, props } = token as { [name: string]: unknown }
      for (const part of [end, items, value, sep, key, start, props]) {
        if (typeof part === 'object' && part !== null) waiting.push(part)
      }
    }
  }
  return undefined
}

/**
 * Returns the first key that is a duplicate, which YAML forbids, or that is a list or a mapping.
 * JSON has no such keys, and the parser's time for them grows with the third power of their depth.
 */
function findBadKey(
  contents: Node | null,
): { readonly message: string; readonly at: number } | undefined {
  const { isCollection, isMap, isPair, isScalar } = library()
  const waiting: unknown[] = [contents]
  while (waiting.length > 0) {
    const node = waiting.pop()
    if (!isCollection(node)) continue
    const keys = isMap(node) ? new Set<unknown>() : undefined
    for (const item of node.items) {
      if (!isPair(item)) {
        waiting.push(item)
        continue
      }
      waiting.push(item.value)
      if (isCollection(item.key)) {
        return { message: 'a list or a mapping as a key', at: item.key.range?.[0] ?? 0 }
      }
      if (keys === undefined || !isScalar(item.key)) continue
      if (keys.has(item.key.value)) {
        return { message: 'Map keys must be unique', at: item.key.range?.[0] ?? 0 }
      }
      keys.add(item.key.value)
    }
  }
  return undefined
}

/**
 * Returns the first line whose brackets, or whose indicators before the first word, nest too deeply
 * for a recursive parser; 0 = none. Counts brackets in strings too, because it is a bound and not a
 * parser.
 */
function findDeepLine(text: string): number {
  let brackets = 0
  let leading = 0
  let spaces = 0
  let isLeading = true
  let line = 1
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    brackets = bracketsAfter(brackets, c)
    if (c === '\n') {
      isLeading = true
      leading = 0
      spaces = 0
      line++
    } else if (isLeading && (c === '-' || c === '?' || c === ':')) leading++
    else if (isLeading && c === ' ') spaces++
    else isLeading = false
    if (brackets > NESTING_MAX || leading > LEADING_MAX || spaces > INDENTATION_MAX) return line
  }
  return 0
}

/** Returns the number of open brackets after one more character. Text may close too many. */
function bracketsAfter(open: number, c: string | undefined): number {
  if (c === '[' || c === '{') return open + 1
  if (c === ']' || c === '}') return Math.max(0, open - 1)
  return open
}

function firstLine(message: string): string {
  return message.split('\n', 1)[0] ?? message
}
