import type { Clock } from '../../base/clock.ts'
import { FaultLog } from '../../base/telemetry/fault-log.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import type { ObjectReference } from '../../sources/objects/object-kind.ts'
import { printObject } from './contend.ts'

/** Notes that are logged, and Events, for one change of an object. */
const NOTES_MAX = 5

/** What is wrong with an object, or with one of its hosts. */
export interface ObjectFault {
  readonly of: ObjectReference
  /** The cause as one CamelCase identifier. */
  readonly reason: string
  /** Not empty. */
  readonly notes: readonly string[]
  /** The notes may change often: only another reason is another fault. */
  readonly isUnsteady?: true
}

interface ObjectReportsEnv {
  readonly events: Pick<EventRecorder, 'record'>
  readonly log: Logger
  readonly clock: Clock
}

/** Reports faults of objects in Events and the log, each once until it changes. */
export class ObjectReports {
  readonly #events: Pick<EventRecorder, 'record'>
  readonly #faults: FaultLog
  /** The last fault of each thing, as text. */
  readonly #reported = new Map<string, string>()

  constructor({ events, log, clock }: ObjectReportsEnv) {
    this.#events = events
    this.#faults = new FaultLog(log, clock)
  }

  /** `thing`: what has at most one fault. Undefined = it has none. */
  set(thing: string, fault: ObjectFault | undefined): void {
    if (fault === undefined) {
      this.#reported.delete(thing)
      this.#faults.clear(thing)
      return
    }
    const { of, reason, isUnsteady } = fault
    // An object of 1 MiB may have thousands of faults.
    const notes = fault.notes.slice(0, NOTES_MAX)
    const count = fault.notes.length
    const text = JSON.stringify([of.uid, reason, ...(isUnsteady === true ? [] : [count, notes])])
    if (this.#reported.get(thing) === text) return
    this.#reported.set(thing, text)
    const more = count > NOTES_MAX ? [`and ${count - NOTES_MAX} more`] : []
    this.#faults.report(thing, `${printObject(of)}: ${[...notes, ...more].join('; ')}`)
    for (const note of notes) {
      this.#events.record(of, { type: 'Warning', reason, action: 'Publish', note })
    }
  }

  served(of: ObjectReference, host: string, record: string): void {
    const note = `${host} is served, by DNSRecord ${record}`
    this.#events.record(of, { type: 'Normal', reason: 'HostServed', action: 'Publish', note })
  }
}
