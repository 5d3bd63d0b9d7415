/** Syntax of a site name: short enough for a log line, and without characters that a log must escape. */
const SITE = /^[0-9A-Za-z](?:[0-9A-Za-z._-]{0,61}[0-9A-Za-z])?$/

/** True for a valid site name: 1 to 63 letters, digits, `.`, `_` and `-`. */
export function isSite(text: string): boolean {
  return SITE.test(text)
}
