/**
 * True if a pattern repeats something that repeats itself, like `(a+)+`. The engine may then try
 * every way to divide a text, which takes practically forever for a name of a few dozen characters.
 * Go's engine, in CoreDNS, takes linear time for any pattern.
 */
export function repeatsRepetition(pattern: string): boolean {
  /** By open group: whether its content repeats without a bound. */
  const open: boolean[] = []
  let closed = false
  let inClass = false
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i]
    const before: boolean = closed
    closed = false
    if (c === '\\') i++
    else if (inClass) inClass = c !== ']'
    else if (c === '[') inClass = true
    else if (c === '(') open.push(false)
    else if (c === ')') {
      closed = open.pop() ?? false
      if (closed && open.length > 0) open[open.length - 1] = true
    } else if (isUnbounded(pattern, i)) {
      if (before) return true
      if (open.length > 0) open[open.length - 1] = true
    }
  }
  return false
}

/** `*`, `+`, `{n,}`, and `{n,m}` with an m that is too large. */
function isUnbounded(pattern: string, at: number): boolean {
  const c = pattern[at]
  if (c === '*' || c === '+') return true
  const bounds = c === '{' ? /^\{\d+(?:,(\d*))?\}/.exec(pattern.slice(at, at + 24)) : null
  return bounds !== null && (bounds[1] === '' || Number(bounds[1]) > 9)
}
