/** A step of a ring, and what it counted. */
interface Step {
  /** Index since time 0. */
  readonly index: number
  /** How much of the step was counted. */
  readonly ms: number
  readonly row: Float64Array
}

/** Rows of counts for the last `steps` steps of time. Uses `steps` × `columns` × 8 octets. */
export class StepRing {
  readonly stepMs: number
  readonly #steps: number
  readonly #columns: number
  readonly #cells: Float64Array
  readonly #sinceMs: number
  #lastMs: number

  /** `nowMs`: when counting begins, not negative; from the same clock as all later times. */
  constructor(stepMs: number, steps: number, columns: number, nowMs: number) {
    this.stepMs = stepMs
    this.#steps = steps
    this.#columns = columns
    this.#cells = new Float64Array(steps * columns)
    this.#sinceMs = nowMs
    this.#lastMs = nowMs
  }

  /** Adds the growth of each column since the last call, spread evenly over the time since then. */
  add(nowMs: number, growth: ArrayLike<number>): void {
    const { stepMs } = this
    const fromMs = this.#lastMs
    if (nowMs < fromMs) return
    const first = Math.floor(fromMs / stepMs)
    const last = Math.floor(nowMs / stepMs)
    for (let index = Math.max(first, last - this.#steps + 1); index <= last; index++) {
      const row = this.#rowOf(index)
      if (index > first) row.fill(0)
      const startMs = Math.max(fromMs, index * stepMs)
      const ms = Math.min(nowMs, (index + 1) * stepMs) - startMs
      const part = nowMs === fromMs ? 1 : ms / (nowMs - fromMs)
      for (let i = 0; i < this.#columns; i++) row[i]! += growth[i]! * part
    }
    this.#lastMs = nowMs
  }

  /** Returns the last steps, the oldest first, as far as they were counted. */
  last(count: number): Step[] {
    const { stepMs } = this
    const newest = Math.floor(this.#lastMs / stepMs)
    const oldest = Math.max(
      Math.floor(this.#sinceMs / stepMs),
      newest - count + 1,
      newest - this.#steps + 1,
    )
    const steps: Step[] = []
    for (let index = oldest; index <= newest; index++) {
      const startMs = Math.max(this.#sinceMs, index * stepMs)
      const ms = Math.min(this.#lastMs, (index + 1) * stepMs) - startMs
      steps.push({ index, ms, row: this.#rowOf(index) })
    }
    return steps
  }

  #rowOf(index: number): Float64Array {
    const at = (index % this.#steps) * this.#columns
    return this.#cells.subarray(at, at + this.#columns)
  }
}
