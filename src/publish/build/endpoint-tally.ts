import type { OwnerSet } from './owner-set.ts'

/** Counts the endpoints in the RRsets of a zone. */
export class EndpointTally {
  /** Endpoints that answers contain. */
  served = 0
  /** Those of weight 0, unless traffic is shifted to them. */
  standby = 0
  /** Number of candidates by geo code. */
  readonly codes = new Map<string, number>()

  add(set: OwnerSet): void {
    this.#count(set, 1)
  }

  /** `set`: was added before, and has not changed. */
  remove(set: OwnerSet): void {
    this.#count(set, -1)
  }

  #count({ candidates }: OwnerSet, step: 1 | -1): void {
    let last: readonly number[] | undefined
    for (const { code, rdataIndexes, weight, shift } of candidates) {
      if (code !== undefined) this.#countCode(code.text, step)
      // An endpoint has one candidate per geo code, one after the other. They share the array.
      if (rdataIndexes === last) continue
      last = rdataIndexes
      this.served += step
      if (weight === 0 && shift?.isTarget !== true) this.standby += step
    }
  }

  #countCode(code: string, step: 1 | -1): void {
    const count = (this.codes.get(code) ?? 0) + step
    if (count > 0) this.codes.set(code, count)
    else this.codes.delete(code)
  }
}
