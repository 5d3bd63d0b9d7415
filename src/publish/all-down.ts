import { CLOSED, OPEN } from '../steering/rules.ts'
import type { AllDown } from './owner-sets.ts'

/** A name and type whose endpoints are all down or drained. */
export interface DownSet {
  /** Owner and type, as text. */
  readonly set: string
  readonly allDown: AllDown
}

/** What serves such a set, without the name of a fallback endpoint: the values of a metric's label. */
export const ALL_DOWN_KINDS = [OPEN, CLOSED, 'fallback'] as const
export type AllDownKind = (typeof ALL_DOWN_KINDS)[number]

export function kindOf({ policy }: AllDown): AllDownKind {
  return policy === OPEN || policy === CLOSED ? policy : 'fallback'
}

/** Prints what happens in place of the usual answer, for the log. */
export function printAllDown({ policy, missing }: AllDown): string {
  if (policy === CLOSED) return 'the answer is empty'
  if (policy !== OPEN) return `endpoint ${JSON.stringify(policy)} serves`
  return missing === undefined
    ? 'health and drains are ignored'
    : `health and drains are ignored, because no endpoint is named ${JSON.stringify(missing)}`
}

/** Prints which sets are all down, for the ready page; '' = none. Names up to `namedMax` of each kind. */
export function noteAllDown(sets: readonly DownSet[], namedMax: number): string {
  const named = new Map<string, string[]>()
  for (const { set, allDown } of sets) {
    const text = headOf(allDown)
    named.set(text, [...(named.get(text) ?? []), set])
  }
  const notes = [...named].map(([head, names]) => {
    const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : ''
    return `${head}: ${names.slice(0, namedMax).join(', ')}${more}`
  })
  return notes.join('; ')
}

function headOf(allDown: AllDown): string {
  const isPlain = allDown.policy === OPEN && allDown.missing === undefined
  if (isPlain) return 'health and drains are ignored, because all endpoints are down or drained'
  return `all endpoints are down or drained, and ${printAllDown(allDown)}`
}
