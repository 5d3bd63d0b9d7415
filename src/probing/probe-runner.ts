import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Timers } from '../base/timers.ts'
import { Agenda } from './agenda.ts'
import type { Probe, ProbeOutcome, Prober } from './probe.ts'
import { judge, type ProbeState, unknownState } from './probe-state.ts'

/** Looks that are under way at a time. */
const CONCURRENT_MAX = 256
/** The first look at an address comes this long after it was named… */
const START_MIN_MS = 500
/** …and up to this much later, which is drawn; as upstream. */
const START_SPREAD_MS = 1000
/** With many to begin with, the spread grows by this much for each: 200 a second. */
const START_SPREAD_EACH_MS = 5
/** Intervals vary by up to that part of them, both ways. */
export const JITTER = 0.1

export interface ProbeRunnerOptions {
  readonly probe: Prober
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Told of every look that said something, after it was judged. */
  readonly onReconcile: (look: Look) => void
}

/** One look and what came of it. */
export interface Look {
  readonly probe: Probe
  readonly before: ProbeState
  readonly after: ProbeState
  readonly outcome: ProbeOutcome
  readonly seconds: number
}

interface Task {
  probe: Probe
  state: ProbeState
  /** Ends the look under way; undefined = there is none. */
  abort: AbortController | undefined
  /** Nobody has looked yet. */
  isNew: boolean
}

/** Looks at addresses, each at its interval, spread over time, and keeps what is known of them. */
export class ProbeRunner {
  readonly #options: ProbeRunnerOptions
  readonly #tasks = new Map<string, Task>()
  readonly #agenda = new Agenda()
  /** Also of probes that were removed meanwhile. */
  readonly #underWay = new Set<string>()
  #newCount = 0
  #cancelTimer = (): void => {}
  #timerMs = Number.POSITIVE_INFINITY
  #isClosed = false

  constructor(options: ProbeRunnerOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#tasks.size
  }

  /** Looks under way just now. */
  get underWay(): number {
    return this.#underWay.size
  }

  /** How long the longest overdue look has been due, in milliseconds; 0 = none is. */
  get overdueMs(): number {
    return Math.max(0, this.#options.clock.monotonic() - this.#agenda.nextDueMs())
  }

  *states(): Iterable<{ readonly probe: Probe; readonly state: ProbeState }> {
    for (const { probe, state } of this.#tasks.values()) yield { probe, state }
  }

  stateOf(id: string): ProbeState | undefined {
    return this.#tasks.get(id)?.state
  }

  probeOf(id: string): Probe | undefined {
    return this.#tasks.get(id)?.probe
  }

  /**
   * Begins to look at an address, or goes on with another check: then what is known stays until the
   * new one says otherwise, and it is looked at soon. `known`: what an earlier process knew.
   */
  put(probe: Probe, known?: ProbeState): void {
    const { clock } = this.#options
    const task = this.#tasks.get(probe.id)
    if (task === undefined) {
      const state = known ?? unknownState(clock.now())
      this.#tasks.set(probe.id, { probe, state, abort: undefined, isNew: true })
      this.#newCount++
    } else {
      if (isSameProbe(task.probe, probe)) return
      task.probe = probe
      // What is under way is about the check before; when it ends the new one is put on the agenda.
      if (task.abort !== undefined) {
        task.abort.abort()
        return
      }
      task.state = { ...task.state, failures: 0, successes: 0 }
    }
    // A look at one of the same name that was removed is still under way: then it goes on from there.
    if (!this.#underWay.has(probe.id)) this.#beginSoon(probe)
  }

  remove(id: string): void {
    const task = this.#tasks.get(id)
    if (task === undefined) return
    if (task.isNew) this.#newCount--
    this.#tasks.delete(id)
    task.abort?.abort()
    this.#agenda.remove(id)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelTimer()
    for (const id of [...this.#tasks.keys()]) this.remove(id)
  }

  #beginSoon({ id, address, check }: Probe): void {
    const { clock, random } = this.#options
    const spreadMs = START_SPREAD_MS + START_SPREAD_EACH_MS * this.#newCount
    const delayMs = START_MIN_MS + random.below(Math.min(spreadMs, check.intervalMs))
    this.#agenda.put(id, address, clock.monotonic() + delayMs)
    this.#arm()
  }

  #pump(): void {
    while (this.#underWay.size < CONCURRENT_MAX) {
      const id = this.#agenda.take(this.#options.clock.monotonic())
      if (id === undefined) break
      void this.#look(id, this.#tasks.get(id)!)
    }
    this.#arm()
  }

  #arm(): void {
    const dueMs = this.#agenda.nextDueMs()
    if (this.#isClosed || dueMs === this.#timerMs) return
    this.#cancelTimer()
    this.#timerMs = dueMs
    if (dueMs === Number.POSITIVE_INFINITY || this.#underWay.size >= CONCURRENT_MAX) {
      // Whatever ends next calls again.
      this.#timerMs = Number.POSITIVE_INFINITY
      return
    }
    const delayMs = Math.max(0, dueMs - this.#options.clock.monotonic())
    this.#cancelTimer = this.#options.timers.after(Math.ceil(delayMs), () => {
      this.#timerMs = Number.POSITIVE_INFINITY
      this.#pump()
    })
  }

  async #look(id: string, task: Task): Promise<void> {
    const { clock, probe: look } = this.#options
    const { probe } = task
    const startMs = clock.monotonic()
    const abort = new AbortController()
    task.abort = abort
    if (task.isNew) this.#newCount--
    task.isNew = false
    this.#underWay.add(id)
    const outcome = await look(probe, abort.signal)
    this.#underWay.delete(id)
    this.#agenda.finish(id)
    task.abort = undefined
    const current = this.#tasks.get(id)
    if (this.#isClosed) return
    if (current === task && task.probe === probe) this.#judge(task, outcome, startMs)
    else if (current !== undefined) this.#restart(current)
    this.#pump()
  }

  #judge(task: Task, outcome: ProbeOutcome, startMs: number): void {
    const { clock, random, onReconcile: onLook } = this.#options
    const { probe, state: before } = task
    const endMs = clock.monotonic()
    task.state = judge(before, outcome, probe.check, clock.now())
    const jitterMs = probe.check.intervalMs * JITTER * (random.below(2001) / 1000 - 1)
    // From start to start, so that slow answers don't make it rarer.
    const dueMs = Math.max(endMs, startMs + probe.check.intervalMs + jitterMs)
    this.#agenda.put(probe.id, probe.address, dueMs)
    onLook({ probe, before, after: task.state, outcome, seconds: (endMs - startMs) / 1000 })
  }

  /** Goes on with a probe that was put, or put anew, while an older one of its name was under way. */
  #restart(task: Task): void {
    task.state = { ...task.state, failures: 0, successes: 0 }
    this.#beginSoon(task.probe)
  }
}

function isSameProbe(a: Probe, b: Probe): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
