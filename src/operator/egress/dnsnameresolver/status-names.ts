import { TTL_SECONDS_MAX } from '../../../client/resolver/observation.ts'
import type {
  StatusAddress,
  StatusName,
  StatusRemoval,
} from '../../../egress/policies/openshift/removal.ts'
import { type ApiObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { itemsOf, mappingOf, textsOf } from '../../record/fields.ts'

/**
 * Reads `status.resolvedNames` of a DNSNameResolver, whose addresses have a TTL each, or of an
 * EgressFirewallDNSName, whose names have one TTL.
 */
export function readStatusNames(object: ApiObject): readonly StatusName[] {
  return itemsOf(mappingOf(object, 'status'), 'resolvedNames').map((item) => {
    const dnsName = textOf(item, 'dnsName')
    const endMs = endOf(item.lastLookupTime, item.ttl)
    const plain = textsOf(item, 'ips').map((ip) => ({ ip, endMs }))
    const timed = itemsOf(item, 'resolvedAddresses').map(readAddress)
    return { dnsName, addresses: [...plain, ...timed] }
  })
}

function readAddress(item: ApiObject): StatusAddress {
  return { ip: textOf(item, 'ip'), endMs: endOf(item.lastLookupTime, item.ttlSeconds) }
}

/** Milliseconds since 1970. An invalid time or TTL has ended. */
function endOf(lookup: JsonValue | undefined, ttl: JsonValue | undefined): number {
  const lookupMs = typeof lookup === 'string' ? Date.parse(lookup) : Number.NaN
  const seconds = typeof ttl === 'number' ? Math.min(Math.max(ttl, 0), TTL_SECONDS_MAX) : 0
  return Number.isNaN(lookupMs) ? 0 : lookupMs + seconds * 1000
}

/** `status.resolvedNames` without what is removed. Fields that we do not know are kept. */
export function withoutRemoved(object: ApiObject, { names, addresses }: StatusRemoval): JsonValue {
  const items = itemsOf(mappingOf(object, 'status'), 'resolvedNames')
  return items
    .filter((item) => !names.has(textOf(item, 'dnsName')))
    .map((item) => {
      const dead = addresses.get(textOf(item, 'dnsName'))
      if (dead === undefined) return item
      const kept: { [field: string]: JsonValue } = { ...item }
      if (item.ips !== undefined) kept.ips = textsOf(item, 'ips').filter((ip) => !dead.has(ip))
      if (item.resolvedAddresses !== undefined) {
        const timed = itemsOf(item, 'resolvedAddresses')
        kept.resolvedAddresses = timed.filter((address) => !dead.has(textOf(address, 'ip')))
      }
      return kept
    })
}
