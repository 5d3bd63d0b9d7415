import { createHash } from 'node:crypto'
import type { InputError } from '../base/errors.ts'
import type { HealthProbe } from './dns-record.ts'
import type { PackedRecord } from './pack.ts'

/** The site that a record comes from, and what identifies the record there. */
export interface RecordOrigin {
  readonly site: string
  /** `recordId` of its key at that site; '' = not known. */
  readonly id: string
  /** As in RecordRank. */
  readonly isUndated?: boolean | undefined
  /** True = further endpoints of the host may follow: the operator has not heard all nameservers yet. */
  readonly isPartial?: boolean | undefined
  /** True = the site is silent: the record may be old. */
  readonly isSilent?: boolean | undefined
}

/**
 * A valid record in a source. Immutable: a change creates a new object. A class, so that a hundred
 * thousand records share one object shape.
 */
export class StoredRecord {
  /** `namespace/name`. */
  readonly key: string
  readonly packed: PackedRecord
  /** Undefined = it is a record of the source itself, so of this site. */
  readonly origin?: RecordOrigin | undefined
  /**
   * Key of the record of this site that an operator derived it from; undefined = it was not derived, or not from a
   * record of this site.
   */
  readonly original?: string | undefined
  /** Creation of the object that holds it, in seconds since the epoch; undefined = that of the record itself. */
  readonly heldSinceSeconds?: number | undefined

  constructor(
    key: string,
    packed: PackedRecord,
    origin?: RecordOrigin,
    original?: string,
    heldSinceSeconds?: number,
  ) {
    this.key = key
    this.packed = packed
    this.origin = origin
    this.original = original
    this.heldSinceSeconds = heldSinceSeconds
  }
}

/** True for a record of another site. */
export function isForeign({ origin, original }: StoredRecord): boolean {
  return origin !== undefined && original === undefined
}

export function isSameOrigin(a: RecordOrigin | undefined, b: RecordOrigin | undefined): boolean {
  if (a === b) return true
  const isSameSite = a?.site === b?.site && a?.id === b?.id && a?.isSilent === b?.isSilent
  return isSameSite && a?.isUndated === b?.isUndated && a?.isPartial === b?.isPartial
}

const RECORD_ID_CHARACTERS = 8

/**
 * Returns what identifies the record `namespace/name` to other sites. Sites order records by it, but cannot read the
 * namespace from it.
 */
export function recordId(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, RECORD_ID_CHARACTERS)
}

/**
 * The change of one record: `before` missing = added, `after` missing = removed. The same object
 * twice: the record is unchanged, and what depends on it must be built again.
 */
export interface RecordChange {
  readonly before: StoredRecord | undefined
  readonly after: StoredRecord | undefined
}

/** A source of DNSRecords: manifest files, or the API of a Kubernetes cluster. */
export interface RecordSource {
  /** All records to serve; an invalid one in its last valid version. */
  records(): Iterable<StoredRecord>
  /** Returns the record with that key, `namespace/name`. */
  find(key: string): StoredRecord | undefined
  readonly recordCount: number
  /** All current faults, in order of files and lines. */
  problems(): readonly InputError[]
  /** Why the source as a whole is not ready; '' = it is ready. For the ready page. */
  unreadyReason(): string
  /**
   * True while further changes of the same batch follow; missing = each call of a listener has a
   * whole batch.
   */
  readonly isChanging?: boolean
  /**
   * Calls `listener` once per batch of changes, or part of one; returns the function that
   * unsubscribes it.
   */
  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void
}

/** A source of DNSHealthCheckProbes. */
export interface ProbeSource {
  /** All probes, including those whose status another prober has set. */
  probes(): Iterable<HealthProbe>
  /** Calls `listener` after the probes changed; returns the function that unsubscribes it. */
  onProbes(listener: () => void): () => void
}
