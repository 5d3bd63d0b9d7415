import { RRType } from '../../dns/iana/types.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { DnsRecord, Endpoint } from '../dns-record.ts'
import { type FieldProblem, isMapping } from './fields.ts'
import { isWildcard } from './names.ts'

const ASTERISK = 0x2a
const NOTHING: readonly FieldProblem[] = []

/** Finds endpoints that are served as written, but that no client can use. `endpoints`: of the resource. */
export function findUnusable(
  endpoints: readonly YamlValue[],
  record: Pick<DnsRecord, 'endpoints'>,
): readonly FieldProblem[] {
  if (!record.endpoints.some(isSuspect)) return NOTHING
  const found: FieldProblem[] = []
  const named = new Set<string>()
  for (const [index, endpoint] of endpoints.entries()) {
    if (!isMapping(endpoint) || typeof endpoint.dnsName !== 'string') continue
    const { dnsName, recordType, targets } = endpoint
    const path = ['spec', 'endpoints', index]
    if (dnsName.includes('*', dnsName.startsWith('*.') ? 1 : 0) && !named.has(dnsName)) {
      named.add(dnsName)
      const message = `${dnsName} is not a wildcard, and answers only queries for this very name: only a leftmost label * is a wildcard (RFC 4592); begin the name with it`
      found.push({ path: [...path, 'dnsName'], message })
    }
    if ((recordType !== 'A' && recordType !== 'AAAA') || !Array.isArray(targets)) continue
    for (const [i, target] of targets.entries()) {
      const what = describeAddress(scanAddress(String(target))?.bytes)
      if (what === '') continue
      const message = `no client can connect to ${target} (${what}) of ${dnsName}; write the address of a server`
      found.push({ path: [...path, 'targets', i], message })
    }
  }
  return found
}

/** True for all endpoints that have a problem, and few others. Runs for each endpoint of a million records. */
function isSuspect({ owner, type, rdata }: Endpoint): boolean {
  for (let i = isWildcard(owner) ? 2 : 0; i < owner.length; i++) {
    if (owner[i] === ASTERISK) return true
  }
  if (type !== RRType.A && type !== RRType.AAAA) return false
  for (const address of rdata) if (describeAddress(address) !== '') return true
  return false
}

/** Returns why an address cannot be that of a server; '' = it can. */
function describeAddress(address: Uint8Array | undefined): string {
  if (address === undefined) return ''
  const first = address[0]!
  if (first > 0 && first < 224) return ''
  const isIPv4 = address.length === 4
  if (isIPv4 ? first >= 224 && first <= 239 : first === 0xff) return 'multicast'
  if (first === 0 && address.every((octet) => octet === 0)) return 'unspecified'
  return isIPv4 && first === 255 && address.every((octet) => octet === 255) ? 'broadcast' : ''
}
