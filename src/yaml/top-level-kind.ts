/** First line with content of a block mapping, or of an item of a list that is one. */
const FIRST_LINE =
  /^(?:---[ \t]*(?:#.*)?\n|[ \t]*(?:#[^\r\n]*)?\r?\n)*(- +)?["']?[A-Za-z][\w.-]*["']?:(?:\s|$)/
const KIND = /^kind:[ \t]+(["']?)([A-Za-z]\w*)\1[ \t]*(?:#.*)?\r?$/

/**
 * Returns the value of the top-level key `kind` of a YAML document, or of an item of a list, without parsing it: the
 * document may use anything that YAML has. '' = the document is no block mapping, or the kind is not a plain word.
 */
export function topLevelKind(text: string): string {
  const first = FIRST_LINE.exec(text)
  if (first === null) return ''
  // Below a block mapping, every line that continues a value is indented more than the keys.
  const indentation = ' '.repeat(first[1]?.length ?? 0)
  const lines = text.split('\n').map((line) => line.replace(/^- /, '  '))
  const keys = lines
    .filter((line) => line.startsWith(`${indentation}kind:`))
    .map((line) => KIND.exec(line.slice(indentation.length)))
  return keys.length === 1 ? (keys[0]?.[2] ?? '') : ''
}
