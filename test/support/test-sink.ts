import type { Sink, SinkUpdate } from '../../src/egress/sinks/sink.ts'

/** A sink in memory that the test makes slow, or lets fail. */
export class TestSink implements Sink {
  readonly name = 'test'
  readonly needsDetails: boolean
  /** Addresses in force, by selector key. */
  readonly inForce = new Map<string, readonly string[]>()
  readonly updates: SinkUpdate[] = []
  /** True: each update waits for `settle`. */
  isHeld = false
  /** Why updates fail; '' = they succeed. */
  fault = ''
  readonly #held: (() => void)[] = []

  constructor(needsDetails = false) {
    this.needsDetails = needsDetails
  }

  async apply(update: SinkUpdate): Promise<string> {
    this.updates.push(update)
    if (this.isHeld) await new Promise<void>((resolve) => this.#held.push(resolve))
    if (this.fault !== '') return this.fault
    const { key } = update.selector
    const before = update.isResync ? [] : (this.inForce.get(key) ?? [])
    const removed = new Set(update.removed.map(({ address }) => address))
    const kept = before.filter((address) => !removed.has(address))
    const added = update.isResync ? [...update.grants.values()] : update.added
    const addresses = [...kept, ...added.map(({ address }) => address)].sort()
    if (update.isGone) this.inForce.delete(key)
    else this.inForce.set(key, addresses)
    return ''
  }

  /** Ends the updates that are held. */
  async settle(): Promise<void> {
    for (const end of this.#held.splice(0)) end()
    await new Promise((settled) => setImmediate(settled))
  }
}
