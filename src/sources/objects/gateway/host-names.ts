import { scanAddress } from '../../../dns/text/address.ts'

const WILDCARD = '*.'
const HOST_CHARACTERS_MAX = 253
/** RFC 1123. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Returns a host name of a listener or a route in lower case, without a final dot; '' = any host. Undefined = it is no
 * DNS name. It may begin with `*.`.
 */
export function scanHostName(text: string): string | undefined {
  const name = text.toLowerCase().replace(/\.$/, '')
  if (text === '') return ''
  if (name.length > HOST_CHARACTERS_MAX || scanAddress(name) !== undefined) return undefined
  const labels = (name.startsWith(WILDCARD) ? name.slice(WILDCARD.length) : name).split('.')
  return labels.every((label) => LABEL.test(label)) ? name : undefined
}

/**
 * Returns the host names that two of them have in common (Gateway API, `Hostname`): `*.a.example` contains all names
 * below `a.example`, and '' all names. Undefined = none. Both are as `scanHostName` returns them.
 */
export function intersectHosts(a: string, b: string): string | undefined {
  if (contains(a, b)) return b
  return contains(b, a) ? a : undefined
}

function contains(wide: string, narrow: string): boolean {
  if (wide === '' || wide === narrow) return true
  return wide.startsWith(WILDCARD) && narrow.endsWith(wide.slice(1)) && narrow !== wide.slice(1)
}
