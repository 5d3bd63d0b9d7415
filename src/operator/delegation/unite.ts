import type { ApiObject } from '../../kube/api.ts'
import { composeSpecEndpoint, type SpecEndpoint } from '../record/spec-endpoint.ts'
import { sortTargets } from './endpoint-states.ts'
import { show } from './find-conflict.ts'
import { composeNote, joinOwners, type Note, type RegistryNote } from './registry.ts'

const CNAME = 'CNAME'

/** Sorted by owner. */
export function inOrder(notes: Iterable<RegistryNote>): RegistryNote[] {
  return [...notes].sort((a, b) => (a.owner < b.owner ? -1 : 1))
}

/** `base` with the combined targets and TTL of all notes. `disputes`: as in `EndpointPlan`. */
export function unite(
  base: SpecEndpoint,
  current: SpecEndpoint,
  notes: readonly RegistryNote[],
  disputes: string[],
): SpecEndpoint {
  const object = current.object
  const ttls = notes.map((note) => note.ttlSeconds ?? 0).filter((ttl) => ttl > 0)
  const ttlSeconds = ttls.length === 0 ? base.ttlSeconds : Math.min(...ttls)
  if (isSteered(base)) return { ...base, object, targets: sortTargets(base.targets), ttlSeconds }
  const targets = sortTargets(notes.flatMap((note) => note.targets ?? []))
  if (base.recordType !== CNAME || targets.length < 2)
    return { ...base, object, targets, ttlSeconds }
  const [first] = targets
  disputes.push(
    `in spec.endpoints, '${show(base.dnsName)}' has the CNAME of one owner only: '${show(first!)}'; keep one CNAME`,
  )
  return { ...base, object, targets: [first!], ttlSeconds }
}

export function isSteered({ setIdentifier, providerSpecific }: SpecEndpoint): boolean {
  return setIdentifier !== '' || providerSpecific.length > 0
}

/** The endpoint and its registry notes. Notes of other owners are copied without change. */
export function composeEndpointState(
  endpoint: SpecEndpoint,
  notes: readonly RegistryNote[],
  owner: string,
): ApiObject[] {
  if (notes.length === 0) return [endpoint.object]
  const owners = notes.map((note) => note.owner)
  const isValid = (note: Note) => !note.owners.includes(owner) || owners.includes(owner)
  const registry = notes.map((note) => {
    return note.note !== undefined && isValid(note.note)
      ? note.note.object
      : composeNote(endpoint, note)
  })
  return [composeSpecEndpoint(endpoint, joinOwners(owners)), ...new Set(registry)]
}
