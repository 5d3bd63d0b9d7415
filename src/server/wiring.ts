import { CounterSlots, type SlotLabels } from '../plugin/counter-slots.ts'
import type { Feed } from '../plugin/feed.ts'
import type { RecordWriter } from '../telemetry/records.ts'

/**
 * What the setups of one instance share between threads. Setups run in every thread over the same
 * tokens, so the n-th feed, uplink or counters of one is that of all others.
 */
export interface Wiring {
  feed<T>(follow: (value: T) => void): Feed<T>
  uplink(receive: (text: string) => void): (text: string) => void
  recordUplink(receive: (octets: Uint8Array) => void): RecordWriter | undefined
  counters(): CounterSlots
}

/** The control thread's end of an instance's wiring; enough for a process that has no other thread. */
export class ControlWiring implements Wiring {
  /** Called with each value published, once it is set: posts it to the data threads. */
  onPublish: (index: number, value: unknown) => void = () => {}
  readonly #values: { isSet: boolean; value: unknown }[] = []
  readonly #uplinks: ((octets: Buffer) => void)[] = []
  readonly #counters: CounterSlots[] = []

  feed<T>(_follow: (value: T) => void): Feed<T> {
    const index = this.#values.push({ isSet: false, value: undefined }) - 1
    return {
      publish: (value) => {
        this.#values[index] = { isSet: true, value }
        this.onPublish(index, value)
      },
      catchUp: () => {},
    }
  }

  uplink(receive: (text: string) => void): (text: string) => void {
    this.#uplinks.push((octets) => receive(octets.toString()))
    return receive
  }

  recordUplink(receive: (octets: Uint8Array) => void): undefined {
    this.#uplinks.push(receive)
    return undefined
  }

  counters(): CounterSlots {
    const slots = new CounterSlots()
    this.#counters.push(slots)
    return slots
  }

  /** Every value published so far, with the number of its feed. */
  values(): [number, unknown][] {
    return this.#values.flatMap(({ isSet, value }, index): [number, unknown][] => {
      return isSet ? [[index, value]] : []
    })
  }

  /** Takes what a data thread sent up. */
  receive(uplink: number, octets: Buffer): void {
    this.#uplinks[uplink]?.(octets)
  }

  includeCounters(index: number, labels: SlotLabels, counters: Float64Array): void {
    this.#counters[index]?.include(labels, counters)
  }
}

/** What a data thread's wiring needs of the thread. */
export interface DataWiringHooks {
  /** Follows what has been published up to now. */
  catchUp(): void
  send(uplink: number, text: string): void
  /** The way up of records for uplink `uplink`. */
  recordsTo(uplink: number): RecordWriter
  /** Lets the control thread know of a new slot. */
  announce(index: number, labels: SlotLabels, counters: Float64Array): void
}

/** A data thread's end. */
export class DataWiring implements Wiring {
  readonly #hooks: DataWiringHooks
  readonly #follows: ((value: unknown) => void)[] = []
  #uplinkCount = 0
  #counterCount = 0

  constructor(hooks: DataWiringHooks) {
    this.#hooks = hooks
  }

  feed<T>(follow: (value: T) => void): Feed<T> {
    // The same setup published it: it is a T.
    this.#follows.push(follow as (value: unknown) => void)
    return { publish: () => {}, catchUp: () => this.#hooks.catchUp() }
  }

  uplink(_receive: (text: string) => void): (text: string) => void {
    const index = this.#uplinkCount++
    return (text) => this.#hooks.send(index, text)
  }

  recordUplink(_receive: (octets: Uint8Array) => void): RecordWriter {
    return this.#hooks.recordsTo(this.#uplinkCount++)
  }

  counters(): CounterSlots {
    const index = this.#counterCount++
    return new CounterSlots((length, labels) => {
      const counters = new Float64Array(new SharedArrayBuffer(length * 8))
      this.#hooks.announce(index, labels, counters)
      return counters
    })
  }

  /** Takes what was published for feed `index`. */
  follow(index: number, value: unknown): void {
    this.#follows[index]?.(value)
  }
}
