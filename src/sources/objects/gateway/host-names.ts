import { scanAddress } from '../../../dns/text/address.ts'
import { scanHost } from '../../../records/validate/names.ts'
import { normalHost } from '../targets.ts'

const WILDCARD = '*.'
/** RFC 1123: the API allows no `_` in names of listeners and routes. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/

/**
 * Returns a host name of a listener or a route in lower case, without a final dot; '' = any host. Undefined = it is no
 * DNS name. It may begin with `*.`.
 */
export function scanHostName(text: string): string | undefined {
  if (text === '') return ''
  const name = normalHost(text)
  if (scanHost(name) === undefined || scanAddress(name) !== undefined) return undefined
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
