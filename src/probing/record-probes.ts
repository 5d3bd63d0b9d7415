import { createHash } from 'node:crypto'
import { RRType } from '../dns/iana/types.ts'
import { nameKey, printName } from '../dns/name/name.ts'
import { printAddress } from '../dns/text/address.ts'
import type { DnsRecord, Endpoint, HealthProbe } from '../record/dns-record.ts'
import type { HealthCheck } from '../record/health-check.ts'
import type { Probe } from './probe.ts'

/** Longest name of a Kubernetes object (RFC 1123 subdomain). */
const NAME_CHARACTERS_MAX = 253
const DIGEST_CHARACTERS = 16

/**
 * What the health check of a record is about: every address of its A and AAAA endpoints, and the targets of
 * CNAMEs that lead out of it, as text, each once, in order.
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

/** The name of the DNSHealthCheckProbe for one leaf of a record. */
export function probeName(recordName: string, leaf: string): string {
  // A name of Kubernetes has no colons; two in a row would end up beside a dot.
  const name = `${recordName}-${leaf.replace(/[^a-z0-9.-]/g, '-').replace(/^-+|-+$/g, '') || 'any'}`
  if (name.length <= NAME_CHARACTERS_MAX) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS)
  return `${name.slice(0, NAME_CHARACTERS_MAX - DIGEST_CHARACTERS - 1).replace(/[.-]+$/, '')}-${digest}`
}

/** The probes that a record asks for by its own health check. */
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

/** The probe that a DNSHealthCheckProbe asks for. */
export function probeOfResource(resource: HealthProbe, check: HealthCheck): Probe {
  const { namespace, name, address, hostname } = resource
  return { id: `${namespace}/${name}`, namespace, address, hostname, check }
}
