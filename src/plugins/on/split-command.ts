/**
 * Splits a command line into words as a POSIX shell does: at spaces outside of quotes; a backslash quotes the next
 * character, except in single quotes. There are no variables, patterns or comments. Returns undefined if a quote or a
 * backslash has no end.
 */
export function splitCommand(line: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let i = 0; i < line.length; i++) {
    const char = line[i]!
    if (char === '\\' && quote !== "'") {
      if (++i === line.length) return undefined
      word = (word ?? '') + line[i]!
    } else if (quote !== '') {
      if (char === quote) quote = ''
      else word += char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + char
  }
  if (quote !== '') return undefined
  if (word !== undefined) words.push(word)
  return words
}
