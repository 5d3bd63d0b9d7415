import type { Broadcast } from '../base/broadcast.ts'
import type { OctetChannel } from '../base/telemetry/octet-channel.ts'
import { CounterSlots, type SlotLabels } from '../plugin/counter-slots.ts'

/**
 * What the setups of one instance share between threads. Setups run in every thread over the same
 * tokens. So the n-th broadcast, `toControl` channel or set of counters is the same one in all
 * threads.
 */
export interface ThreadChannel {
  /** False in threads whose handlers must not wait. */
  readonly canWait: boolean
  broadcast<T>(follow: (value: T) => void): Broadcast<T>
  toControl(receive: (text: string) => void): (text: string) => void
  octetsToControl(receive: (octets: Uint8Array) => void): OctetChannel | undefined
  counters(): CounterSlots
  /**
   * Applies all values, published and future, to the channel of another setup in this thread. Returns
   * the function that ends this. Absent in data threads.
   */
  join?(channel: DataChannel): () => void
}

/** The control thread's end of an instance's channel. Sufficient for a process without other threads. */
export class ControlChannel implements ThreadChannel {
  readonly canWait = true
  /** Called with each value or change published, once the value is set: posts it to the data threads. */
  onPublish: (index: number, value: unknown) => void = () => {}
  readonly #values: { isSet: boolean; value: unknown }[] = []
  readonly #toControls: ((octets: Buffer) => void)[] = []
  readonly #counters: CounterSlots[] = []
  readonly #joined = new Set<DataChannel>()

  broadcast<T>(_follow: (value: T) => void): Broadcast<T> {
    const index = this.#values.push({ isSet: false, value: undefined }) - 1
    return {
      publish: (value, change = value) => {
        this.#values[index] = { isSet: true, value }
        this.onPublish(index, change)
        for (const channel of this.#joined) channel.follow(index, change)
      },
      catchUp: () => {},
    }
  }

  toControl(receive: (text: string) => void): (text: string) => void {
    this.#toControls.push((octets) => receive(octets.toString()))
    return receive
  }

  octetsToControl(receive: (octets: Uint8Array) => void): undefined {
    this.#toControls.push(receive)
    return undefined
  }

  counters(): CounterSlots {
    const slots = new CounterSlots()
    this.#counters.push(slots)
    return slots
  }

  /** Every value published so far, with the index of its broadcast. */
  values(): [number, unknown][] {
    return this.#values.flatMap(({ isSet, value }, index): [number, unknown][] => {
      return isSet ? [[index, value]] : []
    })
  }

  /** See `ThreadChannel`. */
  join(channel: DataChannel): () => void {
    for (const [index, value] of this.values()) channel.follow(index, value)
    this.#joined.add(channel)
    return () => this.#joined.delete(channel)
  }

  /** Receives octets that a data thread sent. */
  receive(toControl: number, octets: Buffer): void {
    this.#toControls[toControl]?.(octets)
  }

  includeCounters(index: number, labels: SlotLabels, counters: Float64Array): void {
    this.#counters[index]?.include(labels, counters)
  }
}

/** What a data thread's end of the channel needs from the thread. */
export interface DataChannelHooks {
  /** Applies everything that has been published so far. */
  catchUp(): void
  send(toControl: number, text: string): void
  /** Returns a writer for the `toControl` channel with this index. */
  octetsTo(toControl: number): OctetChannel
  /** Reports a new slot to the control thread. */
  announce(index: number, labels: SlotLabels, counters: Float64Array): void
}

/** A data thread's end of the channel. */
export class DataChannel implements ThreadChannel {
  readonly canWait = false
  readonly #hooks: DataChannelHooks
  readonly #follows: ((value: unknown) => void)[] = []
  #toControlCount = 0
  #counterCount = 0

  constructor(hooks: DataChannelHooks) {
    this.#hooks = hooks
  }

  broadcast<T>(follow: (value: T) => void): Broadcast<T> {
    // The same setup published the value, so it is a T.
    this.#follows.push(follow as (value: unknown) => void)
    return { publish: () => {}, catchUp: () => this.#hooks.catchUp() }
  }

  toControl(_receive: (text: string) => void): (text: string) => void {
    const index = this.#toControlCount++
    return (text) => this.#hooks.send(index, text)
  }

  octetsToControl(_receive: (octets: Uint8Array) => void): OctetChannel {
    return this.#hooks.octetsTo(this.#toControlCount++)
  }

  counters(): CounterSlots {
    const index = this.#counterCount++
    return new CounterSlots((length, labels) => {
      const counters = new Float64Array(new SharedArrayBuffer(length * 8))
      this.#hooks.announce(index, labels, counters)
      return counters
    })
  }

  /** Applies a published value to the broadcast `index`. */
  follow(index: number, value: unknown): void {
    this.#follows[index]?.(value)
  }
}
