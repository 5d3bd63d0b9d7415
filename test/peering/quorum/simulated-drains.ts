import type { EndpointDrain } from '../../../src/health/drain/drain.ts'
import type { DrainFeed, DrainsChange } from '../../../src/health/drain/drain-schedule.ts'
import { scanDrains } from '../../../src/health/drain/drain-text.ts'

/** Drains that a person begins and ends at one site. */
export class SimulatedDrains implements DrainFeed {
  drains: readonly EndpointDrain[] = []
  readonly problems = []
  readonly #listeners = new Set<(change: DrainsChange) => void>()

  subscribe(listener: (change: DrainsChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  set(text: string, isDrained: boolean): void {
    const ended = this.drains.filter(({ selector }) => selector.text === text)
    if (isDrained === ended.length > 0) return
    const begun = isDrained ? scanDrains(text, 'drains').drains.map(({ drain }) => drain) : []
    this.drains = [...this.drains.filter((one) => !ended.includes(one)), ...begun]
    for (const listener of this.#listeners) listener({ begun, ended })
  }
}
