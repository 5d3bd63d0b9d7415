import type { EventActor } from '../../base/telemetry/event-log.ts'
import type { PointSet } from '../../geo/classes/point-orders.ts'
import type { EndpointDrain } from '../../health/drain/drain.ts'
import type { ShiftState } from '../../health/shift/shift.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import type { RecordSettings } from '../../records/settings.ts'
import type { Candidate } from '../../steering/candidate.ts'
import type { AllDownPolicy, FailoverLine, SetRules, StickyPrefix } from '../../steering/rules.ts'

/** An endpoint and the record that contains it. */
export interface Contribution {
  /** `namespace/name` of the record. */
  readonly key: string
  /** What messages name the record: its key, or `SITE: record of HOST` for one of another site. */
  readonly place: string
  /** The site that it is from; '' = ours, without a name. */
  readonly site: string
  /** As in RecordOrigin. */
  readonly isPartial?: boolean | undefined
  readonly isSilent?: boolean | undefined
  readonly endpoint: Endpoint
  /** Indexes of the endpoint's targets that are down; empty = none. */
  readonly down: ReadonlySet<number>
  /** Drains of the endpoint's targets, by index; undefined = none. */
  readonly drained?: ReadonlyMap<number, EndpointDrain> | undefined
  /** Part of its weight that it gets, 1..SLOW_START_UNITS; undefined = the full weight. */
  readonly units?: number | undefined
  /** Settings of the record; undefined = it has none. */
  readonly settings?: RecordSettings | undefined
  /** Failover lists of the record, as the function `idleLines` returns them; undefined = it has none. */
  readonly idleLines?: readonly FailoverLine[] | undefined
  /** The shift of the record's traffic; undefined = it has none. */
  readonly shift?: ShiftState | undefined
}

/** Record key of the default NS, which no record or Corefile sets. */
export const DEFAULT_KEY = 'the default NS'

/** Why an endpoint is not a candidate. `by`: `place` of the other endpoint. */
export type Drop =
  | { readonly kind: 'down' }
  /** An ALIAS whose target has no addresses. */
  | { readonly kind: 'unresolved' }
  /** A drain takes it out, or all its targets that are not down. */
  | { readonly kind: 'drained'; readonly drain: EndpointDrain }
  /** A CNAME beside other types: only the other kind is served. */
  | { readonly kind: 'cname'; readonly by: string }
  /** It equals another endpoint, which represents both. */
  | { readonly kind: 'merged'; readonly by: string }
  /** Another endpoint of the site has the same set identifier and different content. */
  | { readonly kind: 'contradicted'; readonly by: string }
  /** The RRset has too many endpoints. */
  | { readonly kind: 'cut' }

/** Receives what `buildOwnerSets` decides about each endpoint, to explain answers. */
export interface BuildReport {
  dropped(contribution: Contribution, drop: Drop): void
  /** `contribution`: may be merged from several. The candidates share its targets. */
  kept(contribution: Contribution, candidates: readonly Candidate[]): void
}

/** What serves although all endpoints of a set are down. */
export interface AllDown {
  /** The policy in force. A fallback endpoint that is missing leaves `open`. */
  readonly policy: AllDownPolicy
  /** The set identifier that the settings name and no endpoint has; undefined = none is missing. */
  readonly missing?: string | undefined
  /** True = the fallback endpoint is drained, so that the answer is empty. */
  readonly isDrained?: boolean | undefined
}

/** Failover lists without an endpoint in service. */
export interface Exhausted {
  /** Their geo codes, or `*`. */
  readonly lists: readonly string[]
  /** What serves their clients. */
  readonly allDown: AllDown
}

/** The RRset to serve for one owner and type. */
export interface OwnerSet extends SetRules {
  readonly type: number
  /** One TTL for the whole set (RFC 2181 section 5.2): the lowest TTL of its endpoints. */
  readonly ttlSeconds: number
  /** Distinct rdata, in order of contribution; empty = all are down and the answer is NODATA. */
  readonly rdata: readonly Uint8Array[]
  /** Empty only if `rdata` is. */
  readonly candidates: readonly Candidate[]
  /** All endpoints of the set, also those that are not served. */
  readonly endpoints: readonly Member[]
  /** Points that compete for clients, in service or not; undefined = no endpoint has a location. */
  readonly pointSets?: readonly PointSet[] | undefined
  /** Undefined = some target is in service. */
  readonly allDown?: AllDown | undefined
  /** Undefined = every failover list has an endpoint in service. */
  readonly exhausted?: Exhausted | undefined
  /** The shift to some of its endpoints; undefined = none. */
  readonly shift?: ShiftState | undefined
  /** Number of endpoints whose targets are all down or drained, at least one of them drained. */
  readonly drainedCount: number
}

/** False: all endpoints are down, and the answer is NODATA. */
export function isServed({ rdata }: Pick<OwnerSet, 'rdata'>): boolean {
  return rdata.length > 0
}

export interface BuildOptions {
  readonly isApex: boolean
  /** The zone, lower-case wire form; undefined = the owner is in it. */
  readonly apex?: Uint8Array | undefined
  /** Our own site; missing = it has no name. */
  readonly site?: string | undefined
  /** Settings for records without their own; undefined = the defaults. */
  readonly settings?: ZoneSettings | undefined
  readonly report?: BuildReport | undefined
}

/** An owner whose RRsets may change, and why. */
export interface ChangedOwner {
  /** `lowerNameKey` of the owner. */
  readonly key: string
  readonly owner: Uint8Array
  readonly actor: EventActor
}

/** An endpoint of a set, also if it is out of service. */
export interface Member {
  readonly endpoint: Endpoint
  /** Empty = no target is in service. */
  readonly candidates: readonly Candidate[]
  /** As in `Contribution`. */
  readonly units?: number | undefined
  /** Its site, if other sites have another endpoint with its set identifier; undefined = they have not. */
  readonly site?: string | undefined
}

/** Settings of a zone, which hold for every record that has none of its own. */
export interface ZoneSettings {
  readonly allDown: AllDownPolicy
  /** Undefined = choices are not sticky. */
  readonly sticky: StickyPrefix | undefined
  /** As in `SetRules`. */
  readonly answers?: number | undefined
}
