import { RRType } from '../../dns/iana/types.ts'
import type { MapAnswer } from '../../plugin/admin-map.ts'
import type { ExplainableZone, ExplainableZones } from '../../publish/explainable.ts'
import { decodeSteering } from '../../steering/decode.ts'
import type { TierKey } from '../../steering/tier-key.ts'
import { sortIntoTiers, type Tier } from '../../steering/tiers.ts'
import { RRSET_STEERING_COUNT } from '../../zone/image/layout.ts'
import { defaultSignatures } from '../../zone/image/signature-directory.ts'
import { type BuiltEndpoint, type BuiltSet, buildSet } from '../endpoints.ts'
import type { FoundRRset } from '../find-rrset.ts'
import { reportTiers } from '../reported-tiers.ts'

/** An RRset and what it was built from. */
export interface MapSet {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  readonly type: number
  /** Undefined = the zone is not made of DNSRecords. */
  readonly zones: ExplainableZones | undefined
  readonly rdata: readonly Uint8Array[]
  readonly tiers: readonly Tier[]
  /** Number of outcomes that a client gets, at most. */
  readonly answers: number
  /** Of all tiers but the last; empty = the place of clients does not matter. */
  readonly keys: readonly TierKey[]
  /** Number of its policy in the table of `zones`; undefined = it has none, or is not served so. */
  readonly policy: number | undefined
  /** Undefined = unknown: each record of the RRset is an answer of its own. */
  readonly built: BuiltSet | undefined
  /** The endpoints, if they are not those of `built`. */
  readonly labels?: readonly MapAnswer[]
  /** By tier and outcome: indexes of `labels`, `built.endpoints` or `rdata`. */
  readonly members: readonly (readonly (readonly number[])[])[]
}

/** Returns an RRset as the zone image has it, which is how data threads serve it. */
export function servedSet(
  found: FoundRRset,
  type: number,
  zones: ExplainableZones | undefined,
  zone: ExplainableZone | undefined,
): MapSet {
  const { owner, reader, rrset } = found
  const rdata = rdataOf(found)
  const hasWords = reader.words[rrset + RRSET_STEERING_COUNT] !== 0
  const steering =
    hasWords && type !== RRType.RRSIG
      ? decodeSteering(reader.words, reader.steeringStart(rrset))
      : { policy: undefined, tiers: [wholeTier(type, servedIndexes(found, type))], answers: [1] }
  const { policy, tiers, answers } = steering
  const keys = policy === undefined ? [] : (zones?.table.policies[policy] ?? [])
  const built = zone && buildSet(zone, owner, type)
  const members = built && joinMembers(built, tiers, type, rdata.length)
  const base = { owner, type, zones, rdata, tiers, answers: Math.max(...answers), keys, policy }
  if (built !== undefined && members !== undefined) return { ...base, built, members }
  const own = tiers.map((tier) => tier.map(({ rdataIndexes }) => rdataIndexes))
  return { ...base, built: undefined, members: own }
}

/** Returns what clients get of a name that exists without the RRset. `built`: its endpoints, all out of service. */
export function emptySet(
  owner: Uint8Array,
  type: number,
  zones: ExplainableZones | undefined,
  built: BuiltSet | undefined,
): MapSet {
  const none = { policy: undefined, rdata: [], answers: 1, members: [[[]]] }
  return { owner, type, zones, built, ...NO_TIERS, ...none }
}

/** Returns an RRset as it would be served. */
export function builtSet(
  owner: Uint8Array,
  type: number,
  zones: ExplainableZones,
  built: BuiltSet,
): MapSet | undefined {
  const { set } = built
  if (set === undefined) return undefined
  if (set.candidates.length === 0) return emptySet(owner, type, zones, built)
  const { rdata, answers = 1 } = set
  const { keys, tiers } = sortIntoTiers(set.candidates, type, set)
  const members = joinMembers(built, tiers, type, rdata.length)!
  return { owner, type, zones, rdata, tiers, answers, keys, policy: undefined, built, members }
}

const NO_TIERS: { keys: readonly TierKey[]; tiers: readonly Tier[] } = {
  keys: [],
  tiers: [[{ weight: 1, ttlSeconds: 0, rdataIndexes: [] }]],
}

/** The tier of an RRset without a choice: clients get all that is served of it. */
function wholeTier(type: number, served: readonly number[]): Tier {
  const rdataIndexes = type === RRType.CNAME ? served.slice(0, 1) : served
  return [{ weight: 1, ttlSeconds: 0, rdataIndexes }]
}

/** Returns the indexes of the rdata that a query for the type gets, apart from steering. */
function servedIndexes({ reader, rrset }: FoundRRset, type: number): number[] {
  const hasDirectory = reader.words[rrset + RRSET_STEERING_COUNT] !== 0
  if (type === RRType.RRSIG && hasDirectory) {
    return defaultSignatures(reader.words, reader.steeringStart(rrset))
  }
  const all = Array.from({ length: reader.rdataCount(rrset) }, (_, i) => i)
  // The others are proofs for clients whose answer has no records.
  return type === RRType.NSEC ? all.slice(0, 1) : all
}

function rdataOf({ reader, rrset }: FoundRRset): Uint8Array[] {
  const start = reader.rdataStart(rrset)
  return Array.from({ length: reader.rdataCount(rrset) }, (_, i) => {
    const at = reader.rdataAt(rrset, start, i)
    return reader.bytes.slice(at + 2, at + 2 + reader.view.getUint16(at))
  })
}

/**
 * Returns the endpoints of each outcome. Undefined = the endpoints are not those that the tiers were made from, because
 * they have changed in between.
 */
function joinMembers(
  { set, endpoints }: BuiltSet,
  tiers: readonly Tier[],
  type: number,
  rdataCount: number,
): number[][][] | undefined {
  if (set === undefined || set.rdata.length !== rdataCount || set.candidates.length === 0) {
    return undefined
  }
  const { outcomes } = reportTiers(set.candidates, type, set)
  if (outcomes.size !== tiers.length) return undefined
  const indexes = indexesOf(endpoints)
  const members = tiers.map((tier, number) => {
    const groups = outcomes.get(number) ?? []
    return groups.length === tier.length
      ? groups.map((group) => group.map(({ rdataIndexes }) => indexes.get(rdataIndexes) ?? -1))
      : undefined
  })
  const isWhole = members.every((tier) => tier !== undefined && !tier.flat().includes(-1))
  return isWhole ? (members as number[][][]) : undefined
}

/** By the rdata of a candidate: index of the endpoint that it was built from. */
function indexesOf(endpoints: readonly BuiltEndpoint[]): Map<readonly number[], number> {
  return new Map(
    endpoints.flatMap(({ candidates }, i) => candidates.map((c) => [c.rdataIndexes, i] as const)),
  )
}
