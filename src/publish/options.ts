import type { Position } from '../base/errors.ts'
import type { HostPort } from '../dns/host-port.ts'
import type { Address, Cidr } from '../dns/text/address.ts'
import { EXPIRY_DEFAULT_MS } from '../peering/expiry.ts'
import type { PeerAddress } from '../peering/peer-address.ts'
import type { PeerRule } from '../peering/trust/peer-rule.ts'
import type { HostShare } from '../records/host-share.ts'
import type { SignedZone } from '../signing/registry.ts'
import type { SourcePlace } from '../sources/source-place.ts'
import type { ZoneSettings } from './build/owner-set.ts'
import type { HealthOptions } from './health-options.ts'

/** Selects records, and says how their zones are published. */
export interface PublishOptions {
  /** Lower-case wire names, in the order given. */
  readonly zones: readonly Uint8Array[]
  readonly source: SourcePlace
  /** Position of the line that names the source. */
  readonly position: Position
  /** Absolute path of the file that keeps serials; '' = none. */
  readonly serials: string
  readonly snapshot: SnapshotOptions | undefined
  /** The zones that are signed, by `nameKey`; missing = none. */
  readonly signed?: ReadonlyMap<string, SignedZone> | undefined
  /** E-mail address as written; '' = none. */
  readonly rname: string
  readonly nameservers: readonly ZoneNameserver[]
  /** Addresses of the default name server; missing = they are unknown. */
  readonly ownAddresses?: readonly Address[] | undefined
  /** Undefined = all. */
  readonly allowedNamespaces: ReadonlySet<string> | undefined
  /** Namespaces that may have hosts of others; missing = none. */
  readonly shares?: readonly HostShare[] | undefined
  /** The name that other sites know this site by; '' = not set. */
  readonly site: string
  /** Undefined = the site is always active. */
  readonly group?: GroupOptions | undefined
  readonly peering: PeeringOptions
  /** Undefined = no health options. */
  readonly health?: HealthOptions | undefined
  /** Settings for records without their own; what is missing has its default. */
  readonly settings?: Partial<ZoneSettings> | undefined
  /** How the targets of ALIAS endpoints are resolved; missing = only those in our zones. */
  readonly alias?: AliasOptions | undefined
  /** Largest number of series about endpoints on the metrics page; undefined = none is there. */
  readonly endpointMetrics?: number | undefined
  /** Without `endpointMetrics`, the largest number of endpoints with a history; undefined = none has one. */
  readonly endpointHistory?: number | undefined
}

/** How the targets of ALIAS endpoints are resolved that are outside of our zones. */
export interface AliasOptions {
  /** Resolvers to ask; empty = there are none. */
  readonly servers: readonly HostPort[]
  /** Networks that are refused by default, but whose addresses may be served. */
  readonly allowed: readonly { readonly text: string; readonly cidr: Cidr }[]
}

export const NO_ALIAS: AliasOptions = { servers: [], allowed: [] }

/** A name server of the zones and its addresses, for glue. */
export interface ZoneNameserver {
  /** Lower-case wire name. */
  readonly name: Uint8Array
  readonly addresses: readonly Address[]
  readonly position: Position
}

/** Options of the file that keeps zones over a restart. */
export interface SnapshotOptions {
  /** Absolute path. */
  readonly path: string
  readonly intervalMs: number
  readonly position: Position
}

/** The group of active/passive sites that this site belongs to. */
export interface GroupOptions {
  readonly name: string
  /** Servers to ask for the active groups; empty = those of the system. */
  readonly servers: readonly HostPort[]
}

export interface PeeringOptions {
  /** The nameservers of other sites. */
  readonly peers: readonly PeerAddress[]
  /** What a peer may report in addition to what every peer may, by its address. */
  readonly rules: ReadonlyMap<string, readonly PeerRule[]>
  /** Position of the first line that names peers. */
  readonly position: Position | undefined
  /** Signs everything from and to peers; undefined = nothing is signed. */
  readonly key: KeyPlace | undefined
  /** How long a silent site's endpoints are served that no health check finds up. */
  readonly expiryMs: number
  /** File that keeps peer data over a restart; undefined = it is not kept. */
  readonly peerCache: PeerCacheFile | undefined
  /** How sites agree on the health of each other's addresses; undefined = only reports of their own sites count. */
  readonly probePeers: ProbePeersOptions | undefined
}

/** How sites agree on the health of peers' addresses. */
interface ProbePeersOptions {
  /** Number of sites that must find an address down; 0 = with two sites our own, else a majority of those heard. */
  readonly quorum: number
  readonly holdDownMs: number
}

/** A key in a key file. */
export interface KeyPlace {
  readonly name: Uint8Array
  /** Absolute path. */
  readonly path: string
  readonly position: Position
}

export interface PeerCacheFile {
  /** Absolute path. */
  readonly path: string
  readonly position: Position
}

export const NO_PEERING: PeeringOptions = {
  peers: [],
  rules: new Map(),
  position: undefined,
  key: undefined,
  expiryMs: EXPIRY_DEFAULT_MS,
  peerCache: undefined,
  probePeers: undefined,
}
