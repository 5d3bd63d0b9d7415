/*
 * What is counted of queries, one number each. A thread has a counter for each of them; the history has a row of them
 * for each step of time.
 *
 *     0 …       replies by rcode; the last one counts the higher rcodes
 *     NO_REPLY  queries without a reply
 *     DROPPED   queries that were dropped before they were parsed
 *     LATENCY … queries by how long they took
 */
export const RCODES = 25
export const NO_REPLY = RCODES
export const DROPPED = NO_REPLY + 1
export const LATENCY = DROPPED + 1

/** Upper bounds of latencies in milliseconds: 1 µs, then each 1.41 times the one before, up to 8.4 s. */
const LATENCY_BOUNDS_MS: Float64Array = Float64Array.from({ length: 47 }, (_, i) => {
  return 0.001 * 2 ** (i / 2)
})
const LATENCY_BUCKETS = LATENCY_BOUNDS_MS.length + 1
export const COLUMNS = LATENCY + LATENCY_BUCKETS

/** Returns the bucket of a latency. */
export function latencyBucket(ms: number): number {
  const bounds = LATENCY_BOUNDS_MS
  let bucket = 0
  while (bucket < bounds.length && ms > bounds[bucket]!) bucket++
  return bucket
}

/**
 * Returns the latency in milliseconds that `part` of the queries in `row` do not exceed; undefined = no query was
 * measured. Inside a bucket, latencies are assumed to be spread evenly.
 */
export function percentile(row: ArrayLike<number>, part: number): number | undefined {
  let total = 0
  for (let i = 0; i < LATENCY_BUCKETS; i++) total += row[LATENCY + i]!
  if (total <= 0) return undefined
  let rest = total * part
  for (let i = 0; i < LATENCY_BOUNDS_MS.length; i++) {
    const count = row[LATENCY + i]!
    const below = i === 0 ? 0 : LATENCY_BOUNDS_MS[i - 1]!
    const above = LATENCY_BOUNDS_MS[i]!
    if (count > 0 && rest <= count) return below + (above - below) * (rest / count)
    rest -= count
  }
  return LATENCY_BOUNDS_MS.at(-1)!
}
