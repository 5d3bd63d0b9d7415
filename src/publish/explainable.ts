import { nameKey } from '../dns/name/name.ts'
import type { Locator } from '../geo/locator.ts'
import type { TargetHealth } from '../peering/host-merge.ts'
import type { HeldPlace } from '../sources/manifests/manifest-store.ts'
import type { SteeringTable } from '../steering/table.ts'
import type { ArenaHandle } from '../zone/image/reader.ts'
import type { DownReasons } from './build/down-reason.ts'
import { RecordPlaces } from './build/locate.ts'
import { type Contribution, DEFAULT_KEY } from './build/owner-set.ts'
import { CONFIGURED_KEY, type RecordZone } from './build/record-zone.ts'

/** Where an endpoint comes from. */
export type Origin =
  /**
   * A manifest. `line`, from 1: that of the endpoint, or in a server that of the YAML document or
   * list item with the record.
   */
  | { readonly kind: 'manifest'; readonly file: string; readonly line: number }
  /** A DNSRecord of the cluster: see the record. */
  | { readonly kind: 'cluster' }
  /** Another site has it. */
  | ({ readonly kind: 'peers' } & PeersOrigin)
  | { readonly kind: 'corefile' }
  /** The server adds it, because nothing else has an NS for the zone. */
  | { readonly kind: 'default' }

/** The site that a record belongs to, and the peers that report it. */
export interface PeersOrigin {
  readonly site: string
  readonly peers: readonly PeerOrigin[]
}

/** A peer that reports an endpoint. */
export interface PeerOrigin {
  /** `host:port`. */
  readonly peer: string
  readonly site: string
  /** Seconds since the peer last confirmed its data. */
  readonly ageSeconds: number
}

/** A zone of records, for explanations. */
export interface ExplainableZone {
  readonly records: RecordZone
  /** Undefined = the process does not know the serial that a server would use. */
  readonly serial: number | undefined
}

/** The zones of one publisher, and what explains their answers. */
export interface ExplainableZones {
  /** Identifies the zone image that answers come from. */
  readonly handle: ArenaHandle
  readonly table: SteeringTable
  readonly locator: Locator | undefined
  /** `apex`: lower-case wire form. */
  zone(apex: Uint8Array): ExplainableZone | undefined
  /** Returns a function that finds origins; use it for one explanation. */
  origins(): (contribution: Contribution) => Origin
  /** Why a target of a record is down; '' = unknown. */
  readonly downReason: DownReasons
  /**
   * Targets that some site found down, with those that are not served, for the merged hosts at and
   * above a name without a final dot.
   */
  healthOf(name: string): readonly TargetHealth[]
}

/** All zones of the process whose answers can be explained: those in service. */
export class ExplainableIndex {
  readonly #all = new Set<ExplainableZones>()

  /** Returns the function that removes them. */
  add(zones: ExplainableZones): () => void {
    this.#all.add(zones)
    return () => this.#all.delete(zones)
  }

  /** `buffer`: the memory of a zone image. */
  find(buffer: ArrayBufferLike): ExplainableZones | undefined {
    return [...this.#all].find(({ handle }) => handle.buffer === buffer)
  }
}

/** The parts that `explainableZones` joins. */
export interface ExplainableParts
  extends Pick<ExplainableZones, 'handle' | 'table' | 'locator'>,
    Partial<Pick<ExplainableZones, 'downReason' | 'healthOf'>> {
  /** By `nameKey` of the apex. */
  zone(apexKey: string): ExplainableZone | undefined
  /** The places of records in manifests; undefined = the records are not from manifests. */
  readonly placeOf: ((key: string) => HeldPlace | undefined) | undefined
  /** How many octets of manifests an explanation reads again, for the lines of endpoints. */
  readonly rereadMax: number
  /** Returns who reports a record; undefined = the record is our own. */
  peersOf?(recordKey: string): PeersOrigin | undefined
}

export function explainableZones(parts: ExplainableParts): ExplainableZones {
  const { handle, table, locator, placeOf, peersOf, downReason, rereadMax } = parts
  return {
    handle,
    table,
    locator,
    zone: (apex) => parts.zone(nameKey(apex)),
    downReason: downReason ?? (() => ''),
    healthOf: parts.healthOf ?? (() => []),
    origins: () => {
      const places = placeOf && new RecordPlaces({ get: placeOf }, rereadMax)
      return ({ key, endpoint }) => {
        if (key === DEFAULT_KEY) return { kind: 'default' }
        if (key === CONFIGURED_KEY) return { kind: 'corefile' }
        const reported = peersOf?.(key)
        if (reported !== undefined) return { kind: 'peers', ...reported }
        const at = places?.endpoint({ ...endpoint, key })
        if (at === undefined) return { kind: 'cluster' }
        return { kind: 'manifest', file: at.file, line: at.line }
      }
    },
  }
}
