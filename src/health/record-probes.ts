import { createHash } from 'node:crypto'
import { RRType } from '../dns/iana/types.ts'
import { nameKey, printName } from '../dns/name/name.ts'
import { printAddress } from '../dns/text/address.ts'
import type { DnsRecord, Endpoint, HealthProbe } from '../dnsrecord/dns-record.ts'
import type { HealthCheck } from '../dnsrecord/health-check.ts'
import type { Probe } from './probes/probe.ts'

/** Maximum length of a Kubernetes object's name (RFC 1123 subdomain). */
const NAME_CHARACTERS_MAX = 253
const DIGEST_CHARACTERS = 16

/**
 * Returns what the health check of a record covers: the addresses of its A and AAAA endpoints, and
 * the CNAME targets outside of the record. As text, each once, in order.
 */
export function findLeaves(endpoints: readonly Endpoint[]): readonly string[] {
  const owners = new Set(endpoints.map((endpoint) => nameKey(endpoint.owner)))
  const leaves = new Set<string>()
  for (const { type, rdata } of endpoints) {
    for (const target of rdata) {
      if (type === RRType.A) leaves.add(printAddress(target, 1))
      else if (type === RRType.AAAA) leaves.add(printAddress(target, 2))
      else if (type === RRType.CNAME && !owners.has(nameKey(target))) {
        leaves.add(printName(target).slice(0, -1))
      }
    }
  }
  return [...leaves].sort()
}

/** Returns the name of the DNSHealthCheckProbe for one leaf of a record. */
export function probeName(recordName: string, leaf: string): string {
  // A Kubernetes name has no colons. Two colons in a row would put `-` beside a dot.
  const name = `${recordName}-${leaf.replace(/[^a-z0-9.-]/g, '-').replace(/^-+|-+$/g, '') || 'any'}`
  if (name.length <= NAME_CHARACTERS_MAX) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS)
  return `${name.slice(0, NAME_CHARACTERS_MAX - DIGEST_CHARACTERS - 1).replace(/[.-]+$/, '')}-${digest}`
}

/** Returns the probes that a record requests by its own health check. */
export function probesOfRecord(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  record: Pick<DnsRecord, 'rootHost' | 'endpoints'>,
  check: HealthCheck,
): readonly Probe[] {
  const hostname = printName(record.rootHost).slice(0, -1)
  return findLeaves(record.endpoints).map((address) => {
    return { id: `${namespace}/${probeName(name, address)}`, namespace, address, hostname, check }
  })
}

/** Returns the probe that a DNSHealthCheckProbe requests. */
export function probeOfResource(resource: HealthProbe, check: HealthCheck): Probe {
  const { namespace, name, address, hostname } = resource
  return { id: `${namespace}/${name}`, namespace, address, hostname, check }
}
