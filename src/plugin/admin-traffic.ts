export const TRAFFIC_PERIODS = ['10m', '1h', '24h'] as const
export type TrafficPeriod = (typeof TRAFFIC_PERIODS)[number]

/** What a client of the admin API asks about the traffic. */
export interface TrafficQuestion {
  readonly period: TrafficPeriod
  /** The owner name of a steered RRset, for its endpoints; absent = no endpoints. */
  readonly name?: string
  /** Its type; absent = A. */
  readonly type?: string
}

/** The percentiles of how long queries took, in milliseconds; null = the step has no measured query. */
interface LatencyCurves {
  readonly p50: readonly (number | null)[]
  readonly p90: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
}

/** A name, a type and a response code that many queries have. */
export interface TopName {
  readonly name: string
  readonly type: string
  readonly rcode: string
  /** An estimate, 0 to 1, of the queries that reached a server block. */
  readonly share: number
}

/** An endpoint in a tier of an RRset. */
export interface EndpointTraffic {
  readonly zone: string
  /** The set identifier, or the targets. */
  readonly endpoint: string
  /** The geo code; `*` = the default endpoints, '' = the whole set. */
  readonly tier: string
  /** Null = it has none, or several endpoints answer together. */
  readonly weight: number | null
  /** The share of its tier that it should have, 0 to 1. */
  readonly share: number
  /** The answers that began with it. */
  readonly answers: number
  /** The share of its tier that it had; null = the tier gave no answers. */
  readonly answeredShare: number | null
}

/** The traffic of the server in a period. Curves have one rate per second for each step. */
export interface TrafficReport {
  readonly now: string
  /** When counting began. */
  readonly since: string
  readonly period: TrafficPeriod
  /** The start of the first step. */
  readonly start: string
  readonly stepSeconds: number
  readonly queries: readonly number[]
  /** Queries that the server dropped because it was overloaded. */
  readonly dropped: readonly number[]
  /** Those that occurred; `none` = no reply was sent. */
  readonly rcodes: readonly { readonly rcode: string; readonly rates: readonly number[] }[]
  readonly latencyMs: LatencyCurves
  readonly topNames: readonly TopName[]
  /** Length of the time that `topNames` and `endpoints` count. */
  readonly countedSeconds: number
  /** Empty if the question has no name. */
  readonly endpoints: readonly EndpointTraffic[]
  readonly endpointsOmitted: number
}

/** The traffic of a server. */
export interface AdminTraffic {
  /** Undefined = the server does not serve yet. Throws InputError if the question is invalid. */
  report(question: TrafficQuestion): TrafficReport | undefined
}
