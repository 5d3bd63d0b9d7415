import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { type ProblemText, problemOf } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { CLUSTER_ONLY, ScheduledDrains } from '../../health/drain/drain-schedule.ts'
import { scanDrains } from '../../health/drain/drain-text.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import type { ObjectTarget } from '../../kube/object-sink.ts'

/** Key of the ConfigMap whose value has the form of a drain file. */
const DRAINS_KEY = 'drains'

/** A ConfigMap with drains. */
export interface ConfigMapPlace {
  readonly namespace: string
  readonly name: string
}

interface ClusterDrainsOptions {
  readonly place: ConfigMapPlace
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * The drains in a ConfigMap, which all servers of a cluster follow. A missing ConfigMap has no drains. If its text is
 * invalid, the last valid one is kept; at the start, the valid lines are used.
 */
export class ClusterDrains extends ScheduledDrains implements ObjectTarget {
  readonly #options: ClusterDrainsOptions
  readonly #label: string
  /** Undefined = nothing was read yet. */
  #text: string | undefined
  #problems: readonly ProblemText[] = []

  constructor(options: ClusterDrainsOptions) {
    super({ ...options, note: CLUSTER_ONLY })
    const { place, timers } = options
    this.#options = options
    this.#label = `ConfigMap ${place.namespace}/${place.name}`
    this.checkAlways(timers, `Following the drains of ${this.#label}`)
  }

  get problems(): readonly ProblemText[] {
    return this.#problems
  }

  put({ data }: ApiObject): void {
    this.#read(textOf(data, DRAINS_KEY))
  }

  remove(): void {
    this.#read('')
  }

  /** Always the ConfigMap: so a list without it, also the first one, removes its drains. */
  keys(): readonly string[] {
    const { namespace, name } = this.#options.place
    return [`${namespace}/${name}`]
  }

  #read(text: string): void {
    if (text === this.#text) return
    const { log } = this.#options
    const isFirst = this.#text === undefined
    this.#text = text
    const { drains, faults } = scanDrains(text, `${this.#label}: ${DRAINS_KEY}`)
    const [first, ...others] = faults
    const more = others.length === 0 ? '' : `, and ${others.length} more faults`
    const wasFaulty = this.#problems.length > 0
    const effect = isFirst ? 'these lines are not used' : 'the last valid state is kept'
    this.#problems = faults.map((fault) => {
      const reason = `${this.#label}: ${fault.message}; ${effect}`
      return { ...problemOf(fault, this.#label), reason }
    })
    if (first !== undefined) {
      log.error(`${first.print()}${more}; ${effect}`, 'cluster-drains-invalid')
      if (!isFirst) return
    } else if (wasFaulty)
      log.info(`the drains of ${this.#label} are valid again`, 'cluster-drains-valid')
    this.set(drains.map(({ drain }) => drain))
    this.check()
  }
}
