import type { Clock } from '../../../base/clock.ts'
import { FaultLog } from '../../../base/telemetry/fault-log.ts'
import { type Guarded, guarding } from '../../../base/telemetry/guard.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../../base/telemetry/metrics.ts'
import type { ApiObject } from '../../../kube/api.ts'
import type { PolicyOptions } from '../../policies/policy.ts'
import { PolicyCompiler } from '../../policies/policy-compiler.ts'
import { type FieldPath, type PolicyProblem, printFieldPath } from '../../policies/policy-field.ts'
import type { PolicyKind } from '../../policies/policy-kinds.ts'
import type { Client } from '../client.ts'
import { type ClientsListener, type ListedProblem, printProblem } from './policy-source.ts'

export interface PolicyFeedOptions extends PolicyOptions {
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsRegistry
}

/** Returns the place of a field of an object, `FILE:LINE`; '' = it is in no file. */
type PlaceOf = (object: string, path: FieldPath) => string

/**
 * The part that all sources share: compiles the changes of one turn together, passes the result to
 * listeners, and logs and counts the problems.
 */
export class PolicyFeed {
  /** Of all objects. */
  problems: readonly ListedProblem[] = []
  readonly #compiler: PolicyCompiler
  readonly #placeOf: PlaceOf
  readonly #faults: FaultLog
  readonly #guarded: Guarded
  readonly #stopMetrics: () => void
  readonly #listeners = new Set<ClientsListener>()
  #clients: readonly Client[] = []
  /** Problems of the source itself, such as objects of unknown kinds. */
  #others: readonly ListedProblem[] = []
  /** What `problems` was made of. */
  #made: readonly unknown[] = []
  #isReady = false
  /** True once listeners got clients. */
  #isPublished = false
  #isScheduled = false
  #isClosed = false

  constructor({ log, clock, metrics, ...options }: PolicyFeedOptions, placeOf: PlaceOf) {
    this.#compiler = new PolicyCompiler(options)
    this.#placeOf = placeOf
    this.#faults = new FaultLog(log, clock)
    this.#guarded = guarding(log, 'Compiling egress policies')
    const gauge = metrics.gauge(
      'sextant_egress_policy_problems',
      'Parts of egress policies that have no effect, or another effect than they say.',
    )
    let exported = 0
    // Several sources share the metrics.
    const add = (count: number): void => {
      gauge.inc(count - exported)
      exported = count
    }
    const stop = metrics.onCollect(() => add(this.problems.length))
    this.#stopMetrics = () => {
      stop()
      add(0)
    }
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** From now on listeners get changes. */
  setReady(): void {
    if (this.#isReady) return
    this.#isReady = true
    this.#schedule()
  }

  put(kind: PolicyKind, object: ApiObject): void {
    this.#compiler.put(kind, object)
    this.#schedule()
  }

  remove(kind: PolicyKind, key: string): void {
    this.#compiler.remove(kind, key)
    this.#schedule()
  }

  keys(kind: PolicyKind): readonly string[] {
    return this.#compiler.keys(kind)
  }

  setOtherProblems(problems: readonly ListedProblem[]): void {
    this.#others = problems
    this.#schedule()
  }

  onChange(listener: ClientsListener): () => void {
    this.#listeners.add(listener)
    // A change that is not compiled yet follows.
    if (this.#isPublished) listener(this.#clients, this.problems)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isClosed = true
    this.#stopMetrics()
    this.#listeners.clear()
  }

  /** Compiles all objects now. Returns all clients. */
  compileNow(): readonly Client[] {
    this.#compile()
    return this.#compiler.compile().clients
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (!this.#isClosed) void this.#guarded(() => this.#compile())
    })
  }

  #compile(): void {
    const compiled = this.#compiler.compile()
    const made = [compiled.problems, this.#others]
    const areNew = made.some((one, i) => one !== this.#made[i])
    this.#made = made
    if (areNew) this.#setProblems(this.#list(compiled.problems))
    if (!this.#isReady) return
    if (!areNew && this.#isPublished && compiled.clients === this.#clients) return
    this.#clients = compiled.clients
    this.#isPublished = true
    for (const listener of this.#listeners) listener(this.#clients, this.problems)
  }

  #list(problems: readonly PolicyProblem[]): readonly ListedProblem[] {
    const listed = problems.map(({ path, ...problem }) => {
      const place = this.#placeOf(problem.object, path)
      return { ...problem, field: printFieldPath(path), place }
    })
    return [...this.#others, ...listed]
  }

  #setProblems(problems: readonly ListedProblem[]): void {
    const texts = new Set(problems.map(printProblem))
    for (const problem of this.problems) {
      const text = printProblem(problem)
      if (!texts.has(text)) this.#faults.clear(text)
    }
    for (const text of texts) this.#faults.report(text, text)
    this.problems = problems
  }
}
