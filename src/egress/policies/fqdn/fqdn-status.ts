import { printTime } from '../../../base/rfc3339.ts'
import { type ApiObject, isObject, textOf } from '../../../kube/api.ts'

/** What `status.cache` has for one name. Times in milliseconds since 1970. */
export interface CachedName {
  /** When the name is resolved again. */
  readonly nextMs: number
  /** When each address is removed unless a server returns it again, by CIDR. */
  readonly expiryMs: ReadonlyMap<string, number>
}

/** By the names as they are written in the policy. */
export type NameCache = ReadonlyMap<string, CachedName>

export interface FqdnStatus {
  readonly state: 'Active' | 'Pending'
  /** Why the policy is pending; '' = it is active. */
  readonly reason: string
  /** When the first name is resolved again; undefined = the policy has no names. */
  readonly nextSyncMs: number | undefined
  /** undefined = the API has no field for it. */
  readonly cache: NameCache | undefined
}

/** Reads `status.cache`. Entries without a valid time count as missing. */
export function readCache(status: ApiObject[string] | undefined): NameCache {
  const cache = new Map<string, CachedName>()
  const fields = isObject(status) && isObject(status.cache) ? status.cache : {}
  for (const [fqdn, entry] of Object.entries(fields)) {
    if (!isObject(entry)) continue
    const expiryMs = new Map<string, number>()
    for (const cidr of Object.keys(isObject(entry.ipExpiration) ? entry.ipExpiration : {})) {
      const endMs = Date.parse(textOf(entry.ipExpiration, cidr))
      if (!Number.isNaN(endMs)) expiryMs.set(cidr, endMs)
    }
    const nextMs = Date.parse(textOf(entry, 'nextUdateTime'))
    cache.set(fqdn, { nextMs: Number.isNaN(nextMs) ? 0 : nextMs, expiryMs })
  }
  return cache
}

/** Returns `status` in the form of the API. Times are rounded up to seconds, so that nothing expires early. */
export function printStatus({ state, reason, nextSyncMs, cache }: FqdnStatus): ApiObject {
  return {
    state,
    ...(reason === '' ? {} : { reason }),
    ...(nextSyncMs === undefined ? {} : { nextSyncTime: printEnd(nextSyncMs) }),
    ...(cache === undefined || cache.size === 0 ? {} : { cache: printCache(cache) }),
  }
}

function printCache(cache: NameCache): ApiObject {
  const entries = [...cache].sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    entries.map(([fqdn, { nextMs, expiryMs }]) => {
      const expiry = [...expiryMs].sort(([a], [b]) => (a < b ? -1 : 1))
      const ipExpiration = Object.fromEntries(expiry.map(([cidr, ms]) => [cidr, printEnd(ms)]))
      // The spelling of the API.
      return [fqdn, { nextUdateTime: printEnd(nextMs), ipExpiration }]
    }),
  )
}

/**
 * True if the status that the API has is so different that it must be written. Times that differ by
 * up to `toleranceMs` are not written, except a lookup that has moved to an earlier time.
 */
export function differs(
  stored: ApiObject[string] | undefined,
  { state, reason, cache }: FqdnStatus,
  toleranceMs: number,
): boolean {
  if (textOf(stored, 'state') !== state || textOf(stored, 'reason') !== reason) return true
  if (cache === undefined) return false
  const known = readCache(stored)
  if (known.size !== cache.size) return true
  return [...cache].some(([fqdn, { nextMs, expiryMs }]) => {
    const before = known.get(fqdn)
    if (before === undefined || before.expiryMs.size !== expiryMs.size) return true
    if (before.nextMs - nextMs > toleranceMs) return true
    return [...expiryMs].some(([cidr, endMs]) => {
      const beforeMs = before.expiryMs.get(cidr)
      return beforeMs === undefined || Math.abs(endMs - beforeMs) > toleranceMs
    })
  })
}

/** Rounds up, so that no address ends before its time. */
function printEnd(ms: number): string {
  return printTime(Math.ceil(ms / 1000) * 1000)
}
