import { endpointKey, type SpecEndpoint } from '../record/spec-endpoint.ts'
import { isRegistryNote, type RegistryNote, scanNotes } from './registry.ts'

/** State of one endpoint of an authoritative record. */
export interface EndpointState {
  readonly current: SpecEndpoint | undefined
  /** By owner; empty = the endpoint has no owner. */
  readonly notes: ReadonlyMap<string, RegistryNote>
  /** What our owner wants now, and what it wanted when it last succeeded. */
  readonly desired: SpecEndpoint | undefined
  readonly previous: SpecEndpoint | undefined
}

/** Endpoints and their owners, by `endpointKey`. */
export function readEndpointStates(
  current: readonly SpecEndpoint[],
  desired: readonly SpecEndpoint[],
  previous: readonly SpecEndpoint[],
): Map<string, EndpointState> {
  const registry = current.filter(isRegistryNote)
  const noted = new Set(registry)
  const endpoints = byKey(current.filter((endpoint) => !noted.has(endpoint)))
  const wanted = byKey(desired.filter((endpoint) => !isRegistryNote(endpoint)))
  const last = byKey(previous)
  const wildcards = new Set<string>()
  for (const { dnsName } of [...endpoints.values(), ...wanted.values()]) {
    if (dnsName.startsWith('*')) wildcards.add(dnsName.replace(/^\*/, 'wildcard'))
  }
  const notes = readRegistryNotes(registry, wildcards)
  const endpointStates = new Map<string, EndpointState>()
  for (const key of [...endpoints.keys(), ...wanted.keys()].sort()) {
    endpointStates.set(key, {
      current: endpoints.get(key),
      notes: notes.get(key) ?? new Map(),
      desired: wanted.get(key),
      previous: last.get(key),
    })
  }
  return endpointStates
}

/** Merges endpoints with the same key into one, with the targets of all of them. */
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

/**
 * Reads the registry notes. A note that lists its targets takes precedence over an older one that
 * does not.
 */
function readRegistryNotes(
  registry: readonly SpecEndpoint[],
  wildcards: ReadonlySet<string>,
): Map<string, Map<string, RegistryNote>> {
  const found = new Map<string, Map<string, RegistryNote>>()
  const scanned = registry.flatMap((endpoint) => scanNotes(endpoint, wildcards))
  for (const { key, ...note } of scanned) {
    const notes = found.get(key) ?? new Map<string, RegistryNote>()
    const known = notes.get(note.owner)
    if (known?.targets === undefined) notes.set(note.owner, note)
    found.set(key, notes)
  }
  return found
}

export function sortTargets(targets: Iterable<string>): string[] {
  return [...new Set(targets)].sort()
}
