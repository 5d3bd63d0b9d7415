import { printJsonText } from '../../base/json-text.ts'

/** Text that needs no quotes. */
const PLAIN = /^[^\s"#\\\p{Cc}\p{Cs}\p{Cf}]+$/u
/** A word: characters and strings in double quotes, as in JSON. */
const WORD = /(?:[^\s"]|"(?:[^"\\]|\\.)*")+/uy
const SPACE = /\s*/uy
const STRING = /"(?:[^"\\]|\\.)*"/gu

/**
 * Splits a line into words. A word may contain strings in double quotes with the escapes of JSON.
 * `#` begins a comment where a word could begin. Returns undefined if a string is invalid.
 */
export function scanWords(line: string): readonly string[] | undefined {
  const words: string[] = []
  for (let at = endOf(SPACE, line, 0); at < line.length && line[at] !== '#'; ) {
    const end = endOf(WORD, line, at)
    const word = end === at ? undefined : unquote(line.slice(at, end))
    if (word === undefined) return undefined
    words.push(word)
    at = endOf(SPACE, line, end)
  }
  return words
}

/** Prints `key`, the separator and the value, which gets quotes where it needs them. */
export function printTerm(key: string, separator: ':' | '=', value: string): string {
  return `${key}${separator}${PLAIN.test(value) ? value : printJsonText(value)}`
}

/** Returns the end of the pattern's match at `at`; `at` itself if the pattern does not match. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function unquote(word: string): string | undefined {
  try {
    return word.replace(STRING, (string) => JSON.parse(string) as string)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}
