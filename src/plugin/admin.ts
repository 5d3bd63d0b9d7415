import type { Position } from '../base/errors.ts'
import type { EventLog } from '../base/telemetry/event-log.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ServerStatus } from '../base/telemetry/status.ts'
import type { AdminDrains } from './admin-drains.ts'
import type { ExplainQuestion } from './answer-explainer.ts'

/** The bearer token of an admin API. */
interface AdminToken {
  /** True if an `Authorization` header has the token. */
  accepts(header: string | undefined): boolean
  /** Why there is no valid token, so that every request is refused; '' = there is one. */
  readonly fault: string
}

/** A certificate chain and its key, in PEM. */
export interface TlsTexts {
  readonly cert: string
  readonly key: string
}

/** The certificate of an admin API. */
export interface AdminCertificate {
  /** Throws InputError if a file can't be used. */
  read(): TlsTexts
  /** As `read`; undefined = the files have not changed since the last call of either. */
  readChanged(): TlsTexts | undefined
}

/** An admin API: where it listens, who may use it, and what it serves. */
export interface AdminSite {
  /** `host:port`, as of `SetupContext.http`. */
  readonly address: string
  /** Of the directive. */
  readonly position: Position
  /** Undefined = any local client may use the API. */
  readonly token: AdminToken | undefined
  /** Undefined = HTTP without TLS. */
  readonly certificate: AdminCertificate | undefined
  /** Names by which clients reach the API, beside localhost and addresses; lower case. */
  readonly hosts: readonly string[]
  readonly log: Logger
  readonly status: () => ServerStatus
  /** Undefined before the start. */
  readonly events: () => EventLog | undefined
  readonly drains: AdminDrains
  /**
   * Resolves to why a client gets an answer; undefined = the server has no capacity for it now.
   * Rejects with InputError if the question is invalid.
   */
  readonly explain: (question: ExplainQuestion) => Promise<object | undefined>
}
