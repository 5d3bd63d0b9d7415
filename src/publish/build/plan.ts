import type { OwnerSet } from './owner-set.ts'
import { packSet } from './pack-set.ts'

/** One step from the served to the wanted RRsets. */
export type Change =
  | { readonly kind: 'put'; readonly owner: Uint8Array; readonly set: OwnerSet }
  | { readonly kind: 'remove'; readonly owner: Uint8Array; readonly type: number }

/**
 * Returns the changes that lead from `current` to `desired`, both the RRsets of one owner, each
 * type at most once. RRsets that clients can't distinguish need no change.
 */
export function plan(
  owner: Uint8Array,
  current: readonly OwnerSet[],
  desired: readonly OwnerSet[],
): Change[] {
  const changes: Change[] = []
  for (const set of current) {
    if (!desired.some((d) => d.type === set.type))
      changes.push({ kind: 'remove', owner, type: set.type })
  }
  for (const set of desired) {
    const known = current.find((c) => c.type === set.type)
    if (known === undefined || packSet(known) !== packSet(set))
      changes.push({ kind: 'put', owner, set })
  }
  return changes
}
