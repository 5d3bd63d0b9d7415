/** Bounds between two looks at a record. */
export interface RequeueBounds {
  readonly minMs: number
  readonly maxMs: number
}

/** Where a record stands. */
export interface RequeueState {
  /** Some peer has to be asked: it doesn't tell by itself what changes. */
  readonly isPolling: boolean
  /** Looks in a row that found nothing new; 0 = the last one did. */
  readonly quietLooks: number
  /** Lowest TTL of what is published: answers of before stay in caches as long; undefined = nothing is. */
  readonly ttlSeconds: number | undefined
  /** Until the next share of a silent peer runs out; undefined = none will. */
  readonly expiresInMs: number | undefined
}

/** Doublings are counted up to here. */
const DOUBLINGS_MAX = 30
/** A share has run out only after its last millisecond. */
const AFTER_EXPIRY_MS = 1

/**
 * When to look at a record again. Peers that have to be asked are asked at short intervals after a change, then at
 * growing ones up to the TTL of what is published: nobody sees a change sooner than that. All within the bounds.
 */
export function nextLookMs(state: RequeueState, { minMs, maxMs }: RequeueBounds): number {
  const { isPolling, quietLooks, ttlSeconds, expiresInMs } = state
  const within = (ms: number): number => Math.min(Math.max(ms, minMs), maxMs)
  const ttlMs = within((ttlSeconds ?? 0) * 1000)
  const pollMs = Math.min(minMs * 2 ** Math.min(quietLooks, DOUBLINGS_MAX), ttlMs)
  const lookMs = isPolling ? within(pollMs) : maxMs
  return expiresInMs === undefined
    ? lookMs
    : Math.min(lookMs, within(expiresInMs + AFTER_EXPIRY_MS))
}
