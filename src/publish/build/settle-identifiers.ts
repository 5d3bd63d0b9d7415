import { printType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { contentKey, describeContradiction, nameOf } from './equal-endpoints.ts'
import type { BuildOptions, Contribution } from './owner-set.ts'
import { type Conflict, conflictAt } from './record-conflicts.ts'

/** The endpoints with one set identifier that the first record with them has, by type. */
type Named = Map<number, readonly Contribution[]>

/**
 * Returns the contributions without those of records that use a set identifier of their site for other endpoints than
 * an earlier record. What such a record has with the identifier is left out in all types, so that the addresses of one
 * family are never those of another place. `ordered`: in the order of their records.
 */
export function settleIdentifiers(
  owner: Uint8Array,
  ordered: readonly Contribution[],
  { report }: BuildOptions,
  conflicts: Conflict[],
): readonly Contribution[] {
  if (!isShared(ordered)) return ordered
  const served = new Map<string, Named>()
  const dropped = new Set<Contribution>()
  for (const members of groupByRecord(ordered)) {
    const name = nameOf(members[0]!)
    if (name === '') continue
    const known = served.get(name) ?? new Map()
    const loss = findContradiction(members, known)
    if (loss === undefined) {
      served.set(name, known)
      for (const member of members) {
        const { type } = member.endpoint
        known.set(type, [...(known.get(type) ?? []), member])
      }
      continue
    }
    const [first, other] = loss
    const label = `${printName(owner)} ${printType(other.endpoint.type)}`
    const text = describeContradiction(label, first, other)
    conflicts.push({ ...conflictAt(other, text), isFault: true })
    for (const member of members) {
      dropped.add(member)
      report?.dropped(member, { kind: 'contradicted', by: first.place })
    }
  }
  return dropped.size === 0 ? ordered : ordered.filter((one) => !dropped.has(one))
}

/** True if several records have one set identifier. */
function isShared(ordered: readonly Contribution[]): boolean {
  const { key } = ordered[0]!
  if (ordered.every((one) => one.key === key)) return false
  const holders = new Map<string, string>()
  return ordered.some((one) => {
    const name = nameOf(one)
    if (name === '') return false
    const holder = holders.get(name)
    if (holder === undefined) holders.set(name, one.key)
    return holder !== undefined && holder !== one.key
  })
}

/** Groups by record and set identifier, in the order of records. */
function groupByRecord(ordered: readonly Contribution[]): Iterable<readonly Contribution[]> {
  const groups = new Map<string, Contribution[]>()
  for (const one of ordered) {
    const id = `${one.key}\n${nameOf(one)}`
    const group = groups.get(id)
    if (group === undefined) groups.set(id, [one])
    else group.push(one)
  }
  return groups.values()
}

/** Returns an earlier endpoint and one of the record that differs from all earlier ones of its type. */
function findContradiction(
  members: readonly Contribution[],
  known: Named,
): readonly [Contribution, Contribution] | undefined {
  for (const member of members) {
    const earlier = known.get(member.endpoint.type)
    if (earlier === undefined || earlier[0]!.key === member.key) continue
    const content = contentKey(member.endpoint)
    if (!earlier.some(({ endpoint }) => contentKey(endpoint) === content)) {
      return [earlier[0]!, member]
    }
  }
  return undefined
}
