import { sortInSlices } from '../sort.ts'
import {
  type EndpointFacts,
  type EndpointHistory,
  type EndpointTimeline,
  TIMELINE_STATES,
  type TimelineState,
} from './endpoint-history.ts'
import type { EventActor } from './event-log.ts'

/** Which endpoints are listed. */
export interface EndpointQuery {
  /** Their zone; undefined = any. */
  readonly zone?: string
  /** A part of their name; undefined = any. */
  readonly name?: string
  /** `not up`: any state except `up`. */
  readonly state?: TimelineState | 'not up'
  readonly offset: number
  readonly limit: number
}

interface TransitionReport {
  /** RFC 3339. */
  readonly time: string
  readonly state: TimelineState
  readonly reason: string
  readonly actor: EventActor
}

/** An endpoint, and its states in the last 24 hours. */
export interface EndpointReport extends EndpointFacts {
  readonly state: TimelineState
  /** What is out of service and why, the drain, the shift, or the part of the weight. */
  readonly detail: string
  /** Percent of its weight that it gets; 100 except in slow start. */
  readonly weightPercent: number
  /** RFC 3339: when the state began; '' = not known. */
  readonly since: string
  /** The state before the first transition; '' = it did not exist, or the state is not known. */
  readonly before: TimelineState | ''
  /** The oldest first. */
  readonly transitions: readonly TransitionReport[]
}

export interface EndpointPage {
  /** RFC 3339: when the transitions begin. */
  readonly from: string
  readonly now: string
  /** The worst first. */
  readonly endpoints: readonly EndpointReport[]
  /** Number of endpoints that the query selects, and how many of them are in each state. */
  readonly total: number
  readonly states: Readonly<Record<string, number>>
  /** Number of records that were not read, because there are too many. */
  readonly recordsOmitted: number
}

/** An endpoint that is served now. */
export interface ServedEndpoint
  extends Pick<EndpointFacts, 'zone' | 'name' | 'type' | 'setIdentifier'> {
  readonly state: TimelineState
  readonly timeline: EndpointTimeline | undefined
  /** Called for the endpoints of one page. */
  readonly describe: () => EndpointFacts & Pick<EndpointReport, 'detail' | 'weightPercent'>
}

/** The endpoints of one publisher. */
export interface EndpointList {
  /** Equal in both instances of a reload. */
  readonly place: string
  /** Number of records. */
  readonly size: number
  /**
   * Calls `visit` with endpoints, after all that are not up. Offers a pause at each record, and ends once
   * `reads.left` is 0. `history`: undefined = changes are not noted.
   */
  walk(
    query: EndpointQuery,
    history: EndpointHistory | undefined,
    reads: { left: number },
    visit: (endpoint: ServedEndpoint) => void,
  ): Generator<void>
}

/** Records that are decoded for one page, and endpoints that are held meanwhile. */
const READS_MAX = 50_000
const FOUND_MAX = 200_000
const WINDOW_MS = 24 * 3600_000
const GONE = { detail: '', weightPercent: 0 }

/** The endpoints of all publishers of the process. */
export class EndpointLists {
  readonly #lists = new Set<EndpointList>()

  /** Returns the function that removes it. */
  add(list: EndpointList): () => void {
    this.#lists.add(list)
    return () => this.#lists.delete(list)
  }

  /** Returns a page of endpoints, the worst first. Offers pauses. */
  *select(
    query: EndpointQuery,
    history: EndpointHistory | undefined,
    nowMs: number,
  ): Generator<void, EndpointPage> {
    const fromMs = Math.max(nowMs - WINDOW_MS, history?.beginMs ?? nowMs)
    const found: ServedEndpoint[] = []
    const reads = { left: READS_MAX }
    let read = READS_MAX
    const visit = (one: ServedEndpoint): void => {
      if (!isSelected(one, query)) return
      found.push(one)
      if (found.length !== FOUND_MAX) return
      read -= reads.left
      reads.left = 0
    }
    for (const timeline of history?.removed() ?? []) {
      const { facts, transitions } = timeline
      if (transitions.at(-1)!.timeMs < fromMs) continue
      visit({ ...facts, state: 'removed', timeline, describe: () => ({ ...facts, ...GONE }) })
    }
    // In a reload, both instances have lists.
    const lists = [...new Map([...this.#lists].map((list) => [list.place, list])).values()]
    for (const list of lists) yield* list.walk(query, history, reads, visit)
    const order = Uint32Array.from(found, (_, i) => i)
    yield* sortInSlices(order, (a, b) => compare(found[a]!, found[b]!))
    const states: Record<string, number> = {}
    for (const { state } of found) states[state] = (states[state] ?? 0) + 1
    const size = lists.reduce((sum, list) => sum + list.size, 0)
    const page = order.subarray(query.offset, query.offset + query.limit)
    return {
      from: printTime(fromMs),
      now: printTime(nowMs),
      endpoints: Array.from(page, (i) => report(found[i]!, fromMs)),
      total: found.length,
      states,
      recordsOmitted: reads.left > 0 ? 0 : Math.max(0, size - read),
    }
  }
}

function isSelected(one: ServedEndpoint, query: EndpointQuery): boolean {
  const { state } = one
  const { zone, name } = query
  if (zone !== undefined && one.zone !== absolute(zone)) return false
  if (name !== undefined && !one.name.toLowerCase().includes(name.toLowerCase())) return false
  return query.state === undefined || query.state === state || isNotUp(query.state, state)
}

function isNotUp(wanted: EndpointQuery['state'], state: TimelineState): boolean {
  return wanted === 'not up' && state !== 'up'
}

function absolute(zone: string): string {
  return zone.endsWith('.') ? zone.toLowerCase() : `${zone.toLowerCase()}.`
}

/** The worst first, then the one that changed last. */
function compare(a: ServedEndpoint, b: ServedEndpoint): number {
  if (a.state !== b.state) {
    return TIMELINE_STATES.indexOf(a.state) - TIMELINE_STATES.indexOf(b.state)
  }
  return changedMs(b) - changedMs(a) || compareFacts(a, b)
}

function compareFacts(a: ServedEndpoint, b: ServedEndpoint): number {
  return (
    compareTexts(a.name, b.name) ||
    compareTexts(a.type, b.type) ||
    compareTexts(a.setIdentifier, b.setIdentifier)
  )
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function changedMs({ timeline }: ServedEndpoint): number {
  return timeline?.transitions.at(-1)?.timeMs ?? 0
}

function report({ state, timeline, describe }: ServedEndpoint, fromMs: number): EndpointReport {
  const all = timeline?.transitions ?? []
  // The last transition before `fromMs` is the state at this time.
  const first = Math.max(
    0,
    all.findLastIndex(({ timeMs }) => timeMs <= fromMs),
  )
  const last = all.at(-1)
  return {
    ...describe(),
    state,
    since: last?.state === state ? printTime(last.timeMs) : '',
    before: (first === 0 ? timeline?.before : all[first - 1]!.state) ?? '',
    transitions: all.slice(first).map(({ timeMs, ...rest }) => {
      return { time: printTime(timeMs), state: rest.state, reason: rest.reason, actor: rest.actor }
    }),
  }
}

/** With milliseconds, because a state can last less than a second. */
function printTime(ms: number): string {
  return new Date(ms).toISOString()
}
