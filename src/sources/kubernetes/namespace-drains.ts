import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemText } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import type { EndpointDrain } from '../../health/drain/drain.ts'
import { CLUSTER_ONLY, ScheduledDrains } from '../../health/drain/drain-schedule.ts'
import { scanDrainSelector } from '../../health/drain/selector.ts'
import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import type { ObjectTarget } from '../../kube/object-sink.ts'
import { printPath, RefusedError } from '../../records/validate/fields.ts'
import { scanNamespaceDrain } from '../../records/validate/settings.ts'
import { CLUSTER_PLACE } from './place.ts'

interface NamespaceDrainsOptions {
  /** Empty = all namespaces. */
  readonly namespaces: readonly string[]
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * The drains that annotations of Namespaces ask for: each is of all endpoints of the records in the
 * namespace. The last valid annotations of a Namespace count.
 */
export class NamespaceDrains extends ScheduledDrains implements ObjectTarget {
  readonly #options: NamespaceDrainsOptions
  /** By namespace; undefined = its Namespace asks for none. */
  #drains = new Map<string, EndpointDrain>()
  /** Why the annotations of a Namespace are invalid, by namespace. */
  readonly #faults = new Map<string, string>()

  constructor(options: NamespaceDrainsOptions) {
    super({ ...options, note: CLUSTER_ONLY })
    this.#options = options
    this.checkAlways(options.timers, 'Following the annotations of Namespaces')
  }

  get problems(): readonly ProblemText[] {
    return [...this.#faults].map(([name, fault]) => {
      const object = `Namespace ${name}`
      return { place: CLUSTER_PLACE, object, reason: `${object}: ${fault}` }
    })
  }

  keys(): Iterable<string> {
    return [...this.#drains.keys(), ...this.#faults.keys()]
  }

  put({ metadata }: ApiObject): void {
    const name = textOf(metadata, 'name')
    const { namespaces, log } = this.#options
    if (!isObject(metadata) || (namespaces.length > 0 && !namespaces.includes(name))) return
    try {
      const drain = scanNamespaceDrain(metadata)
      this.remove(name)
      if (drain !== undefined) this.#drains.set(name, drainOf(name, drain))
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      const { path, message } = error.problem
      const effect = this.#drains.has(name) ? 'its last valid drain is kept' : 'it is not drained'
      const fault = `${printPath(path)}: ${message}; ${effect}`
      if (this.#faults.get(name) !== fault)
        log.warning(`Namespace ${name}: ${fault}`, 'namespace-drain-problem')
      this.#faults.set(name, fault)
    }
  }

  remove(name: string): void {
    this.#drains.delete(name)
    this.#faults.delete(name)
  }

  settle(): void {
    this.set([...this.#drains.values()])
    this.check()
  }
}

function drainOf(
  name: string,
  { reason, untilMs }: { readonly reason: string; readonly untilMs?: number },
): EndpointDrain {
  const selector = scanDrainSelector([`record:${name}/*`])
  assert(typeof selector !== 'string', 'a namespace is a valid term')
  const actor = `annotation of Namespace ${name}`
  return { selector, reason, actor, createdMs: undefined, untilMs }
}
