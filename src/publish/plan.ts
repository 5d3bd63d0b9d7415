import { printLatin1 } from '../base/latin1.ts'
import type { Candidate } from '../steering/candidate.ts'
import { type Failover, servingMembers } from '../steering/failover.ts'
import type { OwnerSet } from './owner-set.ts'

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
    if (known === undefined || !equalSets(known, set)) changes.push({ kind: 'put', owner, set })
  }
  return changes
}

function equalSets(a: OwnerSet, b: OwnerSet): boolean {
  return printSet(a) === printSet(b)
}

/** Prints everything in a set that affects clients. `ContentDigest` hashes this text. */
export function printSet(set: OwnerSet): string {
  let text = `${set.type} ${set.ttlSeconds}`
  for (const rdata of set.rdata) text += ` ${rdata.length} ${printLatin1(rdata)}`
  for (const candidate of set.candidates) text += printCandidate(candidate)
  return text + printRules(set)
}

/** Prints the rules of the choice, for `printSet`; '' = those that always hold. */
export function printRules(set: OwnerSet): string {
  const { sticky, failover } = set
  const hashed = sticky === undefined ? '' : ` sticky ${sticky.ipv4Bits} ${sticky.ipv6Bits}`
  return failover === undefined ? hashed : `${hashed} failover${printLists(set, failover)}`
}

/** Prints who serves, not how that was found: clients see nothing else. */
function printLists({ candidates }: OwnerSet, failover: Failover): string {
  const lists = failover.lists.map((list) => {
    const members = servingMembers(list, failover)
    const known = members.map((member) => candidates.indexOf(member))
    const text = known.includes(-1) ? members.map(printCandidate).join('') : known.join()
    return ` ${list.code?.text ?? ''}:${text}`
  })
  return lists.sort().join('')
}

/** Prints one candidate for `printSet`. */
export function printCandidate(candidate: Candidate): string {
  const { code, isDefault, point, weight, rdataIndexes, seed, shift } = candidate
  const at = point === undefined ? '' : `@${point.text}`
  const text = ` |${code?.text ?? ''}${at} ${isDefault ? 1 : 0} ${weight ?? ''} ${rdataIndexes.join()}`
  const seeded = seed === undefined ? text : `${text} ${seed.join('.')}`
  if (shift === undefined) return seeded
  return `${seeded} shift ${shift.isTarget ? 'to' : 'from'} ${shift.percent}`
}
