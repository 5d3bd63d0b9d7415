import type { YamlValue } from '../yaml/scan-block-yaml.ts'
import { isMapping } from './fields.ts'

/** `kuadrant-<hash of the owner>-<type>-<name>`; without the hash before v0.12 of the operator. */
const REGISTRY_NAME =
  /^kuadrant-(?:[0-9a-z]{8}-)?(?:a|aaaa|cname|ns|txt|mx|srv|caa|ptr|naptr|https|svcb)-/i
/** In quotes or not. */
const REGISTRY_VALUE = /^"?(?:\\")?heritage=external-dns(?:[,"\\]|$)/

/**
 * True for an endpoint that notes who owns others: a matter of the operators that keep it in the same
 * record, and none of the public's. Name and value must both say so. Its name need not be fit for
 * the DNS: the prefix may make its first label longer than one can be.
 */
export function isRegistryText(endpoint: YamlValue): boolean {
  if (!isMapping(endpoint) || endpoint.recordType !== 'TXT') return false
  const { dnsName, targets } = endpoint
  if (typeof dnsName !== 'string' || !REGISTRY_NAME.test(dnsName)) return false
  if (!Array.isArray(targets) || targets.length === 0) return false
  return targets.every((target) => typeof target === 'string' && REGISTRY_VALUE.test(target))
}
