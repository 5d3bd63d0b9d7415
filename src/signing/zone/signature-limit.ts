import { InputError } from '../../base/errors.ts'
import { memoryLimit } from '../../base/memory-limit.ts'
import { printName } from '../../dns/name/name.ts'

/** An arena, which has at most 4 GB, has space for so many besides the zone. */
const SIGNATURES_MAX = 8 * 1024 * 1024
/** A signature needs about 128 octets; those of one zone use at most a quarter of the memory. */
const MEMORY_OCTETS_PER_SIGNATURE = 512

/** Returns how many signatures a zone may have in this process. */
export function signaturesMax(): number {
  return Math.min(SIGNATURES_MAX, Math.floor(memoryLimit() / MEMORY_OCTETS_PER_SIGNATURE))
}

/** Counts the signatures of a zone: few records with many answers can need more of them than memory has space for. */
export class SignatureLimit {
  readonly #max: number
  #count = 0

  constructor(max: number = signaturesMax()) {
    this.#max = max
  }

  /** Call it before all signatures are counted again. */
  reset(): void {
    this.#count = 0
  }

  /** Counts the signatures of a name. `before`: those counted already. @throws InputError if the zone has too many. */
  count(owner: Uint8Array, before: number, after: number): void {
    this.#count += after - before
    if (after <= before || this.#count <= this.#max) return
    throw new InputError(
      undefined,
      `${printName(owner)} needs ${after} signatures, and its zone then more than ${this.#max}: ` +
        'use fewer endpoints, or other `answers`',
    )
  }
}
