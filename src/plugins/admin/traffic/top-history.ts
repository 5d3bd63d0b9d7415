import type { Random } from '../../../base/random.ts'
import { type TopKey, TopKeys } from './top-keys.ts'

/** Keys that a step counts, and those that are kept of a step that is over. */
const COUNTED = 1000
const KEPT = 100

interface StepTop {
  readonly index: number
  /** The weight of all keys. */
  readonly total: number
  readonly top: readonly TopKey[]
}

/** The weights of the most frequent keys, and of all keys together. */
interface TopSums {
  readonly total: number
  readonly weights: ReadonlyMap<string, number>
}

/** The most frequent keys of each of the last `steps` steps of time. */
export class TopHistory {
  readonly stepMs: number
  readonly #steps: number
  readonly #current: TopKeys
  #total = 0
  #index = 0
  /** The oldest first. */
  #finished: StepTop[] = []

  constructor(stepMs: number, steps: number, random: Random) {
    this.stepMs = stepMs
    this.#steps = steps
    this.#current = new TopKeys(COUNTED, random)
  }

  add(nowMs: number, key: string, weight: number): void {
    this.#turn(nowMs)
    this.#current.add(key, weight)
    this.#total += weight
  }

  /** Returns the sums over the last `count` steps, the current one included. */
  last(nowMs: number, count: number): TopSums {
    this.#turn(nowMs)
    const steps = [...this.#finished, this.#step()].filter(({ index }) => {
      return index > this.#index - count
    })
    const weights = new Map<string, number>()
    for (const { key, weight } of steps.flatMap(({ top }) => top)) {
      weights.set(key, (weights.get(key) ?? 0) + weight)
    }
    return { total: steps.reduce((sum, { total }) => sum + total, 0), weights }
  }

  #step(): StepTop {
    return { index: this.#index, total: this.#total, top: this.#current.top(KEPT) }
  }

  #turn(nowMs: number): void {
    const index = Math.floor(nowMs / this.stepMs)
    if (index <= this.#index) return
    if (this.#total > 0) this.#finished.push(this.#step())
    this.#finished = this.#finished.filter((step) => step.index > index - this.#steps)
    this.#current.clear()
    this.#total = 0
    this.#index = index
  }
}
