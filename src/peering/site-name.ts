/** What a site may be called: short enough for a line of a log, and nothing that a log minds. */
const SITE = /^[0-9A-Za-z](?:[0-9A-Za-z._-]{0,61}[0-9A-Za-z])?$/

/** True for what may be the name of a site: 1 to 63 letters, digits, `.`, `_` and `-`. */
export function isSite(text: string): boolean {
  return SITE.test(text)
}
