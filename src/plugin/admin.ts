import type { Position } from '../base/errors.ts'
import type { EventLog } from '../base/telemetry/event-log.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ServerStatus } from '../base/telemetry/status.ts'
import type { AdminDrains } from './admin-drains.ts'
import type { AdminFleet } from './admin-fleet.ts'
import type { AdminHealth } from './admin-health.ts'
import type { AnswerMap, MapQuestion } from './admin-map.ts'
import type { NameList, NamesRequest } from './admin-names.ts'
import type { AdminShifts } from './admin-shifts.ts'
import type { AdminTraffic } from './admin-traffic.ts'
import type { WhatIfOrder, WhatIfReply } from './admin-what-if.ts'
import type { ExplainQuestion } from './answer-explainer.ts'

/** What a client may do: `view` reads, and `operate` also changes what is served. */
export type AdminRole = 'view' | 'operate'

/** The bearer tokens of an admin API, one for each role at most. */
export interface AdminTokens {
  /** Returns the role of the token in an `Authorization` header; undefined = it is not one of the tokens. */
  roleOf(header: string | undefined): AdminRole | undefined
  /** Why a token can't be used, so that requests with it are refused; '' = all can be used. */
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
  readonly tokens: AdminTokens | undefined
  /** With `tokens`: clients on this machine may read without one. False for an address that other machines reach. */
  readonly readsOpenly: boolean
  /** Undefined = HTTP without TLS. */
  readonly certificate: AdminCertificate | undefined
  /** Names by which clients reach the API, beside localhost and addresses; lower case. */
  readonly hosts: readonly string[]
  /** Serves the web console at `/console/`. */
  readonly console: boolean
  readonly log: Logger
  readonly status: () => ServerStatus
  /** Undefined before the start. */
  readonly events: () => EventLog | undefined
  readonly drains: AdminDrains
  readonly shifts: AdminShifts
  readonly fleet: AdminFleet
  /** Resolves to names that DNSRecords serve; undefined = too many requests wait. */
  readonly names: (request: NamesRequest) => Promise<NameList | undefined>
  /** Undefined = traffic is not counted. */
  readonly traffic: () => AdminTraffic | undefined
  readonly health: AdminHealth
  /**
   * Resolves to why a client gets an answer; undefined = the server has no capacity for it now.
   * Rejects with InputError if the question is invalid.
   */
  readonly explain: (question: ExplainQuestion) => Promise<object | undefined>
  /** Resolves to what a change would change; else as `explain`. */
  readonly whatIf: (order: WhatIfOrder) => Promise<WhatIfReply | undefined>
  /** Resolves to where clients get which answers; as `explain`. */
  readonly map: (question: MapQuestion) => Promise<AnswerMap | undefined>
}
