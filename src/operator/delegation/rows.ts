import type { ApiObject } from '../../kube/api.ts'
import { type Claim, isClaim, scanClaims } from './registry.ts'
import { endpointKey, readSpecEndpoints, type SpecEndpoint } from './spec-endpoint.ts'

/** All that is known of one endpoint of an authoritative record. */
export interface Row {
  readonly current: SpecEndpoint | undefined
  /** By owner; empty = the endpoint is nobody's. */
  readonly claims: ReadonlyMap<string, Claim>
  /** What our owner wants there now, and what it did when it last succeeded. */
  readonly desired: SpecEndpoint | undefined
  readonly previous: SpecEndpoint | undefined
}

/** Endpoints and their owners, by `endpointKey`. */
export function readRows(
  current: readonly ApiObject[],
  desired: readonly ApiObject[],
  previous: readonly ApiObject[],
): Map<string, Row> {
  const all = readSpecEndpoints(current)
  const registry = all.filter(isClaim)
  const endpoints = byKey(all.filter((endpoint) => !isClaim(endpoint)))
  const wanted = byKey(readSpecEndpoints(desired).filter((endpoint) => !isClaim(endpoint)))
  const last = byKey(readSpecEndpoints(previous))
  const wildcards = new Set<string>()
  for (const { dnsName } of [...endpoints.values(), ...wanted.values()]) {
    if (dnsName.startsWith('*')) wildcards.add(dnsName.replace(/^\*/, 'wildcard'))
  }
  const claims = readClaims(registry, wildcards)
  const rows = new Map<string, Row>()
  for (const key of [...endpoints.keys(), ...wanted.keys()].sort()) {
    rows.set(key, {
      current: endpoints.get(key),
      claims: claims.get(key) ?? new Map(),
      desired: wanted.get(key),
      previous: last.get(key),
    })
  }
  return rows
}

/** Endpoints that nothing tells apart are one with the targets of all. */
function byKey(endpoints: readonly SpecEndpoint[]): Map<string, SpecEndpoint> {
  const found = new Map<string, SpecEndpoint>()
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint)
    const known = found.get(key)
    const targets = sortTargets([...(known?.targets ?? []), ...endpoint.targets])
    found.set(key, known === undefined ? endpoint : { ...known, targets })
  }
  return found
}

/** A claim that tells its targets counts before an older one that does not. */
function readClaims(
  registry: readonly SpecEndpoint[],
  wildcards: ReadonlySet<string>,
): Map<string, Map<string, Claim>> {
  const found = new Map<string, Map<string, Claim>>()
  for (const { key, ...claim } of registry.flatMap((text) => scanClaims(text, wildcards))) {
    const claims = found.get(key) ?? new Map<string, Claim>()
    const known = claims.get(claim.owner)
    if (known?.targets === undefined) claims.set(claim.owner, claim)
    found.set(key, claims)
  }
  return found
}

/** All owners that are noted in an authoritative record, with the short id of their cluster; '' = this one. */
export function readOwners(endpoints: readonly ApiObject[]): ReadonlyMap<string, string> {
  const claims = readSpecEndpoints(endpoints).flatMap((text) => scanClaims(text, new Set()))
  return new Map(claims.map(({ owner, cluster }) => [owner, cluster]))
}

export function sortTargets(targets: Iterable<string>): string[] {
  return [...new Set(targets)].sort()
}
