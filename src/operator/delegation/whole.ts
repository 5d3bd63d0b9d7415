import { scanTime } from '../../base/rfc3339.ts'
import { findDownTargets } from '../../health/down-targets.ts'
import { DRAINED_TYPES } from '../../health/drain/selector.ts'
import { selectInService } from '../../health/in-service.ts'
import type { ApiObject } from '../../kube/api.ts'
import { outOf, type PartOwner, type SitePart } from '../../records/site-facts.ts'
import { validateEndpoint } from '../../records/validate/dns-record.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import {
  composeSpecEndpoint,
  endpointKey,
  readSpecEndpoints,
  type SpecEndpoint,
} from '../record/spec-endpoint.ts'
import { type EndpointState, readEndpointStates, sortTargets } from './endpoint-states.ts'
import type { Owners } from './owner-index.ts'
import {
  composeNote,
  isRegistryNote,
  joinOwners,
  type RegistryNote,
  scanNotes,
} from './registry.ts'
import { composeEndpointState, inOrder, isSteered, unite } from './unite.ts'

/*
 * `spec.endpoints` of an authoritative record has only what is in service, because other programs serve it too. The
 * annotation has the rest. Several owners write the record, so each of them restores the whole, changes its own part,
 * and filters again: whatever is in service later, nothing is lost.
 */

/** A part with an owner. */
export interface OwnedPart extends SitePart<ApiObject> {
  readonly owner: PartOwner
}

/** What the owners of an authoritative record contribute, as its annotation has it; empty = not known. */
export function readOwnedParts({ siteFacts }: DnsRecordView): readonly OwnedPart[] {
  if (typeof siteFacts === 'string') return []
  return siteFacts.parts.flatMap(({ owner, ...part }) => (owner ? [{ ...part, owner }] : []))
}

/** All owners of an authoritative record, also those with nothing in service. */
export function readOwners(record: DnsRecordView): readonly PartOwner[] {
  const noted = record.endpoints.flatMap((endpoint) => scanNotes(endpoint, new Set()))
  const parts = readOwnedParts(record).map(({ owner }) => owner)
  const owners = [
    ...parts,
    ...noted.map(({ owner: id, cluster, group }) => ({ id, cluster, group })),
  ]
  return [...new Map(owners.map((owner) => [owner.id, owner])).values()]
}

/**
 * Owners of this cluster whose delegating records are gone, for example because a user removed the finalizer. Only what
 * this operator wrote counts: a note of another program does not name its cluster.
 */
export function departedOwners(authoritative: DnsRecordView, owners: Owners): readonly string[] {
  const notes = authoritative.endpoints.flatMap((endpoint) => scanNotes(endpoint, new Set()))
  const ours = [
    ...readOwnedParts(authoritative).map(({ owner }) => owner),
    ...notes
      .filter(({ ttlSeconds }) => ttlSeconds !== undefined)
      .map(({ owner: id, cluster }) => ({ id, cluster })),
  ].filter(({ cluster }) => cluster === '')
  const ids = [...new Set(ours.map(({ id }) => id))]
  return ids.filter((id) => !owners.isPresent(authoritative.key, id))
}

/**
 * All endpoints of an authoritative record and their registry notes, also those that are out of service. A part whose
 * owner has no note with these targets was filtered.
 */
export function restoreWhole(
  { endpoints }: DnsRecordView,
  parts: readonly OwnedPart[],
): readonly SpecEndpoint[] {
  const states = readEndpointStates(endpoints, [], [])
  const restored = new Map<string, Map<string, SpecEndpoint>>()
  for (const { owner, endpoints: given } of parts) {
    for (const endpoint of readSpecEndpoints(given)) {
      const key = endpointKey(endpoint)
      const noted = states.get(key)?.notes.get(owner.id)?.targets
      if (noted !== undefined && isSameTargets(noted, endpoint.targets)) continue
      const found = restored.get(key) ?? new Map<string, SpecEndpoint>()
      restored.set(key, found.set(owner.id, endpoint))
    }
  }
  if (restored.size === 0) return endpoints
  const replaced = new Set<ApiObject>()
  for (const key of restored.keys()) {
    for (const { note } of states.get(key)?.notes.values() ?? []) {
      if (note !== undefined) replaced.add(note.object)
    }
  }
  const kept = endpoints.filter((one) => {
    return isRegistryNote(one) ? !replaced.has(one.object) : !restored.has(endpointKey(one))
  })
  const owners = new Map(parts.map(({ owner }) => [owner.id, owner]))
  const added = [...restored].flatMap(([key, byOwner]) => {
    const notes = [...byOwner].map(([id, { targets, ttlSeconds }]): RegistryNote => {
      const { cluster, group } = owners.get(id)!
      const noted = { targets: sortTargets(targets), ttlSeconds, note: undefined }
      return { owner: id, cluster, group, ...noted }
    })
    return restoreEndpoint(states.get(key), notes, byOwner)
  })
  return [...kept, ...readSpecEndpoints(added)]
}

function restoreEndpoint(
  state: EndpointState | undefined,
  notes: readonly RegistryNote[],
  byOwner: ReadonlyMap<string, SpecEndpoint>,
): ApiObject[] {
  const others = [...(state?.notes.values() ?? [])].filter(({ owner }) => !byOwner.has(owner))
  const current = state?.current
  const known = others.map((note) => ({ ...note, targets: note.targets ?? current?.targets ?? [] }))
  const [first] = inOrder([...known, ...notes]) as [RegistryNote]
  const [any] = byOwner.values()
  const base = byOwner.get(first.owner) ?? current ?? any!
  const endpoint = unite(base, current ?? base, [...known, ...notes], [])
  return composeEndpointState(endpoint, inOrder([...others, ...notes]), '')
}

/** All endpoints of an authoritative record with their notes, in two forms. */
interface WholeEndpoints {
  readonly objects: readonly ApiObject[]
  readonly states: ReadonlyMap<string, EndpointState>
}

export function readWholeEndpoints(objects: readonly ApiObject[]): WholeEndpoints {
  return { objects, states: readEndpointStates(readSpecEndpoints(objects), [], []) }
}

/** Targets of an endpoint, and those that are out of service. */
interface Member {
  readonly key: string
  readonly targets: readonly string[]
  readonly isOut: (index: number) => boolean
}

/**
 * The endpoints that are in service, with registry notes that fit them. If a name and type has nothing in service, it
 * keeps everything. `parts`: of all owners.
 */
export function selectServed(
  whole: WholeEndpoints,
  parts: readonly OwnedPart[],
  rootHost: string,
  timeMs: number,
): readonly ApiObject[] {
  const members = parts.map((part) => membersOf(part, rootHost, timeMs))
  if (members.every((one) => one === undefined)) return whole.objects
  const { states } = whole
  const all = parts.flatMap((part, i) => members[i] ?? allOf(part))
  const serving = servingTargets(states, all)
  return [...states].flatMap(([key, { current, notes }]) => {
    const inService = serving.get(key)!
    const kept = current!.targets.filter((target) => inService.has(target))
    if (kept.length === current!.targets.length) {
      return [current!.object, ...new Set([...notes.values()].map(({ note }) => note!.object))]
    }
    if (kept.length === 0) return []
    const left = [...notes.values()].flatMap((note): RegistryNote[] => {
      const targets = note.targets?.filter((target) => inService.has(target))
      return targets?.length === 0 ? [] : [{ ...note, targets }]
    })
    const endpoint = { ...current!, targets: kept }
    const owners = joinOwners(left.map(({ owner }) => owner))
    return [composeSpecEndpoint(endpoint, owners), ...left.map((one) => composeNote(endpoint, one))]
  })
}

/** The targets in service of each endpoint, by its key. */
function servingTargets(
  states: ReadonlyMap<string, EndpointState>,
  members: readonly Member[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const byKey = new Map<string, Member[]>()
  for (const member of members) {
    const found = byKey.get(member.key)
    if (found === undefined) byKey.set(member.key, [member])
    else found.push(member)
  }
  const groups = new Map<string, Member[]>()
  for (const [key, { current }] of states) {
    const { dnsName, recordType, targets } = current!
    const known = new Set(targets)
    const present = (byKey.get(key) ?? []).map((member) => restrict(member, known))
    const covered = new Set(present.flatMap((member) => member.targets))
    const rest = targets.filter((target) => !covered.has(target))
    const group = JSON.stringify([dnsName, recordType])
    const all = [...present, { key, targets: rest, isOut: () => false }]
    groups.set(group, [...(groups.get(group) ?? []), ...all])
  }
  const serving = new Map([...states.keys()].map((key) => [key, new Set<string>()]))
  for (const group of groups.values()) {
    const left = selectInService(
      group.map(({ targets, isOut }) => ({ count: targets.length, isOut })),
    )
    for (const [i, { key, targets }] of group.entries()) {
      for (const index of left[i]!) serving.get(key)!.add(targets[index]!)
    }
  }
  return serving
}

/** Another owner may decide what an endpoint is: only its targets count. */
function restrict({ key, targets, isOut }: Member, present: ReadonlySet<string>): Member {
  const indexes = [...targets.keys()].filter((i) => present.has(targets[i]!))
  return { key, targets: indexes.map((i) => targets[i]!), isOut: (i) => isOut(indexes[i]!) }
}

function allOf({ endpoints }: OwnedPart): Member[] {
  return readSpecEndpoints(endpoints).map((endpoint) => {
    return { key: endpointKey(endpoint), targets: endpoint.targets, isOut: () => false }
  })
}

/** What is out of service in a part; undefined = nothing. */
function membersOf(part: OwnedPart, rootHost: string, timeMs: number): Member[] | undefined {
  const down = Object.keys(outOf(part))
  const drained = isDrained(part, timeMs)
  if (down.length === 0 && !drained) return undefined
  const valid = readSpecEndpoints(part.endpoints).flatMap((spec) => {
    const scanned = validateEndpoint(spec.object, rootHost)
    return 'endpoint' in scanned ? [{ spec, endpoint: scanned.endpoint }] : []
  })
  const downTargets = findDownTargets(
    valid.map(({ endpoint }) => endpoint),
    down,
  )
  return valid.map(({ spec, endpoint }, i) => {
    const isWhole = drained && DRAINED_TYPES.has(endpoint.type)
    const isOut = (index: number): boolean => isWhole || downTargets[i]!.has(index)
    return { key: endpointKey(spec), targets: spec.targets, isOut }
  })
}

function isDrained(part: OwnedPart, timeMs: number): boolean {
  return timeMs < drainEndMs(part)
}

/** Time at which the drain ends that the settings of the part ask for; Infinity = never, -Infinity = no drain. */
export function drainEndMs({ settings }: OwnedPart): number {
  if (settings.drain === undefined) return Number.NEGATIVE_INFINITY
  return scanTime(settings['drain-until'] ?? '') ?? Number.POSITIVE_INFINITY
}

/** What no part has: endpoints without an owner, or of owners whose parts are not known. */
export function findRest(
  { states }: WholeEndpoints,
  parts: readonly OwnedPart[],
): readonly ApiObject[] {
  const covered = new Map<string, Set<string>>()
  for (const { key, targets } of parts.flatMap(allOf)) {
    const found = covered.get(key) ?? new Set<string>()
    for (const target of targets) found.add(target)
    covered.set(key, found)
  }
  return [...states].flatMap(([key, { current }]) => {
    const known = covered.get(key)
    if (known === undefined) return [current!.object]
    const targets = current!.targets.filter((target) => !known.has(target))
    // The values of a steered endpoint are those of one owner, and of a CNAME only one is served.
    if (isSteered(current!) || targets.length === 0) return []
    return [{ ...current!.object, targets }]
  })
}

function isSameTargets(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [sortTargets(a), sortTargets(b)]
  return one.length === other.length && one.every((target, i) => target === other[i])
}
