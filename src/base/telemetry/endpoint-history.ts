import type { Clock } from '../clock.ts'
import type { EventActor } from './event-log.ts'

/** States of an endpoint, the worst first. */
export const TIMELINE_STATES = [
  'down',
  'drained',
  'partly down',
  'slow start',
  'shifted',
  'up',
  'removed',
] as const
export type TimelineState = (typeof TIMELINE_STATES)[number]

/** What identifies an endpoint for people. */
export interface EndpointFacts {
  readonly zone: string
  readonly name: string
  readonly type: string
  readonly setIdentifier: string
  /** The site that it is from; '' = this one, without a name. */
  readonly site: string
  readonly targets: readonly string[]
  /** `namespace/name` of the record. */
  readonly record: string
}

/** An endpoint, and its state now. */
export interface NotedEndpoint {
  /** Distinguishes it from other endpoints of its owner. */
  readonly id: string
  readonly facts: EndpointFacts
  readonly state: TimelineState
  /** Why it has this state; '' = the actor says it all. */
  readonly reason: string
  /** True = it was served before the change. */
  readonly isKnown: boolean
}

/** The begin of a state. */
interface EndpointTransition {
  readonly timeMs: number
  readonly state: TimelineState
  readonly reason: string
  readonly actor: EventActor
}

/** The states of one endpoint. */
export interface EndpointTimeline {
  readonly facts: EndpointFacts
  /** The state before the first transition; '' = it did not exist, or the state is not known. */
  readonly before: TimelineState | ''
  /** The oldest first; at least one. */
  readonly transitions: readonly EndpointTransition[]
}

const TRANSITIONS_MAX = 50_000
const OCTETS_MAX = 16 * 1024 * 1024
/** Transitions of one endpoint that are kept. */
const TIMELINE_MAX = 100
const REASON_MAX = 500
/** Targets of one endpoint that are kept. */
const TARGETS_MAX = 20
/** Part of a limit that is used after the oldest transitions are removed: an array moves its rest. */
const CUT = 0.9
/** Octets of the objects of one timeline and of one transition, without their texts. */
const TIMELINE_OCTETS = 500
const TRANSITION_OCTETS = 150

/** In these states, another reason is a transition of its own. */
const DETAILED: readonly TimelineState[] = ['drained', 'partly down', 'shifted']

class Timeline implements EndpointTimeline {
  readonly owner: string
  readonly id: string
  before: TimelineState | ''
  readonly transitions: Transition[] = []
  readonly octets: number
  facts: EndpointFacts

  constructor(owner: string, { id, facts }: NotedEndpoint, before: TimelineState | '') {
    this.owner = owner
    this.id = id
    this.facts = shorten(facts)
    this.before = before
    const { zone, name, type, setIdentifier, site, targets, record } = this.facts
    const texts = [owner, id, zone, name, type, setIdentifier, site, record, ...targets]
    this.octets = texts.reduce((sum, text) => sum + text.length, TIMELINE_OCTETS)
  }

  get last(): Transition | undefined {
    return this.transitions.at(-1)
  }
}

class Transition implements EndpointTransition {
  readonly timeline: Timeline
  readonly timeMs: number
  readonly state: TimelineState
  readonly reason: string
  readonly actor: EventActor
  /** False = the timeline has dropped it. */
  isKept = true

  constructor(timeline: Timeline, timeMs: number, to: Omit<EndpointTransition, 'timeMs'>) {
    this.timeline = timeline
    this.timeMs = timeMs
    this.state = to.state
    this.reason = to.reason
    this.actor = to.actor
  }

  get octets(): number {
    return TRANSITION_OCTETS + this.reason.length + this.actor.name.length
  }
}

/**
 * The changes of state of the endpoints of this process, as many as fit. An endpoint that was never out of service has
 * no entry. One object per process: publishers find it in the resource registry while a directive `admin` is
 * configured.
 */
export class EndpointHistory {
  readonly #clock: Clock
  /** Since when changes are noted, in milliseconds since the epoch. */
  readonly beginMs: number
  /** By owner, then by id. */
  readonly #byOwner = new Map<string, Map<string, Timeline>>()
  /** All transitions, the oldest first; some are dropped. */
  #order: Transition[] = []
  #octets = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.beginMs = clock.now()
  }

  /** True if an endpoint of the owner has a timeline. */
  has(owner: string): boolean {
    return this.#byOwner.has(owner)
  }

  find(owner: string, id: string): EndpointTimeline | undefined {
    return this.#byOwner.get(owner)?.get(id)
  }

  /** Returns all timelines whose endpoint was removed. */
  *removed(): Generator<EndpointTimeline> {
    for (const timelines of this.#byOwner.values()) {
      for (const timeline of timelines.values()) {
        if (timeline.last?.state === 'removed') yield timeline
      }
    }
  }

  /**
   * Notes the states of all endpoints of an owner. Known endpoints that are not among them are removed. `owner`: equal
   * in both instances of a reload.
   */
  note(owner: string, endpoints: readonly NotedEndpoint[], actor: EventActor): void {
    const ids = new Set<string>()
    for (const endpoint of endpoints) {
      if (ids.has(endpoint.id)) continue
      ids.add(endpoint.id)
      this.#noteOne(owner, endpoint, actor)
    }
    for (const [id, timeline] of this.#byOwner.get(owner) ?? []) {
      if (ids.has(id) || timeline.last?.state === 'removed') continue
      this.#add(timeline, { state: 'removed', reason: '', actor })
    }
    this.#cut()
  }

  #noteOne(owner: string, endpoint: NotedEndpoint, actor: EventActor): void {
    const { id, facts, state, isKnown } = endpoint
    const reason = endpoint.reason.slice(0, REASON_MAX)
    const known = this.#byOwner.get(owner)?.get(id)
    if (known !== undefined) {
      known.facts = shorten(facts)
      const { last } = known
      const isSame = last?.state === state
      if (!isSame || (DETAILED.includes(state) && last.reason !== reason)) {
        this.#add(known, { state, reason, actor })
      }
      return
    }
    if (state === 'up') return
    const timeline = new Timeline(owner, endpoint, isKnown ? 'up' : '')
    const timelines = this.#byOwner.get(owner) ?? new Map<string, Timeline>()
    this.#byOwner.set(owner, timelines)
    timelines.set(id, timeline)
    this.#octets += timeline.octets
    this.#add(timeline, { state, reason, actor })
  }

  #add(timeline: Timeline, to: Omit<EndpointTransition, 'timeMs'>): void {
    const transition = new Transition(timeline, this.#clock.now(), to)
    timeline.transitions.push(transition)
    this.#order.push(transition)
    this.#octets += transition.octets
    if (timeline.transitions.length > TIMELINE_MAX) this.#dropFirst(timeline)
  }

  #dropFirst(timeline: Timeline): void {
    const first = timeline.transitions.shift()!
    first.isKept = false
    timeline.before = first.state
    this.#octets -= first.octets
    if (timeline.transitions.length > 0) return
    this.#octets -= timeline.octets
    const timelines = this.#byOwner.get(timeline.owner)!
    timelines.delete(timeline.id)
    if (timelines.size === 0) this.#byOwner.delete(timeline.owner)
  }

  /** Removes the oldest transitions above a bound, several at a time. */
  #cut(): void {
    if (this.#order.length <= TRANSITIONS_MAX && this.#octets <= OCTETS_MAX) return
    const kept = this.#order.filter(({ isKept }) => isKept)
    let count = 0
    while (
      count < kept.length &&
      (kept.length - count > TRANSITIONS_MAX * CUT || this.#octets > OCTETS_MAX * CUT)
    ) {
      // It is the first of its timeline: both are in the order of time.
      this.#dropFirst(kept[count]!.timeline)
      count++
    }
    this.#order = kept.slice(count)
  }
}

function shorten(facts: EndpointFacts): EndpointFacts {
  const { targets } = facts
  return targets.length <= TARGETS_MAX
    ? facts
    : { ...facts, targets: targets.slice(0, TARGETS_MAX) }
}
