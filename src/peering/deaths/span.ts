const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
/** Up to here, a time is printed in seconds alone. */
const SECONDS_MAX = 119

/** Prints a time for a reader, rounded up to seconds: `40 s`, `35 min 10 s`, `24 h`. */
export function printSpan(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / SECOND_MS)
  if (seconds <= SECONDS_MAX) return `${seconds} s`
  const ms = seconds * SECOND_MS
  const parts = [
    [Math.floor(ms / HOUR_MS), 'h'],
    [Math.floor((ms % HOUR_MS) / MINUTE_MS), 'min'],
    [Math.floor((ms % MINUTE_MS) / SECOND_MS), 's'],
  ] as const
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}
