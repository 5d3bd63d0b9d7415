import type { Random } from '../../base/random.ts'

/** How often names are resolved. */
export interface ResolverRules {
  /** Names that are resolved at the same time. */
  readonly workers: number
  /** Names that are started per second. */
  readonly perSecond: number
  /** Servers that are asked for a name; Infinity = all. */
  readonly serversMax: number
  /** Bounds of the wait after an answer. */
  readonly minMs: number
  readonly maxMs: number
  /**
   * Time before the end of the TTL when a name is due, at most half of the TTL. 0 for servers with a
   * cache: before the end they return the old answer.
   */
  readonly leadMs: number
  /** Added to the TTL: by then, the caches of the servers have dropped the old answer. */
  readonly afterMs: number
  /**
   * The first queries for a name have a short timeout. So many names that never answer do not delay further new ones
   * for long. Those without a reply are sent again at once, as far as other names permit.
   */
  readonly hurriesFirst: boolean
  /** Largest random part of a wait, so that names with one TTL are not due at once. */
  readonly spreadMs: number
}

/** The bounds and servers are those of OpenShift's controller of DNSNameResolvers. */
export const RESOLVER_RULES_DEFAULT: ResolverRules = {
  workers: 16,
  perSecond: 500,
  serversMax: 5,
  minMs: 5000,
  maxMs: 30 * 60_000,
  leadMs: 0,
  afterMs: 0,
  hurriesFirst: false,
  spreadMs: 2000,
}

const RETRY_MS = 5000
/** Failures after which the wait doubles. */
const RETRIES = 10
const RETRY_MS_MAX = 120_000

/** The wait after so many consecutive failures: 5 s, after the tenth twice as long each time, up to 2 min. */
export function failureWaitMs(failures: number): number {
  return Math.min(RETRY_MS * 2 ** Math.max(0, failures - RETRIES), RETRY_MS_MAX)
}

/**
 * The wait after an answer whose least TTL is given. With a lead, the random part ends before the
 * TTL does.
 */
export function answerWaitMs(ttlSeconds: number, rules: ResolverRules, random: Random): number {
  const ttlMs = ttlSeconds * 1000
  const leadMs = Math.min(rules.leadMs, ttlMs / 2)
  const wantedMs = ttlMs - leadMs + rules.afterMs
  const waitMs = Math.min(Math.max(wantedMs, rules.minMs), rules.maxMs)
  return waitMs + spread(leadMs > 0 ? leadMs / 2 : waitMs / 10, rules, random)
}

/** A random part of a wait, below `mostMs` and the bound of the rules. */
export function spread(mostMs: number, { spreadMs }: ResolverRules, random: Random): number {
  return random.below(Math.floor(Math.min(spreadMs, mostMs)) + 1)
}
