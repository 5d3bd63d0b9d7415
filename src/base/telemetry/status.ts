import type { ServerProblem } from './problems.ts'

/** How many endpoints of a zone are in each state. */
interface EndpointCounts {
  /** Endpoints that answers contain, including those whose health is ignored. */
  readonly served: number
  /** Served endpoints of weight 0. */
  readonly standby: number
  /** Endpoints whose weight still grows after a recovery. */
  readonly slowStart: number
  /** Endpoints whose targets are all down. */
  readonly down: number
  /** Drained endpoints. */
  readonly drained: number
}

export interface ZoneStatus {
  readonly zone: string
  /** The directive that serves it, and where its content comes from. */
  readonly directive: string
  readonly source: string
  /** SOA serial; null = no version is loaded. */
  readonly serial: number | null
  /** DNSRecords in the zone; null = the zone does not consist of records. */
  readonly records: number | null
  readonly rrsets: number | null
  /** Names with conflicts between records. */
  readonly conflicts: number
  /** Names and types whose endpoints are all down or drained, each with what is served instead. */
  readonly allDown: readonly string[]
  /** Names and types with failover lists whose endpoints are all down or drained, each with what is served instead. */
  readonly exhausted: readonly string[]
  /** Null = the zone does not consist of records. */
  readonly endpoints: EndpointCounts | null
}

/** How a zone is signed that this server signs. */
export interface SigningReport {
  readonly zone: string
  /** Name of the policy. */
  readonly policy: string
  readonly denial: string
  /** Signatures made, and used again, since the zone was opened. */
  readonly made: number
  readonly reused: number
  /** RFC 3339: when the first signature expires; null = the zone has none. */
  readonly expires: string | null
  /** Why the zone cannot be signed, and the fix; '' = it can. */
  readonly fault: string
}

/** A key of a zone that this server signs. */
export interface KeyReport {
  readonly zone: string
  readonly id: string
  readonly algorithm: string
  readonly tag: number
  readonly role: 'csk' | 'ksk' | 'zsk'
  /** `ready`: the zone waits for its DS in the parent. `public`: of another provider. */
  readonly state: 'unused' | 'published' | 'ready' | 'active' | 'retiring' | 'public'
  /**
   * RFC 3339: when the next step of the zone's rolls is due; null = others have to act first, or no step is planned.
   */
  readonly nextStep: string | null
  /** Null = no step is planned. */
  readonly nextStepText: string | null
}

/** An endpoint that is not served with its full weight. */
export interface EndpointStatus {
  readonly zone: string
  readonly name: string
  readonly type: string
  readonly setIdentifier: string
  readonly targets: readonly string[]
  /** `partly down`: some of its targets are down, or drained. */
  readonly state: 'down' | 'drained' | 'partly down' | 'slow start'
  readonly detail: string
  /** `namespace/name` of the record. */
  readonly record: string
}

/** One peer of this site. */
export interface PeerReport {
  /** `host:port`. */
  readonly peer: string
  /** Sites that it reports; '' = not known. */
  readonly site: string
  readonly isUp: boolean
  /** Seconds since it last confirmed its data; null = never. */
  readonly ageSeconds: number | null
  readonly serial: number | null
  readonly endpoints: number
  readonly refused: number
  /** '' = none. */
  readonly error: string
}

/** How sites agree on the health of each other's addresses (`probe-peers`), for the zones of one server block. */
export interface QuorumReport {
  readonly zones: readonly string[]
  /** This site hears less than a majority of the sites. */
  readonly isIsolated: boolean
  /** Sites that are heard, with this site, and all sites. */
  readonly heard: number
  readonly sites: number
  /** Sites that must find an address down. */
  readonly quorum: number
  readonly holdDownSeconds: number
  /** This site first. */
  readonly members: readonly QuorumMember[]
  /** Addresses that some site found down although they are not its own. */
  readonly addresses: readonly QuorumAddress[]
  /** Number of addresses that a bound left out of `addresses`. */
  readonly addressesOmitted: number
}

/** One site of a quorum. */
export interface QuorumMember {
  /** The address of its nameserver, if its name is not known. */
  readonly site: string
  /** `host:port` of its nameservers; of this site none. */
  readonly peers: readonly string[]
  readonly state: 'this site' | 'isolated' | 'heard' | 'silent' | 'never heard'
  /** Seconds since it was last heard; null = never. */
  readonly ageSeconds: number | null
  /** Number of addresses of other sites that it reports on. */
  readonly observations: number
}

/** What sites report about one address of a peer. */
export interface QuorumAddress {
  /** Without `*.` and final dot. */
  readonly host: string
  readonly address: string
  readonly sites: readonly string[]
  readonly isDown: boolean
  /** Sites contradict each other for longer than the hold-down. */
  readonly isDisputed: boolean
  /** Sites that report it up, and down. */
  readonly up: readonly string[]
  readonly down: readonly string[]
  /** RFC 3339: when it is taken out if no site changes its report; null = no hold-down runs. */
  readonly holdDownUntil: string | null
  readonly reason: string
}

/** A shift of traffic to some endpoints of a host. */
export interface ShiftReport {
  /** `namespace/name` of one of its records, and how many it has. */
  readonly record: string
  readonly records: number
  /** The set identifier that traffic moves to. */
  readonly to: string
  readonly state: 'running' | 'finished' | 'reverted'
  /** The step, from 1, and the number of steps. If the shift is over: the last step that it reached. */
  readonly step: number
  readonly steps: number
  /** Percent of the answers that these endpoints get; null = the shift is reverted, and weights hold. */
  readonly share: number | null
  /** RFC 3339: when the step ends; null = the shift is over. */
  readonly until: string | null
  /** Why the shift was reverted; '' = it was not. */
  readonly reason: string
  /** Missing = an annotation asks for it. */
  readonly order?: ShiftOrderReport
}

/** Who ordered a shift at the server. */
export interface ShiftOrderReport {
  readonly id: string
  /** The root host of its records. */
  readonly name: string
  readonly actor: string
  readonly reason: string
  /** RFC 3339. */
  readonly created: string
}

/** A file of locations. */
interface DatabaseStatus {
  readonly file: string
  /** RFC 3339; '' = unknown. */
  readonly built: string
  /** Why a newer version of the file is not used; '' = the file is used. */
  readonly fault: string
}

/** A snapshot file of zones. */
export interface SnapshotStatus {
  readonly file: string
  /** Answers come from it, because records are not loaded yet. */
  readonly isServed: boolean
  /** Seconds since the state in the file; null = unknown. */
  readonly ageSeconds: number | null
  readonly octets: number
}

/** What one directive of one server block contributes to the status of the server. */
export interface StatusPart {
  readonly zones?: readonly ZoneStatus[]
  readonly signing?: readonly SigningReport[]
  readonly keys?: readonly KeyReport[]
  readonly endpoints?: readonly EndpointStatus[]
  /** Number of endpoints that a bound left out of `endpoints`. */
  readonly endpointsOmitted?: number
  readonly peers?: readonly PeerReport[]
  readonly quorums?: readonly QuorumReport[]
  readonly shifts?: readonly ShiftReport[]
  readonly databases?: readonly DatabaseStatus[]
  readonly snapshots?: readonly SnapshotStatus[]
}

export interface ServerStatus extends Required<StatusPart> {
  readonly version: string
  readonly pid: number
  /** RFC 3339. */
  readonly started: string
  readonly now: string
  /** Threads that answer queries. */
  readonly threads: number
  readonly corefile: { readonly path: string; readonly loaded: string }
  /** Plugins that are not ready, each with its reason. */
  readonly notReady: readonly PluginNote[]
  /** Remarks of plugins that are ready. */
  readonly notes: readonly PluginNote[]
  /** What is wrong, the worst first; a bounded number of each kind. */
  readonly problems: readonly ServerProblem[]
  /** Number of all problems, by kind; zeros are left out. */
  readonly problemCounts: Readonly<Record<string, number>>
  /** Number of shifts that a bound left out of `shifts`. */
  readonly shiftsOmitted: number
  /** What the process dropped because a limit was reached, by kind; zeros are left out. */
  readonly drops: Readonly<Record<string, number>>
}

export interface PluginNote {
  readonly plugin: string
  readonly text: string
}

/** Returns the status of a zone that does not consist of records, or has none yet. */
export function zoneWithoutRecords(
  zone: string,
  directive: string,
  source: string,
  serial: number | null,
): ZoneStatus {
  const unknown = { records: null, rrsets: null, endpoints: null }
  return { zone, directive, source, serial, ...unknown, conflicts: 0, allDown: [], exhausted: [] }
}
