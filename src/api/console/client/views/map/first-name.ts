import type { AdminName } from '../../../../../plugin/admin-names.ts'

/** A name and a type that have a map. */
interface MappedName {
  readonly name: string
  readonly type: string
}

const labelCount = (name: string): number => name.split('.').length

/**
 * Returns the name whose map opens first: one with the fewest labels, because hosts are above the names that their
 * CNAME chains lead to; undefined = none has addresses.
 */
export function firstName(names: readonly AdminName[]): MappedName | undefined {
  const [first] = names
    .filter(({ name, types }) => !name.startsWith('*') && typeOf(types) !== undefined)
    .toSorted((a, b) => labelCount(a.name) - labelCount(b.name))
  return first === undefined ? undefined : { name: first.name, type: typeOf(first.types)! }
}

/** A CNAME chain leads to addresses. */
function typeOf(types: readonly string[]): string | undefined {
  if (types.includes('A') || types.includes('CNAME')) return 'A'
  return types.includes('AAAA') ? 'AAAA' : undefined
}
