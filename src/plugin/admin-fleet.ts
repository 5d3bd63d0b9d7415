/** A zone of a server. */
export interface FleetZone {
  readonly zone: string
  readonly directive: string
  /** SOA serial; null = no version is loaded. */
  readonly serial: number | null
}

/** A peer of a server of the fleet. */
export interface FleetPeer {
  readonly peer: string
  readonly site: string
  readonly isUp: boolean
  /** Seconds since it last confirmed its data; null = never. */
  readonly ageSeconds: number | null
}

/** What a server reports about itself. Lists are bounded; the `Omitted` counts have the rest. */
export interface FleetReport {
  readonly version: string
  /** Seconds since the start of its process; null = not known. */
  readonly uptimeSeconds: number | null
  /** Why it is not ready: plugin and reason. */
  readonly notReady: readonly string[]
  /** Number of problems, by kind. */
  readonly problemCounts: Readonly<Record<string, number>>
  /** Null = not known. */
  readonly queriesPerSecond: number | null
  /** By name. */
  readonly zones: readonly FleetZone[]
  readonly zonesOmitted: number
  readonly peers: readonly FleetPeer[]
  readonly peersOmitted: number
  /** Selectors of the drains in force; null = not known. */
  readonly drains: readonly string[] | null
  readonly drainsOmitted: number
}

/** A server of the fleet, as this server last read it. */
export interface FleetServer {
  /** As the Corefile names it; '' = this server, if the Corefile does not name it. */
  readonly name: string
  /** Of its admin API. */
  readonly address: string
  /** The process that replies. */
  readonly isSelf: boolean
  /** `unread`: no read has ended. */
  readonly state: 'up' | 'down' | 'unread'
  /** Why it can't be read, or not in full; '' = it can. */
  readonly error: string
  /** Age of `report`; null = no report. */
  readonly ageSeconds: number | null
  /** Null = no read was successful. */
  readonly report: FleetReport | null
}

/** A request to another server. */
export interface FleetQuestion {
  readonly method: 'GET' | 'POST'
  /** With its query. */
  readonly path: string
  /** Sent as JSON; undefined = none. */
  readonly body: unknown
}

/** The reply of another server, or why this server has no reply. */
export type FleetAnswer =
  | { readonly kind: 'reply'; readonly json: unknown }
  | { readonly kind: 'fault'; readonly status: number; readonly detail: string }

/** The servers that a Corefile names. */
export interface AdminFleet {
  /** Returns this server and the others. Reads those whose data is older than some seconds. */
  list(): Promise<readonly FleetServer[]>
  /** Sends a request to the server with that name. The caller has checked its path. */
  ask(name: string, question: FleetQuestion): Promise<FleetAnswer>
}
