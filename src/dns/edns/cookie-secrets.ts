import { assert } from '../../base/assert.ts'
import { SIPHASH_KEY_OCTETS } from './siphash.ts'

/** Secrets at a time: a rollover of a fleet has three (RFC 9018 section 5). */
export const COOKIE_SECRETS_MAX = 4

const KEY_WORDS = SIPHASH_KEY_OCTETS / 4
const BANKS = 2
/** Words before the banks: the bank in use, and the number of secrets of each bank. */
const BANK = 0
const COUNTS = 1
const HEAD_WORDS = COUNTS + BANKS
const WORDS = HEAD_WORDS + BANKS * COOKIE_SECRETS_MAX * KEY_WORDS

/**
 * The secrets of server cookies, in memory that all threads share. The first one makes cookies, and cookies of all of
 * them are valid. `set` fills the bank that is not in use, and then changes the bank.
 */
export class CookieSecrets {
  /** What `new CookieSecrets` needs in another thread. */
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  /** By place: those of the first bank, then those of the second. */
  readonly #keys: readonly Int32Array[]

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(WORDS * 4)) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#keys = Array.from({ length: BANKS * COOKIE_SECRETS_MAX }, (_, place) => {
      const at = HEAD_WORDS + place * KEY_WORDS
      return this.#words.subarray(at, at + KEY_WORDS)
    })
  }

  static of(...secrets: readonly Uint8Array[]): CookieSecrets {
    const made = new CookieSecrets()
    made.set(secrets)
    return made
  }

  /** Replaces all secrets. Each has 16 octets from a cryptographic source of randomness. */
  set(secrets: readonly Uint8Array[]): void {
    const isInRange = secrets.length > 0 && secrets.length <= COOKIE_SECRETS_MAX
    assert(isInRange, `there must be 1 to ${COOKIE_SECRETS_MAX} cookie secrets`)
    const bank = 1 - Atomics.load(this.#words, BANK)
    secrets.forEach((secret, i) => {
      this.#keys[bank * COOKIE_SECRETS_MAX + i]!.set(wordsOf(secret))
    })
    this.#words[COUNTS + bank] = secrets.length
    Atomics.store(this.#words, BANK, bank)
  }

  /** Place of the secret that makes cookies; the other valid ones follow it. @hot */
  get first(): number {
    return Atomics.load(this.#words, BANK) * COOKIE_SECRETS_MAX
  }

  /** The place after the last valid secret. `first`: as above, read once for each query. @hot */
  endOf(first: number): number {
    return first + this.#words[COUNTS + first / COOKIE_SECRETS_MAX]!
  }

  /** The secret at a place, as a key of SipHash. @hot */
  keyAt(place: number): Int32Array {
    return this.#keys[place]!
  }
}

function wordsOf(secret: Uint8Array): Int32Array {
  assert(secret.length === SIPHASH_KEY_OCTETS, 'a cookie secret must have 16 octets')
  const view = new DataView(secret.buffer, secret.byteOffset)
  return Int32Array.from({ length: KEY_WORDS }, (_, i) => view.getInt32(i * 4, true))
}
