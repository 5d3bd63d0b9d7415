import { createHash } from 'node:crypto'
import type { Query } from '../dns/message/query.ts'

/*
 * Weighted rendezvous hashing: each outcome gets x / w, where x is exponentially distributed and made
 * from a hash of the client's prefix and the seed of the outcome, and w is its weight. The lowest one
 * wins, so the probability of an outcome is w / Σw, and a change of one outcome moves only the clients
 * that it gains or loses. All of it is arithmetic on integers, and products below 2^53, so that every
 * server, thread and version of Node.js chooses alike.
 */

/** Two words that identify an endpoint at an owner. */
export type StickySeed = readonly [number, number]

/**
 * Returns the seed of an endpoint: the first 8 octets of SHA-256 over the lower-case wire name of the
 * owner and the identity. A and AAAA endpoints with equal identities have equal seeds.
 */
export function stickySeed(owner: Uint8Array, identity: string | Uint8Array): StickySeed {
  const digest = createHash('sha256').update(owner).update(identity).digest()
  return [digest.readUInt32BE(0), digest.readUInt32BE(4)]
}

/** Fractional bits of `exponential`. The largest value is 33 * 2^26, the largest weight below 2^20. */
const FRACTION_BITS = 26
const TABLE_BITS = 10
const STEP_BITS = 14

/** log2(1 + i / 2^TABLE_BITS) in units of 2^-FRACTION_BITS. */
const LOGARITHMS = makeLogarithms()

function makeLogarithms(): Uint32Array {
  const size = 2 ** TABLE_BITS
  const table = new Uint32Array(size + 1)
  for (let i = 0; i <= size; i++) {
    // Math.log2 may differ between versions of V8; sums and products do not.
    const ratio = i / (2 * size + i)
    const square = ratio * ratio
    let sum = 0
    for (let term = 41; term > 0; term -= 2) sum = sum * square + 1 / term
    table[i] = Math.round(((2 * ratio * sum) / Math.LN2) * 2 ** FRACTION_BITS)
  }
  return table
}

/** Receives outcomes of a sticky tier, in order; each array has room for all of them. */
interface StickyPicks {
  /** How many are picked: 2..the outcomes of the tier. */
  readonly count: number
  /** Indexes of the outcomes. */
  readonly index: Uint16Array
  /** Their scores are score / weight. */
  readonly score: Float64Array
  readonly weight: Float64Array
}

/** Returns the index of the outcome for a client in the sticky tier of `count` outcomes at `tier`. @hot */
export function pickSticky(words: Uint32Array, tier: number, count: number, query: Query): number {
  const weights = tier + 1
  const seeds = weights + count * 2 + 1
  const first = firstWord(words[seeds - 1]!, query)
  const second = secondWord(words[seeds - 1]!, query)
  let best = 0
  let bestX = 0
  let bestWeight = 0
  let before = 0
  for (let i = 0; i < count; i++) {
    const sum = words[weights + i * 2]!
    const weight = sum - before
    before = sum
    const seed = words[seeds + i * 2]!
    const x = exponential(hashOf(seed, words[seeds + i * 2 + 1]!, first, second))
    const mine = x * bestWeight
    const theirs = bestX * weight
    // Equal scores must not depend on the order of the outcomes.
    const isTied = mine === theirs && seed < words[seeds + best * 2]!
    if (i > 0 && mine >= theirs && !isTied) continue
    best = i
    bestX = x
    bestWeight = weight
  }
  return best
}

/**
 * Sets `picks` to the outcomes with the lowest scores, in this order. The first one is that of
 * `pickSticky`. @hot
 */
export function pickStickySeveral(
  words: Uint32Array,
  tier: number,
  count: number,
  query: Query,
  picks: StickyPicks,
): void {
  const weights = tier + 1
  const seeds = weights + count * 2 + 1
  const first = firstWord(words[seeds - 1]!, query)
  const second = secondWord(words[seeds - 1]!, query)
  const { count: most, index, score, weight: weightOf } = picks
  let picked = 0
  let before = 0
  for (let i = 0; i < count; i++) {
    const sum = words[weights + i * 2]!
    const weight = sum - before
    before = sum
    const seed = words[seeds + i * 2]!
    const x = exponential(hashOf(seed, words[seeds + i * 2 + 1]!, first, second))
    let place = picked
    for (; place > 0; place--) {
      const mine = x * weightOf[place - 1]!
      const theirs = score[place - 1]! * weight
      const isTied = mine === theirs && seed < words[seeds + index[place - 1]! * 2]!
      if (mine >= theirs && !isTied) break
      if (place === most) continue
      index[place] = index[place - 1]!
      score[place] = score[place - 1]!
      weightOf[place] = weightOf[place - 1]!
    }
    if (place === most) continue
    if (picked < most) picked++
    index[place] = i
    score[place] = x
    weightOf[place] = weight
  }
}

/** What the hash reads of the first 32 bits of the client's address. */
function firstWord(prefixBits: number, { clientAddress, clientFamily }: Query): number {
  const bits = clientFamily === 1 ? prefixBits & 0xff : prefixBits >>> 8
  return scramble(wordOf(clientAddress, 0) & maskOf(bits))
}

/** What the hash reads of the next 32 bits. A constant in their place keeps the families apart. */
function secondWord(prefixBits: number, { clientAddress, clientFamily }: Query): number {
  if (clientFamily === 1) return scramble(4)
  return scramble(wordOf(clientAddress, 4) & maskOf((prefixBits >>> 8) - 32))
}

function hashOf(seed: number, seedRest: number, first: number, second: number): number {
  let hash = mixIn(mixIn(mixIn(seed, first), second), seedRest)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

function wordOf(address: Uint8Array, at: number): number {
  return (
    (address[at]! << 24) | (address[at + 1]! << 16) | (address[at + 2]! << 8) | address[at + 3]!
  )
}

function maskOf(bits: number): number {
  if (bits <= 0) return 0
  return bits >= 32 ? -1 : -1 << (32 - bits)
}

/** The steps of MurmurHash3 for 32 bits. */
function scramble(word: number): number {
  const k = Math.imul(word, 0xcc9e2d51)
  return Math.imul((k << 15) | (k >>> 17), 0x1b873593)
}

function mixIn(hash: number, k: number): number {
  const h = hash ^ k
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0
}

/** Returns -log2(hash / 2^32) in units of 2^-FRACTION_BITS: 1..33 * 2^26. `hash`: 32 bits. */
function exponential(hash: number): number {
  const zeros = Math.clz32(hash)
  const mantissa = hash << zeros
  const index = (mantissa >>> (31 - TABLE_BITS)) & (2 ** TABLE_BITS - 1)
  const step = (mantissa >>> (31 - TABLE_BITS - STEP_BITS)) & (2 ** STEP_BITS - 1)
  const low = LOGARITHMS[index]!
  const rise = LOGARITHMS[index + 1]! - low
  return (zeros + 1) * 2 ** FRACTION_BITS - low - ((rise * step) >>> STEP_BITS)
}
