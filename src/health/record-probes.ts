import { createHash } from 'node:crypto'
import { RRType } from '../dns/iana/types.ts'
import { nameKey, printName } from '../dns/name/name.ts'
import { printAddress } from '../dns/text/address.ts'
import type { DnsRecord, Endpoint, HealthProbe } from '../records/dns-record.ts'
import type { HealthCheck, ProbeAt } from '../records/health-check.ts'
import { isHealthPort } from '../records/validate/probe-properties.ts'
import type { Probe } from './probes/probe.ts'

/** Maximum length of a Kubernetes object's name (RFC 1123 subdomain). */
const NAME_CHARACTERS_MAX = 253
const DIGEST_CHARACTERS = 16

/** A target that is probed with the health check of a record. */
export interface Leaf {
  /** IP address or host name. */
  readonly address: string
  /** That of the first endpoint with this target that has one. */
  readonly probeAt: ProbeAt | undefined
}

/**
 * Returns what the health check of a record covers: the addresses of its A and AAAA endpoints, and
 * the CNAME targets outside of the record. Each address once, in order.
 */
export function findLeaves(endpoints: readonly Endpoint[]): readonly Leaf[] {
  const owners = new Set(endpoints.map((endpoint) => nameKey(endpoint.owner)))
  const leaves = new Map<string, ProbeAt | undefined>()
  for (const { type, rdata, probeAt } of endpoints) {
    for (const target of rdata) {
      const address = printLeaf(type, target, owners)
      if (address !== '') leaves.set(address, leaves.get(address) ?? probeAt)
    }
  }
  const addresses = [...leaves.keys()].sort()
  return addresses.map((address) => ({ address, probeAt: leaves.get(address) }))
}

/** As `findLeaves`, for the addresses that ALIAS endpoints stand for. */
export function findAliasLeaves(endpoints: readonly Endpoint[]): readonly Leaf[] {
  return findLeaves(endpoints.filter(({ aliasOf }) => aliasOf !== undefined))
}

/** Prints a target that is probed; '' = it is not. */
function printLeaf(type: number, target: Uint8Array, owners: ReadonlySet<string>): string {
  if (type === RRType.A) return printAddress(target, 1)
  if (type === RRType.AAAA) return printAddress(target, 2)
  const isOutside = type === RRType.CNAME && !owners.has(nameKey(target))
  return isOutside ? printName(target).slice(0, -1) : ''
}

/** Returns the name of the DNSHealthCheckProbe for one leaf of a record. */
export function probeName(recordName: string, leaf: string): string {
  // A Kubernetes name has no colons. Two colons in a row would put `-` beside a dot.
  const name = `${recordName}-${leaf.replace(/[^a-z0-9.-]/g, '-').replace(/^-+|-+$/g, '') || 'any'}`
  if (name.length <= NAME_CHARACTERS_MAX) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS)
  return `${name.slice(0, NAME_CHARACTERS_MAX - DIGEST_CHARACTERS - 1).replace(/[.-]+$/, '')}-${digest}`
}

/** Returns the probe of one target with the health check of a record. */
export function probeOfLeaf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { rootHost }: Pick<DnsRecord, 'rootHost'>,
  check: HealthCheck,
  { address, probeAt }: Leaf,
): Probe {
  const port = probeAt?.port || check.port
  return {
    id: `${namespace}/${probeName(name, address)}`,
    namespace,
    address,
    ...testAddressOf(probeAt?.address),
    hostname: printName(rootHost).slice(0, -1),
    check: port === check.port ? check : { ...check, port },
  }
}

/** Returns the probe that a DNSHealthCheckProbe requests. */
export function probeOfResource(resource: HealthProbe, check: HealthCheck): Probe {
  const { namespace, name, address, hostname } = resource
  const testAddress = testAddressOf(resource.testAddress)
  return { id: `${namespace}/${name}`, namespace, address, ...testAddress, hostname, check }
}

/**
 * Returns where the DNSHealthCheckProbe probes, for the probes of peers; undefined = these could not do the same. Peers
 * probe with the health checks of their own records, which are of the protocol that `own` has, if it is known.
 */
export function placeOfResource(
  { testAddress: address }: Pick<HealthProbe, 'testAddress'>,
  check: HealthCheck,
  own: HealthCheck | undefined,
): ProbeAt | undefined {
  if (own !== undefined && own.protocol !== check.protocol) return undefined
  const port = isHealthPort(check.port) ? check.port : 0
  return address === '' && port === 0 ? undefined : { address, port }
}

function testAddressOf(testAddress = ''): Pick<Probe, 'testAddress'> {
  return testAddress === '' ? {} : { testAddress }
}
