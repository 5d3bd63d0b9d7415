import { InputError } from '../../base/errors.ts'

/** RFC 1123 section 2.1, as the Kubernetes API requires. */
export const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Reads WATCH_NAMESPACES: a comma list, with optional blanks around names; empty = all namespaces.
 * Throws InputError for an invalid namespace.
 */
export function scanNamespaces(text: string): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const bad = names.find((name) => !NAMESPACE.test(name))
  if (bad === undefined) return names
  const cure = 'write names of lower case letters, digits and dashes, separated by commas'
  throw new InputError(
    undefined,
    `WATCH_NAMESPACES: ${JSON.stringify(bad)} is not a namespace; ${cure}`,
  )
}
