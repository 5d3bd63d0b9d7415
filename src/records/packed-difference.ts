import { locateEndpoints, ownerKeyAt, type PackedRecord } from './pack.ts'

/** The difference between two versions of a record, found without unpacking the common part. */
export interface PackedDifference {
  /** `lowerNameKey` of every owner whose endpoints may differ. */
  readonly changed: ReadonlySet<string>
  /**
   * `lowerNameKey` of all other owners. They have the same endpoints, in the same order, in both
   * versions. May repeat.
   */
  readonly same: readonly string[]
}

/**
 * Compares two versions of one record. Returns undefined if the record's own fields differ (age,
 * place, flags) or one version has no endpoints: then the caller compares both completely.
 */
export function comparePacked(
  before: PackedRecord,
  after: PackedRecord,
): PackedDifference | undefined {
  const old = locateEndpoints(before)
  const now = locateEndpoints(after)
  if (old.countAt !== now.countAt) return undefined
  if (before.slice(0, old.countAt) !== after.slice(0, now.countAt)) return undefined
  const oldCount = old.starts.length - 1
  const nowCount = now.starts.length - 1
  if (oldCount === 0 || nowCount === 0) return undefined
  const isSame = (i: number, k: number): boolean =>
    before.slice(old.starts[i], old.starts[i + 1]) === after.slice(now.starts[k], now.starts[k + 1])
  let first = 0
  while (first < oldCount && first < nowCount && isSame(first, first)) first++
  let tail = 0
  const tailMax = Math.min(oldCount, nowCount) - first
  while (tail < tailMax && isSame(oldCount - 1 - tail, nowCount - 1 - tail)) tail++
  const changed = new Set<string>()
  for (let i = first; i < oldCount - tail; i++) changed.add(ownerKeyAt(before, old.starts[i]!))
  for (let i = first; i < nowCount - tail; i++) changed.add(ownerKeyAt(after, now.starts[i]!))
  const same: string[] = []
  const keep = (i: number): void => {
    const key = ownerKeyAt(after, now.starts[i]!)
    if (!changed.has(key)) same.push(key)
  }
  for (let i = 0; i < first; i++) keep(i)
  for (let i = nowCount - tail; i < nowCount; i++) keep(i)
  return { changed, same }
}
