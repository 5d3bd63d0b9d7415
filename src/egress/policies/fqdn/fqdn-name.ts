import { domainToASCII } from 'node:url'
import { lowerName, scanName } from '../../../dns/name/name.ts'

const LABEL = /^[\w-]+$/
/** Letters, digits, `-`, `_`, `.` and everything beyond ASCII. */
const NAME = /^[\w.\u0080-\uffff-]*$/
const BEYOND_ASCII = /[^\0-\x7f]/

/**
 * Returns the lower-case wire form of a domain name of a policy; undefined = it is invalid.
 * Internationalised names are converted (IDNA); wildcards are invalid. Underscores, and labels
 * `xn--…` that IDNA does not define, are valid here: the definition refuses them, but objects may be
 * older than it.
 */
export function scanFqdn(text: string): Uint8Array | undefined {
  // The conversion would cut off what follows a slash.
  if (!NAME.test(text)) return undefined
  const ascii = BEYOND_ASCII.test(text) ? domainToASCII(text) : text
  const labels = ascii.replace(/\.$/, '').split('.')
  if (!labels.every(isLabel)) return undefined
  const name = scanName(ascii.endsWith('.') ? ascii : `${ascii}.`)
  return name === undefined ? undefined : lowerName(name)
}

function isLabel(label: string): boolean {
  return LABEL.test(label) && !label.startsWith('-') && !label.endsWith('-')
}
