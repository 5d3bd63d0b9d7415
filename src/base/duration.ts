/** Milliseconds per unit of a Go duration. Both Unicode micro signs are units, as in Go. */
const UNIT_MS = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['\u00b5s', 1e-3],
  ['\u03bcs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
])

/** Go holds durations in 63 bits of nanoseconds; more is invalid there, so here as well. */
const DURATION_MAX_MS = 2 ** 63 / 1e6

/**
 * Scans a duration in Go's notation (`time.ParseDuration`): `30s`, `1h30m`, `1.5m`, `-250ms`, `0`.
 * A number without a unit is invalid, except `0`. Returns milliseconds (a fraction below 1 ms), or
 * undefined if `text` is no duration or longer than about 292 years.
 */
export function scanDuration(text: string): number | undefined {
  const signed = text.startsWith('-') || text.startsWith('+')
  const body = signed ? text.slice(1) : text
  if (body === '0') return 0
  // 64 characters hold every duration that anyone writes, and bound the work.
  if (body === '' || body.length > 64) return undefined
  const part = /(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y
  let total = 0
  while (part.lastIndex < body.length) {
    const found = part.exec(body)
    if (found === null) return undefined
    total += Number(found[1]) * UNIT_MS.get(found[2]!)!
  }
  if (total >= DURATION_MAX_MS) return undefined
  return text.startsWith('-') && total !== 0 ? -total : total
}
