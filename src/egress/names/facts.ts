import type { AddressFamily } from '../../dns/text/address.ts'

/**
 * What is known about one address of a name. Times are monotonic milliseconds. Facts say what was
 * seen; how long an address may be used is a matter of the policies (`validity.ts`).
 */
export interface AddressFact {
  readonly family: AddressFamily
  /** In canonical form. */
  readonly address: string
  readonly firstSeenMs: number
  /** The newest answer with this address; the fields up to `chain` are those of this answer. */
  readonly lastSeenMs: number
  readonly ttlSeconds: number
  /** The least TTL of the address and of the CNAME records that lead to it. */
  readonly chainTtlSeconds: number
  /** Server that sent the answer; '' = unknown. */
  readonly server: string
  /** Targets of the CNAME records between the name and the address, in their order. */
  readonly chain: readonly string[]
  /** The latest end of `ttlSeconds` of all answers. */
  readonly endMs: number
  /** The latest end of `chainTtlSeconds` of all answers. */
  readonly chainEndMs: number
}

/** Consecutive failures of the queries for one family. */
export interface FailureFact {
  readonly count: number
  readonly firstMs: number
  readonly lastMs: number
  /** The longest time between two consecutive failures. */
  readonly gapMs: number
  /** Of the last failure: an rcode such as `NXDOMAIN`, or why there was no reply. */
  readonly reason: string
}

/** Results of the queries for one family. */
export interface FamilyOutcome {
  /** Last answer that had addresses; -Infinity = none. */
  readonly answeredMs: number
  /** Undefined = no failure since then. */
  readonly failures: FailureFact | undefined
}

/** By the family that was asked for: 1 = A, 2 = AAAA. */
export type Outcomes = Readonly<Record<AddressFamily, FamilyOutcome>>

/** Everything that is known about a name. */
export interface NameFacts {
  /** Lower case, with the final dot. */
  readonly name: string
  readonly addresses: ReadonlyMap<string, AddressFact>
  readonly outcomes: Outcomes
}

export const NO_OUTCOME: FamilyOutcome = {
  answeredMs: Number.NEGATIVE_INFINITY,
  failures: undefined,
}

/**
 * Merges what two observers know about the same address of the same name. Commutative, associative
 * and idempotent: each field is a minimum or a maximum.
 */
export function mergeAddress(a: AddressFact, b: AddressFact): AddressFact {
  const newest = compareAnswers(a, b) < 0 ? b : a
  return {
    ...newest,
    firstSeenMs: Math.min(a.firstSeenMs, b.firstSeenMs),
    endMs: Math.max(a.endMs, b.endMs),
    chainEndMs: Math.max(a.chainEndMs, b.chainEndMs),
  }
}

/** Total order of the answers that two facts come from: by time, then by any content. */
function compareAnswers(a: AddressFact, b: AddressFact): number {
  return (
    a.lastSeenMs - b.lastSeenMs ||
    a.ttlSeconds - b.ttlSeconds ||
    a.chainTtlSeconds - b.chainTtlSeconds ||
    compareTexts(a.server, b.server) ||
    compareTexts(a.chain.join(' '), b.chain.join(' '))
  )
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/**
 * Merges two outcomes. Commutative, associative and idempotent: the latest answer counts, and the
 * latest run of failures, if it ended after this answer.
 */
export function mergeOutcomes(a: FamilyOutcome, b: FamilyOutcome): FamilyOutcome {
  const answeredMs = Math.max(a.answeredMs, b.answeredMs)
  const latest = laterFailures(a.failures, b.failures)
  const failures = latest !== undefined && latest.lastMs > answeredMs ? latest : undefined
  return { answeredMs, failures }
}

function laterFailures(
  a: FailureFact | undefined,
  b: FailureFact | undefined,
): FailureFact | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const order =
    a.lastMs - b.lastMs ||
    a.count - b.count ||
    a.firstMs - b.firstMs ||
    a.gapMs - b.gapMs ||
    compareTexts(a.reason, b.reason)
  return order < 0 ? b : a
}

/** The outcome after one more failure. A failure that is older than the last answer counts for nothing. */
export function countFailure(outcome: FamilyOutcome, atMs: number, reason: string): FamilyOutcome {
  const { answeredMs, failures } = outcome
  if (atMs <= answeredMs) return outcome
  if (failures === undefined) {
    const first = { count: 1, firstMs: atMs, lastMs: atMs, gapMs: 0, reason }
    return { answeredMs, failures: first }
  }
  const next = {
    count: failures.count + 1,
    firstMs: Math.min(failures.firstMs, atMs),
    lastMs: Math.max(failures.lastMs, atMs),
    gapMs: Math.max(failures.gapMs, atMs - failures.lastMs),
    reason: atMs < failures.lastMs ? failures.reason : reason,
  }
  return { answeredMs, failures: next }
}
