import type { ApiObject } from '../../kube/api.ts'
import { isSame } from '../record/fields.ts'
import { composeSpecEndpoint, normalizeName, type SpecEndpoint } from '../record/spec-endpoint.ts'
import { authoritativeHost } from './authoritative-record.ts'
import { type EndpointState, readEndpointStates, sortTargets } from './endpoint-states.ts'
import { findConflict, show } from './find-conflict.ts'
import { composeNote, joinOwners, type Note, type RegistryNote } from './registry.ts'

/** What one owner, a delegating record, wants in an authoritative record. */
export interface DesiredEndpoints {
  readonly owner: string
  /** Group of the operator; '' = none. */
  readonly group: string
  /** Short id of the owner's cluster; '' = this one. */
  readonly cluster: string
  readonly rootHost: string
  /** Empty = the owner is removed. */
  readonly desired: readonly SpecEndpoint[]
  /** What the owner wanted when it last succeeded. */
  readonly previous: readonly SpecEndpoint[]
}

export interface EndpointPlan {
  /** New `spec.endpoints`; empty = the record is to be deleted. */
  readonly endpoints: readonly ApiObject[]
  readonly isChanged: boolean
  /** What the owner can't have, and why; one line each. */
  readonly conflicts: readonly string[]
  /** All owners of the host itself, sorted: `status.domainOwners`. */
  readonly owners: readonly string[]
}

const CNAME = 'CNAME'

/**
 * The endpoints of an authoritative record after `wanted` is applied. The result depends only on
 * these two, so it converges in any order of writers.
 *
 * - Endpoints with the same name and type and without a set identifier are united. The registry
 *   lists each owner's targets, so a target is removed only with the last owner that has it. A
 *   CNAME keeps the first target of all.
 * - With a set identifier, or steered, the endpoint of the owner with the lowest id is used.
 * - The lowest TTL is used.
 * - An owner never removes endpoints of other owners, nor endpoints without an owner
 *   (`findConflict`).
 */
export function planEndpoints(
  current: readonly SpecEndpoint[],
  wanted: DesiredEndpoints,
): EndpointPlan {
  const { owner } = wanted
  const endpointStates = readEndpointStates(current, wanted.desired, wanted.previous)
  const scope = {
    owner,
    host: normalizeName(authoritativeHost(wanted.rootHost)),
    endpointStates: [...endpointStates.values()],
  }
  const conflicts: string[] = []
  const endpoints: ApiObject[] = []
  const owners: string[] = []
  for (const endpointState of endpointStates.values()) {
    const { desired } = endpointState
    const conflict = desired === undefined ? '' : findConflict(desired, endpointState, scope)
    if (conflict !== '') conflicts.push(conflict)
    const settled = settleEndpoint(endpointState, wanted, conflict === '', conflicts)
    if (settled === undefined) continue
    const { endpoint, notes } = settled
    endpoints.push(...composeEndpointState(endpoint, notes, owner))
    if (authoritativeHost(endpoint.dnsName) === scope.host)
      owners.push(...notes.map((c) => c.owner))
  }
  const present = current.map(({ object }) => object)
  const isChanged = !isSameSet(endpoints, present)
  return {
    endpoints: isChanged ? endpoints : present,
    isChanged,
    conflicts,
    owners: sortTargets(owners),
  }
}

interface Settled {
  readonly endpoint: SpecEndpoint
  readonly notes: readonly RegistryNote[]
}

/** The new state of an endpoint; undefined = it is removed. */
function settleEndpoint(
  endpointState: EndpointState,
  wanted: DesiredEndpoints,
  isFree: boolean,
  conflicts: string[],
): Settled | undefined {
  const { current, notes, desired } = endpointState
  // An endpoint that our owner can't have is not changed, and keeps our note.
  if (!isFree) return current && { endpoint: current, notes: inOrder(notes.values()) }
  if (current !== undefined && notes.size === 0) return { endpoint: current, notes: [] }
  const others = inOrder(notes.values()).filter((note) => note.owner !== wanted.owner)
  const known = others.map((note) => withTargets(note, endpointState, others))
  if (desired === undefined) {
    if (others.length === 0 || current === undefined) return undefined
    return { endpoint: unite(current, current, known, conflicts), notes: others }
  }
  const ours = noteOf(desired, wanted)
  const all = inOrder([...known, ours])
  if (current === undefined || others.length === 0) {
    return { endpoint: unite(desired, current ?? desired, all, conflicts), notes: all }
  }
  const [{ owner: first }] = all as [RegistryNote]
  const base = first === wanted.owner ? desired : current
  if (base === current && isSteered(desired) && !hasSameContent(desired, current)) {
    const name = `'${show(desired.dnsName)}' with set identifier '${show(desired.setIdentifier)}'`
    conflicts.push(`owner conflict, endpoint ${name} has the values of owner '${show(first)}'`)
  }
  // Targets that are only inferred for other owners are not written: another operator may maintain
  // their notes.
  return { endpoint: unite(base, current, all, conflicts), notes: inOrder([...others, ours]) }
}

function noteOf(desired: SpecEndpoint, { owner, group, cluster }: DesiredEndpoints): RegistryNote {
  const { targets, ttlSeconds } = desired
  return { owner, group, cluster, targets: sortTargets(targets), ttlSeconds, note: undefined }
}

/** Sorted by owner. */
function inOrder(notes: Iterable<RegistryNote>): RegistryNote[] {
  return [...notes].sort((a, b) => (a.owner < b.owner ? -1 : 1))
}

/**
 * Fills in the targets of a note that lists none: those that no other owner has, or all targets if
 * none remain.
 */
function withTargets(
  note: RegistryNote,
  { current, notes, previous }: EndpointState,
  others: readonly RegistryNote[],
): RegistryNote {
  const ttlSeconds = note.ttlSeconds ?? current?.ttlSeconds
  if (note.targets !== undefined || current === undefined) return { ...note, ttlSeconds }
  const ours = [...notes.values()].find((one) => !others.includes(one))
  const noted = new Set(others.flatMap((one) => one.targets ?? []))
  for (const target of ours?.targets ?? previous?.targets ?? []) noted.add(target)
  const rest = current.targets.filter((target) => !noted.has(target))
  return { ...note, ttlSeconds, targets: rest.length > 0 ? rest : current.targets }
}

/** `base` with the combined targets and TTL of all notes. */
function unite(
  base: SpecEndpoint,
  current: SpecEndpoint,
  notes: readonly RegistryNote[],
  conflicts: string[],
): SpecEndpoint {
  const object = current.object
  const ttls = notes.map((note) => note.ttlSeconds ?? 0).filter((ttl) => ttl > 0)
  const ttlSeconds = ttls.length === 0 ? base.ttlSeconds : Math.min(...ttls)
  if (isSteered(base)) return { ...base, object, targets: sortTargets(base.targets), ttlSeconds }
  const targets = sortTargets(notes.flatMap((note) => note.targets ?? []))
  if (base.recordType !== CNAME || targets.length < 2)
    return { ...base, object, targets, ttlSeconds }
  const [first] = targets
  conflicts.push(
    `owner conflict, endpoint '${show(base.dnsName)}' has the CNAMEs of several owners: '${show(first!)}' is served`,
  )
  return { ...base, object, targets: [first!], ttlSeconds }
}

function isSteered({ setIdentifier, providerSpecific }: SpecEndpoint): boolean {
  return setIdentifier !== '' || providerSpecific.length > 0
}

function hasSameContent(a: SpecEndpoint, b: SpecEndpoint): boolean {
  const contentOf = (e: SpecEndpoint) => [
    sortTargets(e.targets),
    e.providerSpecific.map((p) => `${p.name}=${p.value}`).sort(),
  ]
  return isSame(contentOf(a), contentOf(b))
}

/** The endpoint and its registry notes. Notes of other owners are copied without change. */
function composeEndpointState(
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

/** True if both have the same endpoints, in any order. */
function isSameSet(a: readonly ApiObject[], b: readonly ApiObject[]): boolean {
  if (a.length !== b.length) return false
  const order = (list: readonly ApiObject[]) =>
    [...list].sort((x, y) => (orderKey(x) < orderKey(y) ? -1 : 1))
  return isSame(order(a), order(b))
}

function orderKey({ dnsName, recordType, setIdentifier, targets }: ApiObject): string {
  return JSON.stringify([dnsName, recordType, setIdentifier ?? '', targets])
}
