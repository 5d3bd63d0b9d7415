import type { InputError } from '../base/errors.ts'
import type { SharedValues } from '../base/shared-values.ts'

/** Receives reports of a validation of `sextant check`, in addition to the faults that it returns. */
export interface CheckReport {
  /** Reports data that is served differently from what its author may expect. */
  warn(warning: InputError): void
  /** Reports what was read, as one line: `zones/db.example.org: zone example.org., 12 records`. */
  read(what: string): void
  /** Reports what will happen in an event, as one line: `if berlin dies: …`. */
  foresee(line: string): void
  /** True: send nothing to other machines, and do not require files that exist only on the server. */
  readonly isOffline: boolean
}

/** Returns every fault that would prevent a start or reject content. */
export type CheckHook = (
  report: CheckReport,
) => readonly InputError[] | Promise<readonly InputError[]>

/** What a command that serves nothing asks the directives to load. */
export interface OfflineLoad {
  /** Path of the database to read in place of the one that `geoip` names; undefined = that one. */
  readonly database: string | undefined
  /** True: locators can locate single addresses, not only build classes. Reads every entry. */
  readonly readsEntries: boolean
  /** True: chains must answer queries as those of a server; else the zones of records are enough. */
  readonly answers: boolean
  /** What only some directives need. */
  readonly shared: SharedValues
}

/** Reply of an HTTP endpoint. */
export interface HttpReply {
  readonly status: number
  readonly contentType: string
  readonly body: string
}
