import type { Logger } from '../../base/telemetry/log.ts'
import { CLOSED, OPEN } from '../../steering/rules.ts'
import type { AllDown } from './owner-set.ts'

/** A name and type whose endpoints are all down or drained, or those of some of its failover lists. */
export interface DownSet {
  /** Owner and type, as text. */
  readonly set: string
  /** The codes of these lists; undefined = all endpoints are out of service. */
  readonly lists?: readonly string[] | undefined
  readonly allDown: AllDown
}

/** What serves such a set, without the name of a fallback endpoint: the values of a metric's label. */
export const ALL_DOWN_KINDS = [OPEN, CLOSED, 'fallback'] as const
/** Codes of lists that a text names. */
const LISTS_NAMED_MAX = 5
export type AllDownKind = (typeof ALL_DOWN_KINDS)[number]

export function kindOf({ policy }: AllDown): AllDownKind {
  return policy === OPEN || policy === CLOSED ? policy : 'fallback'
}

/** Prints what happens in place of the usual answer, for the log. */
export function printAllDown({ policy, missing, isDrained }: AllDown): string {
  if (policy === CLOSED) return 'the answer is empty'
  if (isDrained === true)
    return `the answer is empty, because endpoint ${JSON.stringify(policy)} is drained`
  if (policy !== OPEN) return `endpoint ${JSON.stringify(policy)} serves`
  return missing === undefined
    ? 'health and drains are ignored'
    : `health and drains are ignored, because ${printMissing(missing)}`
}

/** `missing`: the fallback endpoint that the policy names. */
function printMissing(missing: string): string {
  return `no endpoint has the set identifier ${JSON.stringify(missing)}`
}

/** Prints what is out of service, and what happens. */
export function printOut({ lists, allDown }: DownSet): string {
  if (lists === undefined) return `all endpoints are down or drained; ${printAllDown(allDown)}`
  return `failover ${printLists(lists, allDown)}`
}

/** Prints `list GEO-EU is exhausted; …`, or the same of `lists GEO-EU, GEO-NA`. */
function printLists(lists: readonly string[], allDown: AllDown): string {
  return `${nameLists(lists)} exhausted; ${printExhausted(allDown)}`
}

function nameLists(lists: readonly string[]): string {
  const named = lists.slice(0, LISTS_NAMED_MAX).join(', ')
  const more = lists.length > LISTS_NAMED_MAX ? ` and ${lists.length - LISTS_NAMED_MAX} more` : ''
  return lists.length === 1 ? `list ${named} is` : `lists ${named}${more} are`
}

/** Prints what the clients of exhausted failover lists get. */
function printExhausted(allDown: AllDown): string {
  const { policy, missing } = allDown
  if (policy !== OPEN) return printAllDown(allDown)
  const why = missing === undefined ? '' : `, because ${printMissing(missing)}`
  return `any endpoint in service serves${why}`
}

/** Logs that a set got out of service or its state changed; `isOver`: that it is back. */
export function logOut(log: Logger, { set, lists, allDown }: DownSet, isOver: boolean): void {
  if (lists !== undefined) {
    if (!isOver) log.warning(`${set}: failover ${printLists(lists, allDown)}`, 'failover-exhausted')
    else
      log.info(
        `${set}: failover lists have an endpoint in service again, or all are gone`,
        'failover-recovered',
      )
  } else if (!isOver) {
    log.warning(
      `${set}: all endpoints are down or drained; ${printAllDown(allDown)}`,
      'endpoints-all-down',
    )
  } else if (allDown.policy === OPEN) {
    log.info(`${set}: health and drains are not ignored any more`, 'endpoints-all-down-ends')
  } else log.info(`${set}: an endpoint is in service again, or all are gone`, 'endpoint-in-service')
}

/** Prints such sets for the ready page; '' = none. Names up to `namedMax` of each kind. */
export function noteAllDown(sets: readonly DownSet[], namedMax: number): string {
  const named = new Map<string, string[]>()
  for (const one of sets) {
    const text = headOf(one)
    named.set(text, [...(named.get(text) ?? []), one.set])
  }
  const notes = [...named].map(([head, names]) => {
    const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : ''
    return `${head}: ${names.slice(0, namedMax).join(', ')}${more}`
  })
  return notes.join('; ')
}

function headOf({ lists, allDown }: DownSet): string {
  if (lists !== undefined)
    return `failover ${nameLists(lists)} exhausted, and ${printExhausted(allDown)}`
  const isPlain = allDown.policy === OPEN && allDown.missing === undefined
  if (isPlain) return 'health and drains are ignored, because all endpoints are down or drained'
  return `all endpoints are down or drained, and ${printAllDown(allDown)}`
}
