import type { WhatIfOrder } from './admin-what-if.ts'

/** For which name a map is made, as a person wrote it: of the present, or after an event, or after a change. */
export interface MapQuestion extends WhatIfOrder {
  readonly name: string
  /** The default is A. */
  readonly type?: string
  /** Id of an event of the log: the map shows the answers after it. */
  readonly event?: number
}

/** The part of clients of a group that get an answer. */
export interface MapShare {
  /** Index in `answers`. */
  readonly answer: number
  /** 0..1, of the addresses of each family. */
  readonly ipv4: number
  readonly ipv6: number
}

/** Answers and shares that places have in common. */
export interface MapGroup {
  /** Largest share first. Endpoints that answer together have the same share. */
  readonly shares: readonly MapShare[]
  readonly sharesOmitted: number
}

/** Clients with one group of answers. */
export interface MapPlace {
  /**
   * ISO 3166-1 alpha-2, or `XK`; `unknown` = clients without such a country; `private` = private addresses.
   */
  readonly code: string
  /** Index in `groups`. */
  readonly group: number
}

export const MAP_STATES = [
  'served',
  'standby',
  'slow start',
  'partly down',
  'down',
  'drained',
  'not served',
  'no data',
  'outside',
] as const

/** An endpoint, or what clients get in its place. */
export interface MapAnswer {
  /** Owner name of the RRset, as text. */
  readonly name: string
  /** In service, if any is. `outside`: the name that a CNAME leads to. `no data`: empty. */
  readonly targets: readonly string[]
  readonly setIdentifier: string
  /** `namespace/name` of the DNSRecord; '' = it has none. */
  readonly record: string
  /** As configured; null = none. */
  readonly weight: number | null
  readonly state: (typeof MAP_STATES)[number]
  /** Why it is in this state; '' = nothing to add. */
  readonly detail: string
}

/** Where clients get which endpoints of a name and type. */
export interface AnswerMap {
  readonly name: string
  readonly type: string
  /** Listen address whose clients it is for. */
  readonly server: string
  readonly zone: string
  /** SOA serial; null = unknown. */
  readonly serial: number | null
  /** What the map shows instead of the present; '' = the present. */
  readonly preview: string
  /** Names that clients are led through by CNAME records, this name first. */
  readonly names: readonly string[]
  /** False: the place of clients does not matter. */
  readonly isByPlace: boolean
  /** Endpoints that a client gets at once, at most; 1 = one, or all that answer together. */
  readonly answerCount: number
  readonly answers: readonly MapAnswer[]
  readonly answersOmitted: number
  readonly groups: readonly MapGroup[]
  /** Countries of ISO 3166-1 and Kosovo, by code. Those without an address in the databases are missing. */
  readonly countries: readonly MapPlace[]
  /** Clients without a country. */
  readonly others: readonly MapPlace[]
  readonly notes: readonly string[]
}
