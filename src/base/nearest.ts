/** Most letters in which a name may differ from the word. */
const EDITS_MAX = 2
/** Longer words resemble no name; the comparison takes time in proportion to the length. */
const WORD_CHARACTERS_MAX = 64
/** Shorter words are the end of too many names. */
const END_CHARACTERS_MIN = 3

/**
 * Returns the one of `names` that was probably meant by `word`: it differs in at most two letters, fewer in
 * a short word, or only in case, or it alone ends with the word (`ttl`, `recordTTL`). Undefined = none.
 */
export function nearestName(word: string, names: Iterable<string>): string | undefined {
  if (word.length > WORD_CHARACTERS_MAX) return undefined
  const lower = word.toLowerCase()
  const ending: string[] = []
  let nearest: string | undefined
  let fewest = Math.min(EDITS_MAX, word.length - 2) + 1
  for (const name of names) {
    const other = name.toLowerCase()
    const edits = editsBetween(lower, other)
    if (edits === 0) return name
    if (edits < fewest) [nearest, fewest] = [name, edits]
    if (word.length >= END_CHARACTERS_MIN && other.endsWith(lower)) ending.push(name)
  }
  return nearest ?? (ending.length === 1 ? ending[0] : undefined)
}

/** `; did you mean check?`, or '' if no name is near. */
export function didYouMean(word: string, names: Iterable<string>): string {
  const nearest = nearestName(word, names)
  return nearest === undefined ? '' : `; did you mean ${nearest}?`
}

/** Levenshtein distance; at least the difference of the lengths. */
function editsBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > EDITS_MAX) return Math.abs(a.length - b.length)
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let k = 1; k <= b.length; k++) {
      const replaced = row[k - 1]! + (a[i - 1] === b[k - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[k]! + 1, next[k - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
