/** Prints milliseconds since the epoch as a time of RFC 3339, in UTC and whole seconds. */
export function printTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

const TIME =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

/**
 * Reads a time of RFC 3339; the seconds may be missing. Returns milliseconds since the epoch; undefined = the text is
 * not a time, or in UTC its year is not from 0 to 9999.
 */
export function scanTime(text: string): number | undefined {
  const [, year, month, day] = TIME.exec(text) ?? []
  // `Date.parse` reads 30 February as 2 March.
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  const ms = Number(day) <= lastDay ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) || !TIME.test(printTime(ms)) ? undefined : ms
}
