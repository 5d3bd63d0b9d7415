import type { Endpoint } from '../../records/dns-record.ts'
import type { SetChange } from './answer-events.ts'
import type { RecordForm } from './decoded-record.ts'
import type { OwnerStates } from './endpoint-states.ts'
import type { OutSetsOptions } from './out-sets.ts'
import type { OwnerConflictsOptions } from './owner-conflicts.ts'
import type { OwnerSet, ZoneSettings } from './owner-set.ts'
import type { ServedView } from './served-health.ts'

/** Receives the changes of a zone. */
export interface RRsetSink {
  put(owner: Uint8Array, set: OwnerSet): void
  /** The RRset has the records of `before`; set identifiers, and what replies note about it, may differ. */
  rename?(owner: Uint8Array, set: OwnerSet, before: OwnerSet): void
  remove(owner: Uint8Array, type: number): void
  /** Makes a name exist even without RRsets, so that its answers are NODATA, or ends that. */
  declare(owner: Uint8Array, isDeclared: boolean): void
}

export interface RecordZoneOptions extends RecordForm {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  /** Endpoints that the Corefile adds to the zone: NS of the apex and their addresses. */
  readonly fixed: readonly Endpoint[]
  /** The apex NS to serve if neither the Corefile nor a record has one. */
  readonly defaultNs: Endpoint
  /** Addresses of the default name server, to serve if no record has an address or a CNAME there. */
  readonly defaultAddresses?: readonly Endpoint[] | undefined
  readonly sink: RRsetSink
  readonly health: ServedView
  /** As in `OwnerConflictsOptions`. */
  readonly onConflict: OwnerConflictsOptions['onConflict']
  /** As in `OwnerConflictsOptions`; missing = all endpoints are known. */
  readonly isComplete?: OwnerConflictsOptions['isComplete'] | undefined
  /** Settings for records without their own; undefined = the defaults. */
  readonly settings?: ZoneSettings | undefined
  /** As in `OutSetsOptions`. */
  readonly onOut: OutSetsOptions['onOut']
  /** Called with each change of an RRset. */
  readonly onChange?: ((change: SetChange) => void) | undefined
  /** Called with each owner whose endpoints, or their health, may have changed. */
  readonly onStates?: ((change: OwnerStates) => void) | undefined
}
