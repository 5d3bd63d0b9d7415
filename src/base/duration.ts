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

/** Go holds durations in 63 bits of nanoseconds. Longer ones are invalid there, and so they are here. */
const DURATION_MAX_MS = 2 ** 63 / 1e6

/**
 * Scans a duration in Go's notation (`time.ParseDuration`): `30s`, `1h30m`, `1.5m`, `-250ms`, `0`.
 * A number without a unit is invalid, except `0`. Returns milliseconds (a fraction below 1 ms), or
 * undefined if `text` is not a duration or is longer than about 292 years.
 */
export function scanDuration(text: string): number | undefined {
  const signed = text.startsWith('-') || text.startsWith('+')
  const body = signed ? text.slice(1) : text
  if (body === '0') return 0
  // 64 characters are enough for every real duration, and bound the work.
  if (body === '' || body.length > 64) return undefined
  const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y
  let total = 0
  while (part.lastIndex < body.length) {
    const found = part.exec(body)
    if (found === null) return undefined
    total += Number(found[1]) * UNIT_MS.get(found[2]!)!
  }
  if (total >= DURATION_MAX_MS) return undefined
  return text.startsWith('-') && total !== 0 ? -total : total
}

/**
 * Prints a duration as Go does: `1h30m0s`, `30s`, `1.5s`, `250ms`, `0s`. The inverse of `scanDuration`,
 * exact to the nanosecond below about 100 days.
 */
export function printDuration(milliseconds: number): string {
  const sign = milliseconds < 0 ? '-' : ''
  const ms = Math.abs(milliseconds)
  if (ms === 0) return '0s'
  if (ms < 1e-3) return `${sign}${Math.round(ms * 1e6)}ns`
  if (ms < 1) return `${sign}${trimFraction(ms * 1e3, 3)}\u00b5s`
  if (ms < 1000) return `${sign}${trimFraction(ms, 6)}ms`
  const minutes = Math.floor(ms / 60_000)
  const seconds = `${trimFraction((ms - minutes * 60_000) / 1000, 9)}s`
  if (minutes === 0) return sign + seconds
  const hours = Math.floor(minutes / 60)
  return hours === 0 ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60}m${seconds}`
}

/** Fixed notation of `value` with at most `digits` decimals (1 or more) and without trailing zeros. */
function trimFraction(value: number, digits: number): string {
  const text = value.toFixed(digits)
  let end = text.length
  while (text[end - 1] === '0') end--
  return text.slice(0, text[end - 1] === '.' ? end - 1 : end)
}
