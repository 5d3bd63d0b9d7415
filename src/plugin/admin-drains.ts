import type { SelectedCount } from '../health/drain/drain-index.ts'
import type { DrainReport } from '../health/drain/drain-report.ts'

/** A drain, and the path of its file. */
export interface AdminDrain extends DrainReport {
  readonly file: string
}

/** A new drain, and what it selects now. */
export interface AppliedDrain extends AdminDrain, SelectedCount {}

/** A drain to add, as written by an operator. */
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
  list(): readonly AdminDrain[]
  /** Replaces a drain with the same selector. */
  add(order: DrainOrder): Promise<AppliedDrain>
  /** Resolves to the ended drain; undefined = no drain has that id. */
  end(id: string): Promise<AdminDrain | undefined>
}
