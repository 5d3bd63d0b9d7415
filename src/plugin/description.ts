import type { InputError } from '../base/errors.ts'
import type { SharedValues } from '../base/shared-values.ts'
import type { ProblemGroup } from '../base/telemetry/problems.ts'
import type { StatusPart } from '../base/telemetry/status.ts'
import type { AdminSite } from './admin.ts'
import type { HandlerFactory } from './handler.ts'

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

/** An HTTP endpoint that is served from start-up to shutdown. */
export interface HttpEndpoint {
  /** `:8080` or `127.0.0.1:8080`. */
  readonly address: string
  readonly path: string
  /** Answers a GET. `query`: what follows the `?` of the URL. `accept`: the client's header Accept. */
  readonly reply: (query: URLSearchParams, accept: string) => HttpReply | Promise<HttpReply>
  /** Milliseconds that `reply` and the client may take together; absent = 5000. */
  readonly replyMsMax?: number
}

/** A part of what a directive does in its server block. */
export interface DirectivePart {
  /** A link of the block's chain. The order follows plugins/order.ts, not the Corefile. */
  readonly handler?: HandlerFactory | undefined
  /** The handler changes answers that a handler below may have signed, and sets `needsSigning` then. */
  readonly changesAnswers?: boolean | undefined
  /** A link directly above all with `changesAnswers` of its block, if it has one of these. */
  readonly handlerAboveChanges?: HandlerFactory | undefined
  /** `serve` of the handler may return a Promise: data threads hand the queries that reach it to the control thread. */
  readonly waits?: boolean | undefined
  /** If the block accepts NOTIFYs, they pass through the handler too; they bypass others. */
  readonly seesNotify?: boolean | undefined
  /**
   * The handler takes queries of class CH, and passes them on only to another such handler. Blocks
   * without one refuse them.
   */
  readonly takesChaos?: boolean | undefined
  /** The handler answers queries from its own data. A block without such a handler causes a warning. */
  readonly answers?: boolean | undefined
  /** Runs in every thread, after the setups of all blocks: for code that reads what others share. No I/O. */
  readonly link?: (() => void) | undefined
  /** Runs after every setup of every block succeeded, before sockets open. A failure stops the start. */
  readonly start?: (() => void | Promise<void>) | undefined
  /** Runs once the sockets of DNS and HTTP are open and this instance answers on them. Must not throw. */
  readonly serving?: (() => void) | undefined
  /**
   * Runs when the instance ends: after a reload replaced it, at exit, or after its own start failed.
   * In the last case `start` may not have run.
   */
  readonly stop?: (() => void | Promise<void>) | undefined
  /** Runs only at exit, before `stop`; `health`'s lameduck waits here. */
  readonly exit?: (() => void | Promise<void>) | undefined
  /**
   * Validation for `sextant check`, run instead of `start`: reads the files that the directive names
   * (manifests, zone files, databases) and returns every fault found, each with its position. Opens
   * no socket, starts no watch, keeps nothing. Never called by `serve`.
   */
  readonly check?: CheckHook | undefined
  /**
   * Runs instead of `start` for a command that serves nothing, such as `sextant what-if`: loads from
   * files what the directive answers from. Listens nowhere, writes nothing, sends nothing. `stop`
   * runs afterwards. A failure stops the command.
   */
  readonly offline?: ((load: OfflineLoad) => void | Promise<void>) | undefined
  /** Returns the reason why the directive is not ready, or '' if it is. */
  readonly ready?: (() => string) | undefined
  /** Returns text for the ready page, or ''. It is shown while all directives are ready. */
  readonly note?: (() => string) | undefined
  /** Contributes to the status of the server. Runs at each request for it, and must not throw. */
  readonly status?: (() => StatusPart) | undefined
  /**
   * Returns what is wrong now, with its place: for the ready page, the status and a metric. Runs at each request for
   * one of these, and must not throw. `ready` shows no other reason of a directive that was ready and reports problems.
   */
  readonly problems?: (() => readonly ProblemGroup[]) | undefined
  /** Serves the admin API from start-up to shutdown. Sites with equal settings are one. */
  readonly admin?: AdminSite | undefined
  readonly http?: HttpEndpoint | undefined
  /** The error that `setup` would throw. Returned instead, it lets `check` find faults with the other members. */
  readonly fault?: InputError | undefined
}

/** What a directive does: hooks of one kind run in the order of the list. */
export type Description = DirectivePart | readonly Description[]

/** Returns all parts, in order. */
export function partsOf(description: Description): readonly DirectivePart[] {
  return isList(description) ? description.flatMap(partsOf) : [description]
}

function isList(description: Description): description is readonly Description[] {
  return Array.isArray(description)
}
