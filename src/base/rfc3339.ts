/** Prints milliseconds since the epoch as a time of RFC 3339, in UTC and whole seconds. */
export function printTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Reads a time of RFC 3339; the seconds may be missing. Returns milliseconds since the epoch. */
export function scanTime(text: string): number | undefined {
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
