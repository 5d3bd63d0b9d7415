/** Most octets that are hashed, and the octets of the integer after them. */
const PREFIX_OCTETS = 16
const WORD_OCTETS = 4

/** 32-bit integers of the secret: a table of 256 for every octet. */
export const TABULATION_WORDS: number = (PREFIX_OCTETS + WORD_OCTETS) * 256

/**
 * Tabulation hashing (Zobrist): every octet selects a random integer from its own table, and XOR
 * combines them. Any two keys collide with a probability of 2^-32, whatever keys a sender without
 * the tables chooses. The loads do not wait for each other, so it takes a third of the time of
 * HalfSipHash. Hashes must not leave the process.
 */
export class TabulationHash {
  readonly #tables: Int32Array

  /** `tables`: TABULATION_WORDS 32-bit integers from a good source of randomness. */
  constructor(tables: Int32Array) {
    this.#tables = tables
  }

  /** The hash of the first `bits` bits of `octets`, 0..128, and of `word`. @hot */
  of(octets: Uint8Array, bits: number, word: number): number {
    const tables = this.#tables
    let hash =
      tables[4096 | (word & 0xff)]! ^
      tables[4352 | ((word >>> 8) & 0xff)]! ^
      tables[4608 | ((word >>> 16) & 0xff)]! ^
      tables[4864 | (word >>> 24)]!
    const whole = bits >>> 3
    for (let i = 0; i < whole; i++) hash ^= tables[(i << 8) | octets[i]!]!
    const rest = bits & 7
    if (rest > 0) hash ^= tables[(whole << 8) | (octets[whole]! & (0xff00 >> rest) & 0xff)]!
    return hash
  }
}
