import type { StoredAnswer } from '../cache/stored-answer.ts'
import type { GEO_RUNGS } from '../geo/code.ts'
import type { Origin } from '../publish/explainable.ts'

/**
 * Why a client gets an answer. Plain data: the JSON of `sextant explain -o json`. Names have a final
 * dot, and addresses, types and rdata are in presentation form.
 */
export interface Explanation {
  readonly name: string
  readonly type: string
  /** Seed of the random numbers: the same seed and data give the same reply. */
  readonly seed: number
  readonly client: ExplainedClient
  readonly server: ExplainedServer
  /** The stored answer that a cache sends; undefined = no cache answers. */
  readonly stored?: StoredAnswer | undefined
  /** Undefined = the server block has no location database, or no step needed it. */
  readonly location: ExplainedLocation | undefined
  /** One step per RRset that the answer leads through, in order. */
  readonly steps: readonly ExplainedStep[]
  readonly end: ExplainedEnd
  /** Records of the answer section. */
  readonly answer: readonly string[]
  /** '' = no reply, or the directive that the answer ends at decides. */
  readonly rcode: string
  /** The client subnet option of the reply; undefined = the query has none. */
  readonly scope: { readonly bits: number; readonly reason: string } | undefined
  /** The reply as on the wire, in base64; '' = the server sends none. */
  readonly reply: string
}

/** The client that the server chooses for. */
export interface ExplainedClient {
  /** Address and prefix length: `81.2.69.0/24`. */
  readonly address: string
  readonly source: 'subnet' | 'source address'
  readonly reason: string
}

interface ExplainedServer {
  /** Listen address, `dns://:53`. */
  readonly address: string
  /** Zone of the server block; '' = no block serves the name. */
  readonly zone: string
  /** '' = the block has no view. */
  readonly view: string
  /** The directive that answered; '' = none. */
  readonly directive: string
}

export interface ExplainedLocation {
  readonly databases: readonly {
    readonly file: string
    readonly type: string
    /** RFC 3339; '' = unknown. */
    readonly built: string
    /** The longest prefix around the client that has one entry. */
    readonly prefix: string
    /** True: the database is not asked, because the prefix is for special purposes. */
    readonly isIgnored: boolean
  }[]
  /** Each is '' if it is unknown. */
  readonly net: string
  readonly asn: string
  readonly subdivisions: readonly string[]
  readonly country: string
  readonly continent: string
  readonly coordinates: string
}

/** How an RRset of the answer, or the absence of one, came about. */
export interface ExplainedStep {
  /** The name that was looked up. */
  readonly name: string
  /** Owner of the RRset: the name, or the wildcard that matches it. */
  readonly owner: string
  readonly type: string
  readonly zone: string
  /** Undefined = not known: the zone is not served here, or offline. */
  readonly serial: number | undefined
  /** The records that the answer has, as rdata. */
  readonly rdata: readonly string[]
  readonly ttlSeconds: number
  readonly ttlReason: string
  /** The endpoints of owner and type; undefined = the zone is not built from DNSRecords. */
  readonly endpoints: readonly ExplainedEndpoint[] | undefined
  /** Undefined = no choice by location or weight was needed. */
  readonly choice: ExplainedChoice | undefined
  readonly notes: readonly string[]
}

/** An endpoint of a step, chosen or not. */
export interface ExplainedEndpoint {
  /** `namespace/name` of its record; '' = it is not from a record. */
  readonly record: string
  readonly origin: Origin
  /** '' = none. */
  readonly setIdentifier: string
  readonly codes: readonly string[]
  /** `52.52,13.40`; '' = none. */
  readonly location: string
  /** Kilometres from the client; undefined = not known. */
  readonly distanceKm: number | undefined
  /** Undefined = none. */
  readonly weight: number | undefined
  readonly ttlSeconds: number
  readonly targets: readonly string[]
  /** Target of the ALIAS endpoint that it is made from, with the final dot; missing = its record has it. */
  readonly alias?: string
  /** Targets that are down or drained, each with the reason. */
  readonly out: readonly { readonly target: string; readonly reason: string }[]
  /** Why it is no candidate; '' = it is one. */
  readonly dropped: string
  /** Probability for this client, 0..1; of several endpoints, to be the first. */
  readonly share: number
  /** True if this answer has its targets. */
  readonly isChosen: boolean
}

export interface ExplainedChoice {
  readonly rungs: readonly ExplainedRung[]
  /** Index of the rung that decided. */
  readonly decided: number
  /** The first draw; undefined = there was one possible outcome, or the choice is sticky. */
  readonly draw: ExplainedDraw | undefined
  /** The endpoints of the answer, in order, if `answers` lets it have several; undefined = it does not. */
  readonly picks?: readonly ExplainedPick[] | undefined
  /** True: a hash of the client's prefix chose, not a draw (`sticky`). */
  readonly isSticky: boolean
  /** The part of the client's address that was hashed: `81.2.69.0/24`; undefined = the choice is not sticky. */
  readonly stickyPrefix: string | undefined
  /** Undefined = no failover list decided. */
  readonly failover: ExplainedFailover | undefined
}

/** A random number, 0..below-1. `below`: the sum of the weights that were left. */
export interface ExplainedDraw {
  readonly value: number
  readonly below: number
}

/** One of several endpoints of an answer. */
export interface ExplainedPick {
  /** Index into the endpoints of the step. */
  readonly endpoint: number
  /** Undefined = the choice is sticky. */
  readonly draw: ExplainedDraw | undefined
}

/** The failover list of the client's geo code. */
export interface ExplainedFailover {
  /** Geo codes and set identifiers, in order of preference. */
  readonly order: readonly string[]
  /** The one that serves; '' = the list is exhausted. */
  readonly serving: string
  /** True: the list is exhausted, and the answer is NODATA. */
  readonly isClosed: boolean
}

/** One rung of the GEO ladder. */
export interface ExplainedRung {
  readonly rung: RungName
  /** The code of the client on this rung: `GEO-EU`; '' = unknown, or the rung has none. */
  readonly code: string
  readonly outcome: /** The client has no code on this rung. */
    | 'no code'
    | 'no endpoint'
    /** All candidates are standbys, and a later rung has others. */
    | 'passed over'
    | 'decided'
    | 'not reached'
    /** The location database has changed, and the GEO classes are not rebuilt yet. */
    | 'not matched'
    /** The coordinates of the client are unknown. */
    | 'no coordinates'
  /** Location of the nearest candidates, which serve; undefined = the distance did not matter. */
  readonly nearest?: string | undefined
  /**
   * Endpoints that are nearer than those that serve and were passed over, the nearest first; undefined = none. Only the
   * rung that decided has them.
   */
  readonly nearer?: readonly NearerEndpoint[] | undefined
  readonly candidates: readonly ExplainedCandidate[]
}

type RungName = (typeof GEO_RUNGS)[keyof typeof GEO_RUNGS] | 'nearest' | 'whole set'

/** An endpoint that would serve by its distance if it were in service. */
export interface NearerEndpoint {
  /** Index into the endpoints of the step, which have the distances. */
  readonly endpoint: number
  /** Why it does not serve. */
  readonly reason: string
}

/** A candidate of a rung. */
export interface ExplainedCandidate {
  /** Index into the endpoints of the step. */
  readonly endpoint: number
  /** The weight, or in slow start the part of it that counts; undefined = none. */
  readonly weight: number | undefined
  /** Probability inside the rung, 0..1; of several endpoints, to be the first; 0 for a standby. */
  readonly share: number
  readonly isStandby: boolean
  /**
   * Place in the order in which a sticky choice serves this client: 1 serves, 2 serves once 1 is drained or down. With
   * `answers`, the first ranks serve.
   * Undefined = the order is not known: the choice is not sticky, the rung did not decide, or traffic is shifted.
   */
  readonly rank: number | undefined
}

/** How the answer ends. */
export interface ExplainedEnd {
  readonly kind:
    | 'answer'
    | 'nodata'
    | 'nxdomain'
    | 'referral'
    | 'outside'
    | 'other directive'
    | 'refused'
    | 'no reply'
    | 'error'
  readonly text: string
}
