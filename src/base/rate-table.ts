import { assert } from './assert.ts'

/** Outcome of a debit. */
export const Debit = {
  /** The account had credit. */
  Paid: 0,
  /** No credit, and this is the denial in `slip` that is sent in a smaller form. */
  Slipped: 1,
  /** No credit. */
  Denied: 2,
} as const
export type Debit = (typeof Debit)[keyof typeof Debit]

/** Units of time per second. They wrap after 18 hours, so intervals of up to 9 hours compare correctly. */
const TICKS_PER_SECOND = 65_536
const TICKS_PER_MS = TICKS_PER_SECOND / 1000

/** Accounts per set; a set is half a cache line. */
const WAYS = 4
const ACCOUNT_WORDS = 2
const SET_WORDS = WAYS * ACCOUNT_WORDS
/** Low bits of an account's first word: denials since the last slip. The place implies as many bits of the hash. */
const SLIP_MASK = 15
const SETS_MIN = SLIP_MASK + 1

/** A rate: one debit per `intervalTicks`; after denials, the debt is at most `windowTicks`. */
export interface Rate {
  readonly intervalTicks: number
  /**
   * 0 = a denial causes no debt: the account also pays at its rate during a flood. Only for tables
   * of one thread.
   */
  readonly windowTicks: number
  /** The most credit: the debits of one second, at least one. */
  readonly creditTicks: number
}

/** `perSecond`: above 0, and at most TICKS_PER_SECOND. Rounded so that the rate is never exceeded. */
export function rateOf(perSecond: number, windowSeconds: number): Rate {
  assert(perSecond > 0 && perSecond <= TICKS_PER_SECOND, 'a rate within 0..TICKS_PER_SECOND')
  const intervalTicks = Math.ceil(TICKS_PER_SECOND / perSecond)
  return {
    intervalTicks,
    windowTicks: Math.ceil(TICKS_PER_SECOND * windowSeconds),
    creditTicks: intervalTicks * Math.max(1, Math.floor(perSecond)),
  }
}

/** Memory for at least `accounts` accounts, which threads can share: a power of two of sets. */
export function createRateTable(accounts: number): Int32Array {
  let sets = SETS_MIN
  while (sets * WAYS < accounts) sets *= 2
  return new Int32Array(new SharedArrayBuffer(sets * SET_WORDS * Int32Array.BYTES_PER_ELEMENT))
}

/**
 * Accounts of a fixed total size, found by a hash that senders cannot predict (`TabulationHash`).
 * An account gains one debit per interval, up to those of one second, and loses one with each
 * debit, down to those of the window. Without a window, a denied debit costs nothing.
 *
 *     set:  [hash and slips | time of the next grant] × 4        full: the account with the most credit is replaced
 *
 * An account in debt is kept while any other of its set has more credit, so new keys do not clear
 * it. Two keys share an account only if all 32 bits of their hashes are equal. Threads write
 * without locks: if two of them change one account at once, a debit can be lost, but nothing else.
 */
export class RateTable {
  readonly #words: Int32Array
  readonly #setMask: number

  /** `words`: from `createRateTable`. */
  constructor(words: Int32Array) {
    this.#words = words
    this.#setMask = words.length / SET_WORDS - 1
  }

  /** `nowTicks`: `ticksOf`. `slip`: 1..15 = each such denial is `Slipped`; 0 = none. @hot */
  debit(hash: number, nowTicks: number, rate: Rate, slip: number): Debit {
    const words = this.#words
    const { intervalTicks, windowTicks, creditTicks } = rate
    const at = this.#find(hash, nowTicks, rate)
    const tag = hash & ~SLIP_MASK
    let next = words[at + 1]!
    const age = (nowTicks - next) | 0
    // A time too far ahead is from the previous cycle of the clock.
    if ((words[at]! & ~SLIP_MASK) !== tag) {
      words[at] = tag
      next = nowTicks - creditTicks
    } else if (age > creditTicks || age < -windowTicks) next = nowTicks - creditTicks
    next = (next + intervalTicks) | 0
    const debt = (next - nowTicks) | 0
    if (debt <= 0) {
      words[at + 1] = next
      return Debit.Paid
    }
    if (windowTicks > 0) words[at + 1] = debt > windowTicks ? (nowTicks + windowTicks) | 0 : next
    if (slip === 0) return Debit.Denied
    const denials = (words[at]! & SLIP_MASK) + 1
    words[at] = tag | (denials >= slip ? 0 : denials)
    return denials >= slip ? Debit.Slipped : Debit.Denied
  }

  /** Reverts the last debit of that account. @hot */
  credit(hash: number, rate: Rate): void {
    const at = (hash & this.#setMask) * SET_WORDS
    const tag = hash & ~SLIP_MASK
    for (let i = at; i < at + SET_WORDS; i += ACCOUNT_WORDS) {
      if ((this.#words[i]! & ~SLIP_MASK) !== tag) continue
      this.#words[i + 1] = (this.#words[i + 1]! - rate.intervalTicks) | 0
      return
    }
  }

  /** The account of that hash, or the one of its set to be replaced. */
  #find(hash: number, nowTicks: number, { creditTicks, windowTicks }: Rate): number {
    const words = this.#words
    const tag = hash & ~SLIP_MASK
    const start = (hash & this.#setMask) * SET_WORDS
    let richest = start
    let most = -(2 ** 31) - 1
    for (let at = start; at < start + SET_WORDS; at += ACCOUNT_WORDS) {
      if ((words[at]! & ~SLIP_MASK) === tag) return at
    }
    for (let at = start; at < start + SET_WORDS; at += ACCOUNT_WORDS) {
      const age = (nowTicks - words[at + 1]!) | 0
      const credit = age > creditTicks || age < -windowTicks ? creditTicks : age
      if (credit > most) {
        most = credit
        richest = at
      }
    }
    return richest
  }
}

/** Monotonic milliseconds in ticks, as a signed 32-bit integer. @hot */
export function ticksOf(nowMs: number): number {
  return Math.floor(nowMs * TICKS_PER_MS) | 0
}
