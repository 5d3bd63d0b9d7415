import type { Contribution } from './owner-set.ts'

/** Characters of a value in a message. */
const VALUE_MAX = 100

/** A conflict between endpoints, and how it was resolved. */
export interface Conflict {
  readonly text: string
  /** `namespace/name` of the record that was overruled, or that came last. */
  readonly key: string
  /** Owner and type of that record's endpoint. */
  readonly owner: Uint8Array
  readonly type: number
  /** True = endpoints of other records or sites may end it. */
  readonly isProvisional?: boolean
  /** True = an endpoint is not served because of it: an error for `sextant check`. */
  readonly isFault?: boolean
}

/** A conflict that the record of the contribution is reported for. */
export function conflictAt({ key, endpoint }: Contribution, text: string): Conflict {
  return { text, key, owner: endpoint.owner, type: endpoint.type }
}

/** Prints two values that exclude each other, and the records that have them. */
export function contrast(
  [first, a]: readonly [value: string, of: Contribution],
  [second, b]: readonly [value: string, of: Contribution],
  joint = 'and',
): string {
  const [one, other] = [shorten(first), shorten(second)]
  if (a.key === b.key) return `${one} ${joint} ${other} (both in ${a.place})`
  // Sites do not learn the names of each other's records.
  if (a.place === b.place) return `${one} ${joint} ${other} (${a.place}, and another one)`
  return `${one} (${a.place}) ${joint} ${other} (${b.place})`
}

function shorten(text: string): string {
  return text.length <= VALUE_MAX ? text : `${text.slice(0, VALUE_MAX)}…`
}
