const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** Prints a duration with two units at most: `3 d 4 h`; null = never. */
export function printAge(seconds: number | null): string {
  if (seconds === null) return 'never'
  let rest = Math.max(0, Math.round(seconds))
  const parts: string[] = []
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count} ${unit}`)
  }
  if (rest > 0 || parts.length === 0) parts.push(`${rest} s`)
  return parts.slice(0, 2).join(' ')
}

/** Prints a share from 0 to 1. */
export function printPercent(share: number): string {
  const percent = share * 100
  if (percent > 0 && percent < 0.1) return '< 0.1 %'
  return `${percent.toFixed(percent < 10 && percent % 1 !== 0 ? 1 : 0)} %`
}

/** Prints a number with spaces between thousands. */
export function printNumber(value: number): string {
  return value.toLocaleString('en').replaceAll(',', '\u202f')
}

/** Prints a time of RFC 3339 in the zone of the reader; '' = unknown. */
export function printTime(time: string): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return 'unknown'
  const two = (part: number): string => String(part).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}
