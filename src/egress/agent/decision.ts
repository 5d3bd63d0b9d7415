import type { GateResult } from '../gate.ts'
import type { Client } from './client.ts'

/** What one answer did, for logs. */
export interface Decision {
  readonly client: Client
  /** The name of the question, in lower-case wire form. */
  readonly name: Uint8Array
  /** Addresses that the client learned. */
  readonly addresses: readonly string[]
  /** Those of them that its rules allow because of names. */
  readonly allowed: readonly string[]
  /** Addresses of the answer that are never allowed: those of the cluster, loopback and others. */
  readonly denied: readonly string[]
  /** Texts of the selectors that select the name. */
  readonly selectors: readonly string[]
  readonly result: GateResult
  /** How long the reply waited for the enforcer. */
  readonly waitMs: number
}

/** Numbers since the start. */
export interface AgentCounts {
  /** Answers with addresses that clients got. */
  answers: number
  /** Addresses of answers that are never allowed. */
  denied: number
  /** Addresses of names whose TTL ended, or that were above a limit of their name. */
  removals: number
  /** Addresses of names that were dropped before their end, at a limit. */
  evictions: number
  /** Zombies above a limit that may have had open connections. */
  zombieEvictions: number
  /** Complete dumps of the connections. */
  dumps: number
  failedDumps: number
}

export const EMPTY_COUNTS: AgentCounts = {
  answers: 0,
  denied: 0,
  removals: 0,
  evictions: 0,
  zombieEvictions: 0,
  dumps: 0,
  failedDumps: 0,
}
