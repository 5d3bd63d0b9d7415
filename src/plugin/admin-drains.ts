import type { DrainReport, SelectedCount } from '../base/telemetry/drain-report.ts'

/** A drain, and the path of its file; '' = an annotation. */
export interface AdminDrain extends DrainReport {
  readonly file: string
}

/** Drains in force. */
export interface DrainList {
  readonly drains: readonly AdminDrain[]
  /** Number of drains by annotations that are not listed, because there are too many. */
  readonly drainsOmitted: number
}

/** A new drain, and what it selects now. */
export interface AppliedDrain extends AdminDrain, SelectedCount {}

/** A drain to add, as the request has it. */
export interface DrainOrder {
  /** Terms, as in a drain file: `site:dublin host:*.example.com`. */
  readonly selector: string
  readonly reason?: string
  /** Who drains. */
  readonly actor?: string
  /** A time of RFC 3339, or a duration from now such as `2h`. The default: until it is ended. */
  readonly until?: string
  /** Needed if the server has several drain files. */
  readonly file?: string
  /** Accept a selector that selects nothing now. */
  readonly allowEmpty?: boolean
}

/** The drains of a server. Its functions throw, or reject with, InputError if a file or an order is invalid. */
export interface AdminDrains {
  /** Those in force. */
  list(): DrainList
  /** Replaces a drain with the same selector. Resolves to undefined if too many orders wait. */
  add(order: DrainOrder): Promise<AppliedDrain | undefined>
  /** Ends the drains with that id in all files. Resolves to them; empty = no drain has that id. */
  end(id: string): Promise<readonly AdminDrain[]>
}
