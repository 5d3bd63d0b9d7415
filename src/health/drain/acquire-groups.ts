import { readFileSync } from 'node:fs'
import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { printName } from '../../dns/name/name.ts'
import { scanResolvConf } from '../../dns/resolv-conf.ts'
import { GroupLookup, type GroupLookupOptions } from './group-lookup.ts'

const RESOLV_CONF = '/etc/resolv.conf'

/**
 * Returns the lookup of the active groups of a zone. All callers with the same zone and servers share
 * it. `servers`: a text that is equal for equal servers.
 */
export function acquireGroupLookup(
  options: GroupLookupOptions,
  servers: string,
  resources: ResourceRegistry,
): ResourceLease<GroupLookup> {
  const key = `${printName(options.zone)} ${servers}`
  return resources.acquire(GroupLookup, key, () => new GroupLookup(options))
}

/** Returns the resolvers of the system, or a string that says why they can't be read. */
export function readSystemServers(): readonly HostPort[] | string {
  try {
    return scanResolvConf(readFileSync(RESOLV_CONF, 'utf8')).servers
  } catch (error) {
    if (!isSystemError(error)) throw error
    return error.message
  }
}
