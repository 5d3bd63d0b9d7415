import type { Clock } from '../clock.ts'
import { printJsonText } from '../json-text.ts'

/** What caused a change of answers. */
export interface EventActor {
  readonly kind: EventKind
  /** The record, file, peer or person; '' = the kind says it all. */
  readonly name: string
}

export const EVENT_KINDS = [
  'start',
  'reload',
  'load',
  'record',
  'probe',
  'slow-start',
  'peer',
  'quorum',
  'drain',
  'shift',
  'act',
  'database',
  'key',
] as const
type EventKind = (typeof EVENT_KINDS)[number]

/** A change of answers. Fields that do not apply are missing. */
export interface AnswerChange {
  readonly actor: EventActor
  readonly zone?: string
  readonly serial?: number
  /** Owner name and type of the changed RRset. */
  readonly name?: string
  readonly type?: string
  /** Endpoints of the RRset, as text; empty = the RRset did not exist, or does not any more. */
  readonly before?: readonly string[]
  readonly after?: readonly string[]
  /**
   * The change in words, where it is not a single RRset; of a quorum of sites, its decisions; what
   * the endpoints do not show, such as a new TTL.
   */
  readonly text?: string
}

/** A change with its number and time. */
interface AnswerEvent extends AnswerChange {
  /** Increases with each event, also over restarts. */
  readonly id: number
  /** RFC 3339. */
  readonly time: string
}

const EVENTS_MAX = 10_000
const OCTETS_MAX = 8 * 1024 * 1024
/** Ids of one millisecond. */
const IDS_PER_MS = 1000

/**
 * The changes of answers of this process, as many as fit. One object per process: publishers find it in the resource
 * registry while a directive `admin` is configured.
 */
export class EventLog {
  readonly #clock: Clock
  readonly #events: { readonly event: AnswerEvent; readonly octets: number }[] = []
  readonly #listeners = new Set<(line: string) => void>()
  #octets = 0
  #lastId: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#lastId = clock.now() * IDS_PER_MS
  }

  /** Id of the last event; of an empty log, an id before the next event. */
  get lastId(): number {
    return this.#lastId
  }

  add(change: AnswerChange): void {
    const nowMs = this.#clock.now()
    // Ids must not repeat ids of an earlier process.
    this.#lastId = Math.max(this.#lastId + 1, nowMs * IDS_PER_MS)
    const event = { id: this.#lastId, time: new Date(nowMs).toISOString(), ...change }
    const line = printJsonText(event)
    const octets = Buffer.byteLength(line)
    this.#events.push({ event, octets })
    this.#octets += octets
    this.#cut()
    for (const listener of this.#listeners) listener(line)
  }

  /** Returns up to `limit` events with a greater id, the oldest first. */
  after(id: number, limit: number): readonly AnswerEvent[] {
    let first = this.#events.length
    while (first > 0 && this.#events[first - 1]!.event.id > id) first--
    return this.#events.slice(first, first + limit).map(({ event }) => event)
  }

  /** Calls `listener` with each new event as one line of JSON; returns the function that ends that. */
  subscribe(listener: (line: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Removes the oldest events above a bound, several at a time, because an array moves its rest. */
  #cut(): void {
    if (this.#events.length <= EVENTS_MAX && this.#octets <= OCTETS_MAX) return
    let count = 0
    while (
      count < this.#events.length - 1 &&
      (this.#events.length - count > EVENTS_MAX * 0.9 || this.#octets > OCTETS_MAX * 0.9)
    ) {
      this.#octets -= this.#events[count]!.octets
      count++
    }
    this.#events.splice(0, count)
  }
}
