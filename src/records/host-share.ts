import { ROOT_NAME } from '../dns/name/name.ts'
import { lowerNameKey, scanHost, withoutWildcard } from './validate/names.ts'

/** The `lowerNameKey` of the root. */
export const ROOT_KEY = '\0'

/** Namespaces that may have a host and the names below it, whichever namespace owns them. */
export interface HostShare {
  /** ROOT_KEY = all hosts. */
  readonly host: string
  /** Undefined = all namespaces. */
  readonly namespaces: ReadonlySet<string> | undefined
}

/** RFC 1123 section 2.1, as the Kubernetes API requires. */
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/** Reads a host (`.` = all) and namespaces (`*` = all). Returns a string that says what is wrong if it is invalid. */
export function scanShare(words: readonly string[]): HostShare | string {
  const [host = '', ...namespaces] = words
  const name = host === '.' ? ROOT_NAME : scanHost(host)
  if (name === undefined) return `${JSON.stringify(host)} is not a domain name`
  if (namespaces.length === 0) return `${host} needs the namespaces that may have it, or *`
  const bad = namespaces.find((one) => !NAMESPACE.test(one) && one !== '*')
  if (bad !== undefined) return `${JSON.stringify(bad)} is not a namespace`
  const isAll = namespaces.includes('*')
  // A wildcard is below its parent.
  const key = lowerNameKey(withoutWildcard(name))
  return { host: key, namespaces: isAll ? undefined : new Set(namespaces) }
}
