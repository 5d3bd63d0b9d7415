import type { ApiObject } from '../../kube/api.ts'
import { isSame } from '../record/fields.ts'
import { normalizeName, type SpecEndpoint } from '../record/spec-endpoint.ts'
import { authoritativeHost } from './authoritative-record.ts'
import { type EndpointState, readEndpointStates, sortTargets } from './endpoint-states.ts'
import { findConflict, show } from './find-conflict.ts'
import type { RegistryNote } from './registry.ts'
import { composeEndpointState, inOrder, isSteered, unite } from './unite.ts'

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
  /** What programs that read `spec.endpoints` alone get otherwise than the owner wants; one line each. */
  readonly disputes: readonly string[]
  /** All owners of the host itself, sorted: `status.domainOwners`. */
  readonly owners: readonly string[]
  /** What the owner contributes: what it wants without what it can't have. */
  readonly contributed: readonly SpecEndpoint[]
}

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
  const disputes: string[] = []
  const endpoints: ApiObject[] = []
  const owners: string[] = []
  const contributed: SpecEndpoint[] = []
  for (const endpointState of endpointStates.values()) {
    const { desired } = endpointState
    const conflict = desired === undefined ? '' : findConflict(desired, endpointState, scope)
    if (conflict !== '') conflicts.push(conflict)
    const given = contributionOf(endpointState, owner, conflict === '')
    if (given !== undefined) contributed.push(given)
    const settled = settleEndpoint(endpointState, wanted, conflict === '', disputes)
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
    disputes,
    owners: sortTargets(owners),
    contributed,
  }
}

/**
 * What our owner has at an endpoint: what it wants, or what it got before if it can't have that. Undefined = nothing.
 */
function contributionOf(
  { current, notes, desired }: EndpointState,
  owner: string,
  isFree: boolean,
): SpecEndpoint | undefined {
  if (isFree) return desired
  const note = notes.get(owner)
  if (current === undefined || note === undefined) return undefined
  return { ...current, targets: note.targets ?? current.targets }
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
  disputes: string[],
): Settled | undefined {
  const { current, notes, desired } = endpointState
  // An endpoint that our owner can't have is not changed, and keeps our note.
  if (!isFree) return current && { endpoint: current, notes: inOrder(notes.values()) }
  if (current !== undefined && notes.size === 0) return { endpoint: current, notes: [] }
  const others = inOrder(notes.values()).filter((note) => note.owner !== wanted.owner)
  const known = others.map((note) => withTargets(note, endpointState, others))
  if (desired === undefined) {
    if (others.length === 0 || current === undefined) return undefined
    return { endpoint: unite(current, current, known, disputes), notes: others }
  }
  const ours = noteOf(desired, wanted)
  const all = inOrder([...known, ours])
  if (current === undefined || others.length === 0) {
    return { endpoint: unite(desired, current ?? desired, all, disputes), notes: all }
  }
  const [{ owner: first }] = all as [RegistryNote]
  const base = first === wanted.owner ? desired : current
  if (base === current && isSteered(desired) && !hasSameContent(desired, current)) {
    const name = `'${show(desired.dnsName)}' with set identifier '${show(desired.setIdentifier)}'`
    disputes.push(
      `in spec.endpoints, endpoint ${name} has the values of owner '${show(first)}'; give each owner its own set identifier`,
    )
  }
  // Targets that are only inferred for other owners are not written: another operator may maintain
  // their notes.
  return { endpoint: unite(base, current, all, disputes), notes: inOrder([...others, ours]) }
}

function noteOf(desired: SpecEndpoint, { owner, group, cluster }: DesiredEndpoints): RegistryNote {
  const { targets, ttlSeconds } = desired
  return { owner, group, cluster, targets: sortTargets(targets), ttlSeconds, note: undefined }
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

function hasSameContent(a: SpecEndpoint, b: SpecEndpoint): boolean {
  const contentOf = (e: SpecEndpoint) => [
    sortTargets(e.targets),
    e.providerSpecific.map((p) => `${p.name}=${p.value}`).sort(),
  ]
  return isSame(contentOf(a), contentOf(b))
}

/** True if both have the same endpoints, in any order. */
export function isSameSet(a: readonly ApiObject[], b: readonly ApiObject[]): boolean {
  if (a.length !== b.length) return false
  const order = (list: readonly ApiObject[]) => {
    const keyed = list.map((object) => ({ object, key: orderKey(object) }))
    return keyed.sort((x, y) => (x.key < y.key ? -1 : 1)).map(({ object }) => object)
  }
  return isSame(order(a), order(b))
}

function orderKey({ dnsName, recordType, setIdentifier, targets }: ApiObject): string {
  return JSON.stringify([dnsName, recordType, setIdentifier ?? '', targets])
}
