import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Timers } from '../../base/timers.ts'
import { Agenda } from './agenda.ts'
import { attemptMsMax } from './attempt-time.ts'
import type { Probe, ProbeOutcome, Prober } from './probe.ts'
import { nextState, type ProbeState, unknownState } from './probe-state.ts'

/**
 * Maximum number of probe attempts at a time. Enough for 38 000 hosts of dead addresses with the default interval, and
 * for 1 280 with one of 10 s. Each uses a file descriptor.
 */
const CONCURRENT_MAX = 1024
/** Minimum delay of the first attempt on a new address. */
const START_MIN_MS = 500
/** The first attempt is delayed further by a random time below this, as upstream. */
const START_SPREAD_MS = 1000
/** The spread grows by this much per new probe: 200 first attempts a second. */
const START_SPREAD_EACH_MS = 5
/**
 * Each interval is at random shorter by up to this fraction, so that probes do not synchronise. Never longer: after a
 * fault, an address is down within as many intervals as its health check says.
 */
const JITTER = 0.2

interface ProbeRunnerOptions {
  readonly probe: Prober
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Called with each attempt that has a result, after the state was updated. */
  readonly onResult: (result: ProbeResult) => void
}

/** One probe attempt and its result. */
export interface ProbeResult {
  readonly probe: Probe
  readonly before: ProbeState
  readonly after: ProbeState
  readonly outcome: ProbeOutcome
  readonly seconds: number
}

interface Task {
  probe: Probe
  state: ProbeState
  /** Ends the current attempt; undefined = no attempt is in progress. */
  abort: AbortController | undefined
  /** True until the first attempt begins. */
  isNew: boolean
}

/** Probes addresses, each at its interval, spread over time, and keeps their states. */
export class ProbeRunner {
  readonly #options: ProbeRunnerOptions
  readonly #tasks = new Map<string, Task>()
  readonly #agenda = new Agenda()
  /** Ids with an attempt in progress; includes probes that were removed meanwhile. */
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

  /** Number of attempts in progress. */
  get underWay(): number {
    return this.#underWay.size
  }

  /** Milliseconds for which the longest overdue attempt has been due; 0 = no attempt is due. */
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
   * Adds a probe, or changes its check. A changed check keeps the state until a new result arrives,
   * and the address is probed soon. `known`: the state from an earlier process.
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
      // The attempt in progress uses the old check. The agenda gets the new check when that attempt
      // ends.
      if (task.abort !== undefined) {
        task.abort.abort()
        return
      }
      task.state = { ...task.state, failures: 0, successes: 0 }
    }
    // If an attempt of a removed probe with the same id is in progress, its end starts this probe.
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

  #putOnAgenda({ id, address, testAddress = address, check }: Probe, dueMs: number): void {
    this.#agenda.put(id, testAddress, dueMs, attemptMsMax(check) / check.intervalMs)
  }

  #beginSoon(probe: Probe): void {
    const { clock, random } = this.#options
    const spreadMs = START_SPREAD_MS + START_SPREAD_EACH_MS * this.#newCount
    const delayMs = START_MIN_MS + random.below(Math.min(spreadMs, probe.check.intervalMs))
    this.#putOnAgenda(probe, clock.monotonic() + delayMs)
    this.#arm()
  }

  #pump(): void {
    while (this.#underWay.size < CONCURRENT_MAX) {
      const id = this.#agenda.take(this.#options.clock.monotonic())
      if (id === undefined) break
      void this.#attempt(id, this.#tasks.get(id)!)
    }
    this.#arm()
  }

  #arm(): void {
    const dueMs = this.#agenda.nextDueMs()
    if (this.#isClosed || dueMs === this.#timerMs) return
    this.#cancelTimer()
    this.#timerMs = dueMs
    if (dueMs === Number.POSITIVE_INFINITY || this.#underWay.size >= CONCURRENT_MAX) {
      // The next attempt that ends calls this again.
      this.#timerMs = Number.POSITIVE_INFINITY
      return
    }
    const delayMs = Math.max(0, dueMs - this.#options.clock.monotonic())
    this.#cancelTimer = this.#options.timers.after(Math.ceil(delayMs), () => {
      this.#timerMs = Number.POSITIVE_INFINITY
      this.#pump()
    })
  }

  async #attempt(id: string, task: Task): Promise<void> {
    const { clock, probe: prober } = this.#options
    const { probe } = task
    const startMs = clock.monotonic()
    const abort = new AbortController()
    task.abort = abort
    if (task.isNew) this.#newCount--
    task.isNew = false
    this.#underWay.add(id)
    const outcome = await prober(probe, abort.signal)
    this.#underWay.delete(id)
    this.#agenda.finish(id, outcome.kind === 'healthy')
    task.abort = undefined
    const current = this.#tasks.get(id)
    if (this.#isClosed) return
    if (current === task && task.probe === probe) this.#finish(task, outcome, startMs)
    else if (current !== undefined) this.#restart(current)
    this.#pump()
  }

  #finish(task: Task, outcome: ProbeOutcome, startMs: number): void {
    const { clock, random, onResult } = this.#options
    const { probe, state: before } = task
    const endMs = clock.monotonic()
    task.state = nextState(before, outcome, probe.check, clock.now())
    const jitterMs = probe.check.intervalMs * JITTER * (random.below(1001) / 1000)
    // The interval counts from start to start, so that slow answers do not reduce the rate.
    const dueMs = Math.max(endMs, startMs + probe.check.intervalMs - jitterMs)
    this.#putOnAgenda(probe, dueMs)
    onResult({ probe, before, after: task.state, outcome, seconds: (endMs - startMs) / 1000 })
  }

  /**
   * Continues a probe that was added or replaced while an older attempt of the same id was in
   * progress.
   */
  #restart(task: Task): void {
    task.state = { ...task.state, failures: 0, successes: 0 }
    this.#beginSoon(task.probe)
  }
}

function isSameProbe(a: Probe, b: Probe): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
