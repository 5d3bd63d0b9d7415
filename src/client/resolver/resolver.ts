import { setMaxListeners } from 'node:events'
import type { Clock } from '../../base/clock.ts'
import { DueHeap } from '../../base/due-heap.ts'
import type { Random } from '../../base/random.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { lowerName, nameKey } from '../../dns/name/name.ts'
import type { AddressFamily } from '../../dns/text/address.ts'
import { type AskAddresses, observeAnswered } from './ask-addresses.ts'
import type { Observation } from './observation.ts'
import { ServerChoice } from './server-choice.ts'
import { answerWaitMs, failureWaitMs, type ResolverRules, spread } from './waits.ts'

const STAR = 0x2a
/** Parts of the workers that only names with an answer use, and that names without their first reply leave free. */
const RESERVED_PART = 4
const FAILING_PART = 2

export interface ResolverParts {
  readonly rules: ResolverRules
  /** The families to ask for, in this order. */
  readonly familiesOf: (name: Uint8Array) => readonly AddressFamily[]
  readonly servers: () => readonly HostPort[]
  readonly ask: AskAddresses
  /** Called for each reply as it arrives, and for each query without a reply. */
  readonly onObservation?: (observation: Observation) => void
  /**
   * Called after all servers were asked for a name. `dueMs`: when it is asked again. `found`: what
   * their replies say.
   */
  readonly onResolved?: (name: Uint8Array, dueMs: number, found: readonly Observation[]) => void
  /** How many servers are asked for a name; default: `rules.serversMax`. */
  readonly serversMaxOf?: (name: Uint8Array) => number
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

interface Task {
  readonly key: string
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** Consecutive rounds in which a family failed, or that found no address. */
  failures: number
  hasAnswered: boolean
  isActive: boolean
  /** The next round is to start at once, whatever its due time. */
  isHastened: boolean
}

/**
 * Resolves names again when their TTL ends, so that their addresses are current without a client's query.
 *
 *     want ─▶ heap by due time ─▶ worker: A, AAAA at each server ─▶ observations
 *               ▲                                                     │
 *               └───────────── TTL, or backoff of this name ──────────┘
 *
 * The number of workers and of starts per second is bounded. New names come first. Names that fail never use all
 * workers that new names may use, and both together never use all, so they do not hold up the others.
 */
export class Resolver {
  readonly #parts: ResolverParts
  readonly #choice: ServerChoice
  readonly #guarded: Guarded
  readonly #tasks = new Map<string, Task>()
  /** Names whose last round had an answer and no failure. */
  readonly #sound = new DueHeap<Task>()
  /** Names that were never resolved. They are due, the newest one first. */
  readonly #fresh = new DueHeap<Task>()
  /** When they were added, the oldest one first. */
  readonly #freshSinceMs = new Map<Task, number>()
  readonly #failing = new DueHeap<Task>()
  readonly #abort = new AbortController()
  #active = 0
  #activeFresh = 0
  #activeFailing = 0
  #freshCount = 0
  #credit = 0
  #creditMs: number
  #cancelTimer: (() => void) | undefined
  #timerMs = Number.POSITIVE_INFINITY

  constructor(parts: ResolverParts) {
    this.#parts = parts
    this.#choice = new ServerChoice(parts.random)
    this.#guarded = guarding(parts.log, 'Resolving names again')
    // Each open query listens to it, and Node.js warns of a leak above ten listeners.
    setMaxListeners(0, this.#abort.signal)
    this.#credit = parts.rules.workers
    this.#creditMs = parts.clock.monotonic()
  }

  /** Number of names. */
  get size(): number {
    return this.#tasks.size
  }

  /** Number of names that are being resolved. */
  get active(): number {
    return this.#active
  }

  /** Time since the name that waits longest was due; 0 = none is overdue. */
  get lagMs(): number {
    const [freshMs = Number.POSITIVE_INFINITY] = this.#freshSinceMs.values()
    const firstMs = Math.min(this.#sound.firstMs, this.#failing.firstMs, freshMs)
    return Math.max(0, this.#parts.clock.monotonic() - firstMs)
  }

  /** Resolves a name at once and from then on. A name that is known already is not asked sooner. */
  want(name: Uint8Array): void {
    if (this.#tasks.has(nameKey(name))) return
    this.#put(this.#taskOf(name), this.#parts.clock.monotonic())
  }

  /**
   * Sets when a name is due: after a start from its stored state, or because another query has
   * refreshed it. Monotonic milliseconds; the past = at once.
   */
  schedule(name: Uint8Array, dueMs: number): void {
    const task = this.#taskOf(name)
    task.hasAnswered = true
    if (!task.isActive && !task.isHastened) this.#put(task, dueMs)
  }

  /**
   * Resolves a name at once if it is known: a new server may have other answers. A name that is being
   * resolved is resolved again after that, because its servers may have been chosen before.
   */
  hasten(name: Uint8Array): void {
    const task = this.#tasks.get(nameKey(name))
    if (task === undefined || task.isHastened) return
    task.isHastened = true
    if (!task.isActive) this.#put(task, this.#parts.clock.monotonic())
  }

  /** Stops resolving a name. */
  forget(name: Uint8Array): void {
    const task = this.#tasks.get(nameKey(name))
    if (task === undefined) return
    this.#tasks.delete(task.key)
    this.#drop(task)
  }

  close(): void {
    this.#abort.abort()
    this.#cancelTimer?.()
    this.#tasks.clear()
  }

  #taskOf(name: Uint8Array): Task {
    const key = nameKey(name)
    const known = this.#tasks.get(key)
    if (known !== undefined) return known
    const task = {
      key,
      name: lowerName(name),
      failures: 0,
      hasAnswered: false,
      isActive: false,
      isHastened: false,
    }
    this.#tasks.set(key, task)
    return task
  }

  #put(task: Task, dueMs: number): void {
    this.#drop(task)
    if (isFresh(task)) {
      this.#fresh.put(task, -this.#freshCount++)
      this.#freshSinceMs.set(task, dueMs)
    } else if (isSound(task)) this.#sound.put(task, dueMs)
    else this.#failing.put(task, dueMs)
    this.#arm()
  }

  #drop(task: Task): void {
    this.#sound.remove(task)
    this.#failing.remove(task)
    this.#fresh.remove(task)
    this.#freshSinceMs.delete(task)
  }

  #run(): void {
    const { clock, rules } = this.#parts
    const nowMs = clock.monotonic()
    const earned = ((nowMs - this.#creditMs) * rules.perSecond) / 1000
    this.#credit = Math.min(rules.workers, this.#credit + earned)
    this.#creditMs = nowMs
    while (this.#active < rules.workers && this.#credit >= 1) {
      const task = this.#take(nowMs)
      if (task === undefined) break
      this.#credit--
      void this.#guarded(() => this.#resolve(task))
    }
    this.#arm()
  }

  /** The newest name, or else the longest overdue one that may have a worker. */
  #take(nowMs: number): Task | undefined {
    const newest = this.#mayBegin ? this.#fresh.take(nowMs) : undefined
    if (newest !== undefined) {
      this.#freshSinceMs.delete(newest)
      return newest
    }
    const mayFail = this.#mayFail
    if (mayFail && this.#failing.firstMs < this.#sound.firstMs) return this.#failing.take(nowMs)
    return this.#sound.take(nowMs) ?? (mayFail ? this.#failing.take(nowMs) : undefined)
  }

  /** True if a name without an answer may have a worker. */
  get #mayBegin(): boolean {
    const { workers } = this.#parts.rules
    const reserved = workers === 1 ? 0 : Math.ceil(workers / RESERVED_PART)
    return this.#activeFresh + this.#activeFailing < workers - reserved
  }

  get #mayFail(): boolean {
    const most = Math.max(1, Math.floor(this.#parts.rules.workers / FAILING_PART))
    return this.#mayBegin && this.#activeFailing < most
  }

  /** Sets the timer for the next name that may start. */
  #arm(): void {
    if (this.#abort.signal.aborted) return
    const { clock, timers, rules } = this.#parts
    const nowMs = clock.monotonic()
    // When a worker ends, it runs this again.
    if (this.#active >= rules.workers) return
    const failingMs = this.#mayFail ? this.#failing.firstMs : Number.POSITIVE_INFINITY
    const freshMs = this.#mayBegin ? this.#fresh.firstMs : Number.POSITIVE_INFINITY
    const dueMs = Math.min(this.#sound.firstMs, failingMs, freshMs)
    if (dueMs === Number.POSITIVE_INFINITY) return
    const missing = Math.max(0, 1 - this.#credit)
    const startMs = Math.max(dueMs, nowMs, this.#creditMs + (missing * 1000) / rules.perSecond)
    if (this.#cancelTimer !== undefined && this.#timerMs <= startMs) return
    this.#cancelTimer?.()
    this.#timerMs = startMs
    this.#cancelTimer = timers.after(Math.ceil(startMs - nowMs), () => {
      this.#cancelTimer = undefined
      this.#run()
    })
  }

  async #resolve(task: Task): Promise<void> {
    const wasFresh = isFresh(task)
    const isFailing = !wasFresh && !isSound(task)
    const isHurried = wasFresh && this.#parts.rules.hurriesFirst
    task.isActive = true
    task.isHastened = false
    this.#active++
    if (wasFresh) this.#activeFresh++
    if (isFailing) this.#activeFailing++
    const found: Observation[] = []
    try {
      for (const family of this.#parts.familiesOf(task.name)) {
        found.push(...(await this.#askServers(task, family, isHurried)))
        if (isHurried && isSilent(found)) break
      }
    } finally {
      task.isActive = false
      this.#active--
      if (wasFresh) this.#activeFresh--
      if (isFailing) this.#activeFailing--
      if (this.#tasks.get(task.key) === task) {
        if (isHurried && isSilent(found)) this.#repeat(task)
        else this.#plan(task, found)
      }
      if (!this.#abort.signal.aborted) this.#run()
    }
  }

  /** Asks the servers for one family at the same time. */
  async #askServers(
    task: Task,
    family: AddressFamily,
    isHurried: boolean,
  ): Promise<readonly Observation[]> {
    const { servers, rules, clock, ask, onObservation, serversMaxOf } = this.#parts
    const { signal } = this.#abort
    const most = serversMaxOf?.(task.name) ?? rules.serversMax
    const chosen = this.#choice.choose(servers(), most, clock.monotonic())
    const found = chosen.map(async (server) => {
      const query = { server, name: task.name, family, isHurried, signal }
      const answered = await ask(query)
      const nowMs = clock.monotonic()
      this.#choice.note(server, answered.kind === 'reply', nowMs)
      const observation = observeAnswered(query, answered, nowMs)
      if (this.#tasks.get(task.key) === task) onObservation?.(observation)
      return observation
    })
    return Promise.all(found)
  }

  /** Asks again for a name whose first queries had no reply, this time with patience. */
  #repeat(task: Task): void {
    task.failures = 1
    this.#put(task, this.#parts.clock.monotonic())
  }

  /** Sets when a name is due again. */
  #plan(task: Task, found: readonly Observation[]): void {
    const { rules, clock, random, familiesOf, onResolved } = this.#parts
    let ttlSeconds = Number.POSITIVE_INFINITY
    for (const observation of found) {
      if (observation.kind !== 'answer') continue
      for (const fact of observation.facts) ttlSeconds = Math.min(ttlSeconds, fact.ttlSeconds)
    }
    const isAnswered = ttlSeconds < Number.POSITIVE_INFINITY
    const isComplete = familiesOf(task.name).every((family) => {
      return found.some(
        (observation) => observation.family === family && observation.kind !== 'failed',
      )
    })
    task.hasAnswered ||= isAnswered
    task.failures = isAnswered && isComplete ? 0 : task.failures + 1
    const waits: number[] = []
    if (isAnswered) waits.push(answerWaitMs(ttlSeconds, rules, random))
    if (task.failures > 0) {
      const isIdle = task.name[0] === 1 && task.name[1] === STAR && !task.hasAnswered
      const waitMs = isIdle ? rules.maxMs : failureWaitMs(task.failures)
      waits.push(waitMs + spread(waitMs / 10, rules, random))
    }
    const dueMs = clock.monotonic() + (task.isHastened ? 0 : Math.min(...waits))
    this.#put(task, dueMs)
    onResolved?.(task.name, dueMs, found)
  }
}

/** True for a name that was never resolved. */
function isFresh({ hasAnswered, failures }: Task): boolean {
  return !hasAnswered && failures === 0
}

/** True if no server replied. */
function isSilent(found: readonly Observation[]): boolean {
  return found.every((one) => one.kind === 'failed' && !one.isReply)
}

function isSound({ hasAnswered, failures }: Task): boolean {
  return hasAnswered && failures === 0
}
