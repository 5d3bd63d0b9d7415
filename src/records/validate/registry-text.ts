import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { isMapping } from './fields.ts'

/**
 * `kuadrant-<hash of the owner>-<type>-<name>`; versions of the operator before v0.12 omit the
 * hash.
 */
const REGISTRY_NAME =
  /^kuadrant-(?:[0-9a-z]{8}-)?(?:a|aaaa|cname|ns|txt|mx|srv|caa|ptr|naptr|https|svcb)-/i
/** With or without quotes. */
const REGISTRY_VALUE = /^"?(?:\\")?heritage=external-dns(?:[,"\\]|$)/

/**
 * True for an endpoint that records the owner of other endpoints. Operators use it in their record,
 * and it is not public. Name and value must both match. Its name may be invalid in the DNS, because
 * the prefix may make its first label too long.
 */
export function isRegistryText(endpoint: YamlValue): boolean {
  if (!isMapping(endpoint) || endpoint.recordType !== 'TXT') return false
  const { dnsName, targets } = endpoint
  if (typeof dnsName !== 'string' || !REGISTRY_NAME.test(dnsName)) return false
  if (!Array.isArray(targets) || targets.length === 0) return false
  return targets.every((target) => typeof target === 'string' && REGISTRY_VALUE.test(target))
}
